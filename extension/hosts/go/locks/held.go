package locks

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The shortest pause between two renewals, so that a ttl of a few milliseconds does not spin.
const shortest = time.Millisecond

// acquire is what there is to know of a lease or of a permit, to take and to keep it.
type acquire struct {
	key string
	// The SQL function, and the first arguments of its call; the ttl, the wait and the options follow.
	call    string
	first   []any
	renew   string
	release string
	lost    error
	options options
}

// held is live until it is let go or lost. It is lost when the store says that it is over, or when its ttl has passed
// since the last renewal that worked. Lost it stays: it is never renewed into a new one.
type held struct {
	locks *Locks
	take  acquire
	name  string

	mutex sync.Mutex
	// What ends when it is lost.
	cancel    context.CancelFunc
	isLost    bool
	liveUntil time.Time
	// Loses it when its ttl has passed, also while a renewal stands still.
	alarm *time.Timer
}

// hold waits, takes, renews, releases.
func (l *Locks) hold(ctx context.Context, take acquire, work func(context.Context, *held) error) (err error) {
	held, err := l.wait(ctx, take)
	if err != nil {
		return err
	}
	if held == nil {
		return fmt.Errorf("%w: %q, after waiting %v: wait longer, or try again later", ErrHeld, take.key, take.options.wait)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	held.onLost(cancel)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		held.renewUntil(stop)
	}()
	worked := false
	defer func() {
		close(stop)
		live := held.letGo()
		<-stopped
		if worked && err == nil && !live {
			err = held.lostError()
		}
	}()
	err = work(ctx, held)
	worked = true
	return err
}

// wait takes it, for as long as the options say or ctx lasts. Nothing if it is held by somebody else.
func (l *Locks) wait(ctx context.Context, take acquire) (*held, error) {
	asked := time.Now()
	wait := take.options.wait.Milliseconds()
	arguments := append(append([]any{}, take.first...), take.options.ttl.Milliseconds(), wait, take.options.json())
	name, err := l.waits.ask(ctx, l.db, take.call, arguments)
	if err != nil && name == "" {
		return nil, err
	}
	if name == "" {
		return nil, nil
	}
	held := &held{locks: l, take: take, name: name, cancel: func() {}}
	held.alarm = time.AfterFunc(take.options.ttl, held.loseInTime)
	held.liveFrom(asked)
	if err != nil {
		// It was granted as ctx ended.
		held.letGo()
		return nil, err
	}
	if wait > 0 && time.Since(asked) > shortest {
		// When in the wait it was granted, only the store knows; a renewal counts from now.
		held.renew()
	}
	return held, nil
}

// Key is what is held, with the lock's name.
func (h *held) Key() string { return h.take.key }

// Lost tells whether it has ended before the work. A fence refuses what is written late; this saves the effort.
func (h *held) Lost() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.isLost || !time.Now().Before(h.liveUntil)
}

func (h *held) lostError() error {
	return fmt.Errorf("%w: %s of %q", h.take.lost, h.name, h.take.key)
}

// letGo gives it back and tells whether it was live to the end. Where the store cannot be asked, the clock answers.
func (h *held) letGo() bool {
	h.alarm.Stop()
	lost := h.Lost()
	var released int
	err := h.locks.db.QueryRow(h.take.release, h.take.key, h.name).Scan(&released)
	return !lost && (err != nil || released == 1)
}

func (h *held) renewUntil(stop <-chan struct{}) {
	third := h.take.options.ttl / 3
	pause := third
	for {
		if pause < shortest {
			pause = shortest
		}
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		live, err := h.renew()
		switch {
		case err != nil && !h.Lost():
			// Trouble with the store may pass before the ttl does.
			pause = third / 8
		case !live:
			return
		default:
			pause = third
		}
	}
}

// renew tells whether it is live still.
func (h *held) renew() (bool, error) {
	asked := time.Now()
	var renewed int
	ttl := h.take.options.ttl.Milliseconds()
	err := h.locks.db.QueryRow(h.take.renew, h.take.key, h.name, ttl).Scan(&renewed)
	if err != nil {
		return false, err
	}
	if renewed == 1 {
		h.liveFrom(asked)
		return true, nil
	}
	h.lose()
	return false, nil
}

// liveFrom says that it was granted or renewed at this time or later.
func (h *held) liveFrom(asked time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.liveUntil = asked.Add(h.take.options.ttl)
	h.alarm.Reset(time.Until(h.liveUntil))
}

func (h *held) loseInTime() {
	if h.Lost() {
		h.lose()
	}
}

func (h *held) lose() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.isLost = true
	h.cancel()
}

// onLost has cancel run when it is lost, at once if it is lost already.
func (h *held) onLost(cancel context.CancelFunc) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.cancel = cancel
	if h.isLost {
		cancel()
	}
}
