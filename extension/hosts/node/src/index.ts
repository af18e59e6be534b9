/**
 * Leases with fences for SQLite: a lock whose late holder is refused.
 *
 * A lock with a lease keeps two workers apart, until one of them stands still for longer than its lease and then writes
 * as if nothing had happened. Here every lease carries a fence, a number that only grows, and the row that is written
 * refuses a writer whose fence is older than what it has seen.
 *
 * ```ts
 * import Database from "better-sqlite3";
 * import { Locks } from "sqlite-fence";
 *
 * const summaries = new Locks("kv.db", () => new Database(":memory:")).lock("summaries");
 *
 * await summaries.hold(chatId, async (lease) => {
 *   const summary = await summarize(chatId);
 *   db.prepare("update chats set summary = ?, summary_fence = ? where id = ? and summary_fence < ?")
 *     .run(summary, lease.padded, chatId, lease.padded);
 * });
 * ```
 *
 * For better-sqlite3, node:sqlite (`new DatabaseSync(":memory:", { allowExtension: true })`) and bun:sqlite.
 *
 * The rules are in the library, which this package carries; trouble with the store is thrown as the error of the SQLite
 * module that reports it, with the library's message.
 *
 * @module
 */

export type { Connection, Statement } from "./connection.js";
export { FenceError, Held, LeaseLost, PermitLost } from "./errors.js";
export type { Lease, Permit } from "./held.js";
export { getLoadablePath, load } from "./library.js";
export { Lock, Locks, Semaphore, type HoldOptions, type LockOptions, type SemaphoreOptions } from "./locks.js";
