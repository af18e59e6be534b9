package locks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

const deadline = time.Minute

// story is a store with its locks, and another program's connections to it, as far as the package knows.
type story struct {
	*testing.T
	folder string
	locks  *Locks
	db     *sql.DB
}

func begin(t *testing.T) story {
	t.Helper()
	s := story{T: t, folder: t.TempDir()}
	var err error
	if s.locks, err = Open(filepath.Join(s.folder, "kv.db")); err != nil {
		t.Fatal(err)
	}
	s.db = sql.OpenDB(Connector(filepath.Join(s.folder, "app.db")))
	t.Cleanup(func() {
		s.db.Close()
		s.locks.Close()
	})
	return s
}

func (s story) one(query string, arguments ...any) string {
	s.Helper()
	var answer sql.NullString
	if err := s.db.QueryRow(query, arguments...).Scan(&answer); err != nil {
		s.Fatal(err)
	}
	return answer.String
}

func (s story) held() string {
	return s.one("select group_concat(key) from (select key from fence_leases order by key)")
}

// end ends the lease behind its holder's back.
func (s story) end(lease *Lease) {
	if s.one("select fence_release(?, ?)", lease.Key(), lease.Fence()) != "1" {
		s.Fatal("not released")
	}
}

func (s story) mustBe(got, want string) {
	s.Helper()
	if got != want {
		s.Fatalf("%q and not %q", got, want)
	}
}

