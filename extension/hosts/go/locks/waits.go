package locks

import (
	"context"
	"database/sql"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// waits are the acquires that go on, by number.
//
// When a context ends the driver interrupts the statement, and the library then leaves the line. Two things it does not
// see to: an interrupt that comes before the statement has begun is lost, and so is the answer of a statement that was
// done as the context ended. So the statement calls back twice: when it has begun it asks whether it is wanted still, and
// when something was granted it says so.
type waits struct {
	mutex sync.Mutex
	last  int64
	open  map[int64]*asked
}

type asked struct {
	ctx     context.Context
	granted string
}

// hook gives a new connection the functions that call back.
func (w *waits) hook(conn *sqlite3.SQLiteConn) error {
	if err := conn.RegisterFunc("locks_wanted", w.wanted, false); err != nil {
		return err
	}
	return conn.RegisterFunc("locks_granted", w.granted, false)
}

// ask runs the call, an SQL function with these arguments. What was granted is told beside an error too; nothing if it is
// held by somebody else.
func (w *waits) ask(ctx context.Context, db *sql.DB, call string, arguments []any) (string, error) {
	w.mutex.Lock()
	w.last++
	number, ask := w.last, &asked{ctx: ctx}
	w.open[number] = ask
	w.mutex.Unlock()

	var done any
	statement := "select case when locks_wanted(?) then locks_granted(?, " + call + ") end"
	err := db.QueryRowContext(ctx, statement, append([]any{number, number}, arguments...)...).Scan(&done)
	if err == nil {
		err = ctx.Err()
	}

	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.open, number)
	return ask.granted, err
}

func (w *waits) wanted(number int64) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	ask := w.open[number]
	return ask != nil && ask.ctx.Err() == nil
}

func (w *waits) granted(number int64, name any) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	text, is := name.(string)
	if ask := w.open[number]; ask != nil && is {
		ask.granted = text
	}
	return is
}
