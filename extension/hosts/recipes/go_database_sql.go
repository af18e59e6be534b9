// Go's database/sql with mattn/go-sqlite3, without the module: a driver of one's own that loads the library into every
// connection.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"
)

var library = os.Args[1]

// [how]
func init() {
	sql.Register("sqlite3_fence", &sqlite3.SQLiteDriver{Extensions: []string{library}})
}

func open(database string) (*sql.DB, error) {
	return sql.Open("sqlite3_fence", "file:"+database+"?_busy_timeout=5000")
}

// [end]

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func one(db *sql.Conn, query string, arguments ...any) (answer string) {
	must(db.QueryRowContext(context.Background(), query, arguments...).Scan(&answer))
	return answer
}

func wrong(what string, err error) {
	if err == nil {
		log.Fatalf("%s went well", what)
	}
	fmt.Printf("wrong: %s: %v\n", what, err)
}

// turn takes its turn on this connection; gives the fence.
func turn(db *sql.Conn) string {
	given := one(db, "select fence_acquire('turn', 30000, 60000)")
	if one(db, "select fence_release('turn', ?)", given) != "1" {
		log.Fatal("not released")
	}
	return given
}

func main() {
	ctx := context.Background()
	pool, err := open("app.db")
	must(err)
	pool.SetMaxOpenConns(8)
	db, err := pool.Conn(ctx)
	must(err)
	if len(os.Args) > 2 { // A child.
		fmt.Print(turn(db))
		return
	}
	fmt.Println("SQLite", one(db, "select sqlite_version()"))
	_, err = db.ExecContext(ctx, `
		create table chats (id integer primary key, summary text, summary_fence text not null default '');
		insert into chats (id) values (42)`)
	must(err)
	fence := one(db, "select fence_acquire('chat:42', 30000)")
	for _, save := range []struct {
		fence   string
		changes int64
	}{{fence, 1}, {"7", 0}} {
		saved, err := db.ExecContext(ctx, `update chats set summary = 'a summary', summary_fence = fence_pad(?1)
			where id = 42 and fence_ok(summary_fence, ?1)`, save.fence)
		must(err)
		if changed, _ := saved.RowsAffected(); changed != save.changes {
			log.Fatalf("%s: %d", save.fence, changed)
		}
	}
	if one(db, "select fence_release('chat:42', ?)", fence) != "1" {
		log.Fatal("not released")
	}

	// Children are programs of their own, for Go does not fork. They use the same store, and the parent's lease stands.
	parents := one(db, "select fence_acquire('parent', 30000)")
	var children [4]*exec.Cmd
	var printed [4]strings.Builder
	for i := range children {
		children[i] = exec.Command(os.Args[0], library, "child")
		children[i].Stdout, children[i].Stderr = &printed[i], os.Stderr
		must(children[i].Start())
	}
	var fences sync.Map
	for i, child := range children {
		must(child.Wait())
		fences.Store(printed[i].String(), true)
	}
	if one(db, "select fence_release('parent', ?)", parents) != "1" {
		log.Fatal("the parent's lease is gone")
	}
	must(db.Close())

	// All eight connections of the pool at once.
	var all, opened sync.WaitGroup
	opened.Add(8)
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			db, err := pool.Conn(ctx)
			must(err)
			opened.Done()
			opened.Wait()
			fences.Store(turn(db), true)
			must(db.Close())
		}()
	}
	all.Wait()
	count := 0
	fences.Range(func(any, any) bool { count++; return true })
	if count != 4+8 {
		log.Fatalf("%d fences", count)
	}
	must(pool.Close())

	plain, err := sql.Open("sqlite3", ":memory:")
	must(err)
	wrong("the driver as it is", plain.QueryRow("select fence_acquire('k')").Scan(new(string)))
	hooked := sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error { return conn.LoadExtension(library, "") }}
	_, err = hooked.Open(":memory:")
	wrong("LoadExtension with an empty name of the entry point", err)
	fmt.Println("ok")
}
