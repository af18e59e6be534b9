// Save_summary saves a summary under a hold, and shows that a late holder is refused.
//
//	go run sqlite.fence/examples/save_summary
//
// Two workers on one app.db. The first takes summaries:42 and its process stands still for longer than its lease lasts,
// as a long garbage collection or a moved virtual machine makes it. The second takes the key and saves. The first comes
// back, believes that it still holds the key, and saves as well.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"sqlite.fence/locks"
)

const chatID = 42

// work is what a worker does; everything else here is the story around it.
func work(name string, ttl time.Duration, pause func()) error {
	db, err := sql.Open("sqlite3", "app.db")
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := locks.Open("kv.db")
	if err != nil {
		return err
	}
	defer store.Close()
	summaries := store.Lock("summaries", locks.TTL(ttl))
	err = summaries.Hold(context.Background(), chatID, func(ctx context.Context, lease *locks.Lease) error {
		summary := "what " + name + " found"
		pause()
		// With ctx in place of context.Background() the write would not even be tried.
		saved, err := db.ExecContext(context.Background(),
			`update chats set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence < ?2`,
			summary, lease.Fence(), chatID)
		if err != nil {
			return err
		}
		changes, err := saved.RowsAffected()
		fmt.Printf("%s: changes %d\n", name, changes)
		return err
	})
	if errors.Is(err, locks.ErrLeaseLost) {
		fmt.Printf("%s: the lease was lost\n", name)
		return nil
	}
	return err
}

func story() error {
	folder, err := os.MkdirTemp("", "fence-")
	if err != nil {
		return err
	}
	if err := os.Chdir(folder); err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "app.db")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec(`
		create table chats (id integer primary key, summary text, summary_fence text not null default '');
		insert into chats (id) values (?)`, chatID); err != nil {
		return err
	}

	first := exec.Command(os.Args[0], "first")
	first.Stdout, first.Stderr = os.Stdout, os.Stderr
	if err := first.Start(); err != nil {
		return err
	}
	var status syscall.WaitStatus // It holds the key and stands still.
	if _, err := syscall.Wait4(first.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
		return err
	}
	// Waits until the lease of the first has run out.
	if err := work("second", 30*time.Second, func() {}); err != nil {
		return err
	}
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := first.Wait(); err != nil {
		return err
	}

	var summary string
	if err := db.QueryRow(`select summary from chats`).Scan(&summary); err != nil {
		return err
	}
	fmt.Println("stayed:", summary)
	return nil
}

func main() {
	var err error
	if len(os.Args) > 1 {
		err = work(os.Args[1], 300*time.Millisecond, func() {
			// Stands still, until somebody lets it go on.
			if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
				log.Fatal(err)
			}
		})
	} else {
		err = story()
	}
	if err != nil {
		log.Fatal(err)
	}
}
