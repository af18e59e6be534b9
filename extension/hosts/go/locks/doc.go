// Package locks holds leases with fences on SQLite: a lock whose late holder is refused.
//
// A lock with a lease keeps two workers apart, until one of them stands still for longer than its lease and then writes
// as if nothing had happened. Here every lease carries a fence, a number that only grows, and the row that is written
// refuses a writer whose fence is older than what it has seen.
//
//	store, err := locks.Open("kv.db")
//	...
//	summaries := store.Lock("summaries")
//	err = summaries.Hold(ctx, chatID, func(ctx context.Context, lease *locks.Lease) error {
//		summary, err := summarize(ctx, chatID)
//		if err != nil {
//			return err
//		}
//		_, err = db.ExecContext(ctx,
//			`update chats set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence < ?2`,
//			summary, lease.Fence(), chatID)
//		return err
//	})
//
// The context of the work ends when the lease is lost.
//
// The rules are in the library, which this package carries; trouble with the store is returned as the driver's error,
// with the library's message. The driver is github.com/mattn/go-sqlite3, and [Connector] gives connections of it with
// the SQL functions loaded.
package locks
