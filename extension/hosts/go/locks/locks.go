package locks

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
)

// Locks are the locks and semaphores of one store. They may be shared by goroutines.
type Locks struct {
	// Connections of our own to databases in memory, as many as there are calls at once: all that they do is call the
	// functions. The library keeps one connection to kv.db below all of them.
	db    *sql.DB
	waits waits
}

// What is no path but a cluster's location or a URI, which are the library's to read.
var noPath = regexp.MustCompile("^(file:|etcds?://)")

// Open gives the locks of the store at this path, or at this location of a cluster.
func Open(store string) (*Locks, error) {
	if store == "" || store == ":memory:" {
		return nil, fmt.Errorf("fence: %q is no file that could be shared: give the path of a store, such as kv.db", store)
	}
	if !noPath.MatchString(store) {
		// The same file after a change of folder.
		path, err := filepath.Abs(store)
		if err != nil {
			return nil, err
		}
		store = path
	}
	l := &Locks{waits: waits{open: map[int64]*asked{}}}
	l.db = sql.OpenDB(&connector{name: ":memory:", hook: func(conn *sqlite3.SQLiteConn) error {
		if err := l.waits.hook(conn); err != nil {
			return err
		}
		rows, err := conn.Query("select fence_open(?)", []driver.Value{store})
		if err != nil {
			return err
		}
		defer rows.Close()
		opened := make([]driver.Value, 1)
		if err := rows.Next(opened); err != nil {
			return err
		}
		// Now it is a path. This is the first connection, which is opened below and before all others.
		if path, ok := opened[0].(string); ok && strings.HasPrefix(store, "file:") {
			store = path
		}
		return nil
	}})
	if err := l.db.Ping(); err != nil {
		l.db.Close()
		return nil, err
	}
	return l, nil
}

// Close closes the connections. What is still held is not renewed any more, and ends with its ttl.
func (l *Locks) Close() error { return l.db.Close() }

// Option says how something is held.
type Option func(*options)

type options struct {
	ttl, wait, delay time.Duration
	bound            bool
}

// TTL is how long a lease or a permit lasts without renewal; 30 s unless said otherwise.
func TTL(ttl time.Duration) Option { return func(o *options) { o.ttl = ttl } }

// Wait is how long a hold waits; 30 s unless said otherwise, as long as a lease lasts whose holder has died.
func Wait(wait time.Duration) Option { return func(o *options) { o.wait = wait } }

// Delay is how long a key stays closed after a lease that ended without release.
func Delay(delay time.Duration) Option { return func(o *options) { o.delay = delay } }

// Bound lets a lease or a permit end at once when this process ends.
func Bound() Option { return func(o *options) { o.bound = true } }

func with(given []Option) options {
	o := options{ttl: 30 * time.Second, wait: 30 * time.Second}
	for _, option := range given {
		option(&o)
	}
	return o
}

// json gives the options of an acquire.
func (o options) json() string {
	given := map[string]any{}
	if o.bound {
		given["bound"] = true
	}
	if o.delay != 0 {
		given["delay_ms"] = o.delay.Milliseconds()
	}
	text, _ := json.Marshal(given) // Of these types it never fails.
	return string(text)
}

// Lock is a named family of keys.
type Lock struct {
	locks   *Locks
	name    string
	options options
}

// Lock gives the lock of this name. The key that is taken is the name, a colon and the key that is given to Hold.
func (l *Locks) Lock(name string, options ...Option) *Lock {
	return &Lock{locks: l, name: name, options: with(options)}
}

// Hold takes the key, a string or an integer, runs the work with its lease, renews it meanwhile, and releases it at the
// end, also of a panic. The work's context ends with ctx and when the lease is lost.
//
// It gives the error of the work; [ErrHeld] when the wait was over, ctx.Err() when ctx ended before, and then the work
// did not run and the line was left; [ErrLeaseLost] when the work succeeded and the lease had ended before it.
func (k *Lock) Hold(ctx context.Context, key any, work func(context.Context, *Lease) error) error {
	full := fmt.Sprintf("%s:%v", k.name, key)
	take := acquire{
		key:     full,
		call:    "fence_acquire(?, ?, ?, ?)",
		first:   []any{full},
		renew:   "select fence_renew(?, ?, ?)",
		release: "select fence_release(?, ?)",
		lost:    ErrLeaseLost,
		options: k.options,
	}
	return k.locks.hold(ctx, take, func(ctx context.Context, held *held) error {
		fence, err := Parse(held.name)
		if err != nil {
			return err
		}
		return work(ctx, &Lease{held: held, fence: fence})
	})
}

// Semaphore is a number of permits of one key.
type Semaphore struct {
	locks   *Locks
	key     string
	limit   int
	options options
}

// Semaphore gives the semaphore of this key, of which at most limit permits are live.
func (l *Locks) Semaphore(key string, limit int, options ...Option) *Semaphore {
	return &Semaphore{locks: l, key: key, limit: limit, options: with(options)}
}

// Hold takes a permit as [Lock.Hold] takes a key. It gives [ErrPermitLost] when the permit had ended before the work.
func (s *Semaphore) Hold(ctx context.Context, work func(context.Context, *Permit) error) error {
	take := acquire{
		key:     s.key,
		call:    "semaphore_acquire(?, ?, ?, ?, ?)",
		first:   []any{s.key, s.limit},
		renew:   "select semaphore_renew(?, ?, ?)",
		release: "select semaphore_release(?, ?)",
		lost:    ErrPermitLost,
		options: s.options,
	}
	return s.locks.hold(ctx, take, func(ctx context.Context, held *held) error {
		return work(ctx, &Permit{held: held})
	})
}

// Lease is a key held, with its fence.
type Lease struct {
	*held
	fence Fence
}

// Fence is what to write with everything that is written under the lease.
func (l *Lease) Fence() Fence { return l.fence }

// Permit is one of a semaphore's permits. It has no fence: three valid holders at once would refuse each other's writes.
type Permit struct{ *held }

// ID is the permit's, text that is no number.
func (p *Permit) ID() string { return p.name }