func TestTheKeyIsHeldInsideAndFreeOutside(t *testing.T) {
	s := begin(t)
	err := s.locks.Lock("chat").Hold(context.Background(), 42, func(ctx context.Context, lease *Lease) error {
		s.mustBe(lease.Key(), "chat:42")
		s.mustBe(s.held(), "chat:42")
		s.mustBe(s.one("select fence from fence_leases"), lease.Fence().String())
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mustBe(s.held(), "")
}

func TestAPathAndAURINameTheSameStoreAlsoAfterAChangeOfFolder(t *testing.T) {
	s := begin(t)
	elsewhere := t.TempDir()
	goTo := func(folder string) {
		if err := os.Chdir(folder); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	defer goTo(here)
	for _, name := range []string{"kv.db", "file:kv.db"} {
		goTo(s.folder)
		locks, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		goTo(elsewhere)
		// Two at once, so that a second connection is opened.
		chat := locks.Lock("chat")
		err = chat.Hold(context.Background(), 1, func(ctx context.Context, _ *Lease) error {
			return chat.Hold(ctx, 2, func(context.Context, *Lease) error {
				if held := s.held(); held != "chat:1,chat:2" {
					t.Errorf("%s: held is %s", name, held)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if there, err := os.ReadDir(elsewhere); err != nil || len(there) != 0 {
		t.Fatal(there, err)
	}
}

func TestAFenceGoesIntoATextColumnAndBack(t *testing.T) {
	s := begin(t)
	s.db.Exec("create table t (fence text not null default '')")
	s.db.Exec("insert into t default values")
	err := s.locks.Lock("chat").Hold(context.Background(), 42, func(ctx context.Context, lease *Lease) error {
		_, err := s.db.Exec("update t set fence = ?1 where fence < ?1", lease.Fence())
		s.mustBe(s.one("select typeof(fence) || fence from t"), "text"+lease.Fence().Padded())
		var back Fence
		s.db.QueryRow("select fence from t").Scan(&back)
		if back != lease.Fence() || !(Fence{}).Less(back) {
			t.Error(back)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhoDoesNotWaitIsToldThatItIsHeld(t *testing.T) {
	s := begin(t)
	chat := s.locks.Lock("chat", Wait(0))
	err := chat.Hold(context.Background(), 42, func(ctx context.Context, _ *Lease) error {
		return chat.Hold(ctx, 42, func(context.Context, *Lease) error {
			t.Error("nobody else may be in here")
			return nil
		})
	})
	if !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), `"chat:42", after waiting 0s`) {
		t.Fatal(err)
	}
}

func TestWhoWaitsGetsItAfterTheRelease(t *testing.T) {
	s := begin(t)
	chat := s.locks.Lock("chat")
	var first Fence
	second := make(chan error)
	err := chat.Hold(context.Background(), 42, func(ctx context.Context, lease *Lease) error {
		first = lease.Fence()
		go func() {
			second <- chat.Hold(context.Background(), 42, func(_ context.Context, later *Lease) error {
				if !first.Less(later.Fence()) || later.Lost() {
					return fmt.Errorf("%v after %v", later.Fence(), first)
				}
				return nil
			})
		}()
		select {
		case err := <-second:
			return fmt.Errorf("it did not wait: %w", err)
		case <-time.After(50 * time.Millisecond):
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
}

func TestAWaitEndsWithItsContextAndLeavesNothingHeld(t *testing.T) {
	s := begin(t)
	chat := s.locks.Lock("chat")
	err := chat.Hold(context.Background(), 42, func(context.Context, *Lease) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		err := chat.Hold(ctx, 42, func(context.Context, *Lease) error { return errors.New("it ended") })
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("gave %w", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Whatever the waiter was granted after all, it gives back.
	if err := chat.Hold(context.Background(), 42, func(context.Context, *Lease) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// line opens kv.db beside the store's own connection, to count who stands in line.
func (s story) line() func() int {
	s.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.folder, "kv.db")+"?_busy_timeout=5000")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { db.Close() })
	return func() (length int) {
		if err := db.QueryRow("select count(*) from waiters").Scan(&length); err != nil {
			s.Fatal(err)
		}
		return length
	}
}

func TestAWaitWhoseContextEndsLeavesTheLineAtOnce(t *testing.T) {
	s := begin(t)
	line := s.line()
	chat := s.locks.Lock("chat", Wait(time.Hour))
	err := chat.Hold(context.Background(), 42, func(context.Context, *Lease) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		answer := make(chan error, 1)
		go func() { answer <- chat.Hold(ctx, 42, func(context.Context, *Lease) error { return errors.New("it ended") }) }()
		for began := time.Now(); line() != 1; runtime.Gosched() {
			if time.Since(began) > deadline {
				return errors.New("it never stood in line")
			}
		}
		cancel()
		select {
		case err := <-answer:
			if err != context.Canceled || line() != 0 {
				return fmt.Errorf("gave %w, and %d stand in line", err, line())
			}
		case <-time.After(deadline):
			return errors.New("it waits on")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAContextThatEndsAtAnyMomentOfAnAcquireLeavesNothingBehind(t *testing.T) {
	s := begin(t)
	line := s.line()
	chat := s.locks.Lock("chat", Wait(time.Hour))
	// Free or held: what is granted as the context ends is given back, what would wait leaves the line.
	try := func(round int) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(round)*2*time.Microsecond)
		defer cancel()
		err := chat.Hold(ctx, 42, func(context.Context, *Lease) error { return nil })
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}
	for round := 0; round < 300; round++ {
		if err := try(round); err != nil || s.held() != "" {
			t.Fatalf("%v, and %q is held", err, s.held())
		}
	}
	err := chat.Hold(context.Background(), 42, func(context.Context, *Lease) error {
		for round := 0; round < 300; round++ {
			if err := try(round); err != nil || line() != 0 {
				return fmt.Errorf("%w, and %d stand in line", err, line())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestItIsRenewedForAsLongAsTheWorkLasts(t *testing.T) {
	s := begin(t)
	err := s.locks.Lock("chat", TTL(300*time.Millisecond)).Hold(context.Background(), 42,
		func(ctx context.Context, lease *Lease) error {
			select {
			case <-ctx.Done():
				return errors.New("it was lost")
			case <-time.After(time.Second):
			}
			s.mustBe(s.held(), "chat:42")
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheContextEndsWhenTheLeaseIsLost(t *testing.T) {
	s := begin(t)
	err := s.locks.Lock("chat", TTL(90*time.Millisecond)).Hold(context.Background(), 42,
		func(ctx context.Context, lease *Lease) error {
			s.end(lease)
			select {
			case <-ctx.Done():
			case <-time.After(deadline):
				return errors.New("waited in vain")
			}
			if !lease.Lost() {
				return errors.New("it is not lost")
			}
			return nil
		})
	if !errors.Is(err, ErrLeaseLost) {
		t.Fatal(err)
	}
}

func TestTheEndTellsEvenWhatNoRenewalFoundOut(t *testing.T) {
	s := begin(t)
	err := s.locks.Lock("chat").Hold(context.Background(), 42, func(_ context.Context, lease *Lease) error {
		s.end(lease)
		return nil
	})
	if !errors.Is(err, ErrLeaseLost) {
		t.Fatal(err)
	}
}

func TestAnErrorAndAPanicReleaseAndGoTheirWay(t *testing.T) {
	s := begin(t)
	mine := errors.New("mine")
	chat := s.locks.Lock("chat")
	if err := chat.Hold(context.Background(), 42, func(context.Context, *Lease) error { return mine }); err != mine {
		t.Fatal(err)
	}
	s.mustBe(s.held(), "")
	func() {
		defer func() { recover() }()
		chat.Hold(context.Background(), 42, func(context.Context, *Lease) error { panic(mine) })
	}()
	s.mustBe(s.held(), "")
}

func TestTroubleWithTheStoreIsItsOwnErrorAndNotHeld(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "no", "such", "kv.db"))
	if err == nil || errors.Is(err, ErrHeld) || !strings.HasPrefix(err.Error(), "fence: ") {
		t.Fatal(err)
	}
	if _, err := Open(":memory:"); err == nil {
		t.Fatal("a store in memory could not be shared")
	}
}

func TestOptionsReachTheStore(t *testing.T) {
	s := begin(t)
	lock := s.locks.Lock("chat", Delay(1234*time.Millisecond), Bound())
	err := lock.Hold(context.Background(), 42, func(context.Context, *Lease) error {
		s.mustBe(s.one("select delay_ms || ' ' || bound from fence_leases"), "1234 1")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoMorePermitsThanTheLimitAndTheyAreNoFences(t *testing.T) {
	s := begin(t)
	gpu := s.locks.Semaphore("gpu", 2, Wait(0))
	ctx := context.Background()
	err := gpu.Hold(ctx, func(ctx context.Context, one *Permit) error {
		return gpu.Hold(ctx, func(ctx context.Context, other *Permit) error {
			if _, err := Parse(one.ID()); err == nil || one.ID() == other.ID() {
				return errors.New("a permit is no fence")
			}
			err := gpu.Hold(ctx, func(context.Context, *Permit) error { return errors.New("a third one") })
			if !errors.Is(err, ErrHeld) {
				return err
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	err = gpu.Hold(ctx, func(_ context.Context, permit *Permit) error {
		s.mustBe(s.one("select semaphore_release(?, ?)", permit.Key(), permit.ID()), "1")
		return nil
	})
	if !errors.Is(err, ErrPermitLost) {
		t.Fatal(err)
	}
}

func TestEightConnectionsOfOnePoolHaveTheFunctionsAndTakeTurns(t *testing.T) {
	s := begin(t)
	s.db.SetMaxOpenConns(8)
	var all sync.WaitGroup
	var mutex sync.Mutex
	fences := map[string]bool{}
	opened := make(chan struct{}, 8)
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			conn, err := s.db.Conn(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			opened <- struct{}{}
			for len(opened) < 8 { // Until all eight are open at once.
				runtime.Gosched()
			}
			for turn := 0; turn < 10; turn++ {
				var fence string
				row := conn.QueryRowContext(context.Background(), "select fence_acquire('k', 30000, 30000)")
				if err := row.Scan(&fence); err != nil {
					t.Error(err)
					return
				}
				var released int
				row = conn.QueryRowContext(context.Background(), "select fence_release('k', ?)", fence)
				if err := row.Scan(&released); err != nil || released != 1 {
					t.Error(err, released)
				}
				mutex.Lock()
				fences[fence] = true
				mutex.Unlock()
			}
		}()
	}
	all.Wait()
	if len(fences) != 80 {
		t.Fatalf("%d fences", len(fences))
	}
}
