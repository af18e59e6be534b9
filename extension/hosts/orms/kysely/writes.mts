/** Kysely: a good write, refused ones, and the transaction afterwards. */

import Database, { SqliteError } from "better-sqlite3";
import { NoResultError, sql } from "kysely";
import { Locks } from "sqlite-fence";

import { fenceOf, save } from "./chats.mts";
import { FIRST, SECOND, THIRD, ask, db, fresh, message, must, summary, tell, thrown } from "./story.mts";

const stale = (on = db) => on.updateTable("chats").set({ summary: "late", summary_fence: FIRST }).where("id", "=", 42);

async function aGoodWrite() {
  const chatId = 42;
  await fresh("write", "");
  // [good]
  const summaries = new Locks("kv.db", () => new Database(":memory:")).lock("summaries");

  const saved = await summaries.hold(chatId, async (lease) => {
    const { numUpdatedRows } = await save(db, chatId, "a summary", lease.padded).executeTakeFirstOrThrow();
    return numUpdatedRows === 1n;
  });
  // [end]
  const row = await db.selectFrom("chats").selectAll().where("id", "=", chatId).executeTakeFirstOrThrow();
  must(saved && row.summary === "a summary" && (fenceOf(row.summary_fence) ?? 0n) > 1n << 64n, "not saved");
}

async function refused() {
  await fresh("write");
  const { numUpdatedRows } = await save(db, 42, "late", FIRST).executeTakeFirstOrThrow();
  tell(
    "refused",
    "by the condition of `save`",
    `\`numUpdatedRows\` is ${numUpdatedRows}n, and \`executeTakeFirstOrThrow()\` does not throw`,
  );
  const none = await thrown(() => save(db, 42, "late", FIRST).returning("id").executeTakeFirstOrThrow());
  must(none instanceof NoResultError, "another error");
  tell("refused", "by the condition, with `returning()`", message(none));
  let refusal = "";
  // [refused]
  try {
    await stale().execute();
  } catch (error) {
    if (!(error instanceof SqliteError) || error.code !== "SQLITE_CONSTRAINT_TRIGGER") throw error;
    refusal = error.message;
  }
  // [end]
  must(refusal.startsWith("fence: stale: "), refusal);
  const told = await thrown(() => stale().execute());
  tell("refused", "by the guard, a stale fence", message(told));
  const forgot = await thrown(() => db.updateTable("chats").set({ summary: "late" }).where("id", "=", 42).execute());
  tell("refused", "by the guard, a forgotten fence", message(forgot));
}

async function afterAStatement() {
  await fresh("write");
  await thrown(() => stale().execute());
  must((await save(db, 42, "new", THIRD).executeTakeFirstOrThrow()).numUpdatedRows === 1n, "not saved");
  tell("after", "outside of a transaction", "nothing is open; the one statement is undone");
}

async function afterATransaction() {
  await fresh("write");
  await thrown(() =>
    db.transaction().execute(async (trx) => {
      await trx.updateTable("chats").set({ title: "undone" }).where("id", "=", 43).execute();
      await stale(trx).execute();
    }),
  );
  must((await title()) === "", "not undone");
  tell(
    "after",
    "in `transaction().execute()`, not caught inside",
    "all of it is undone, and the error goes on to the caller",
  );

  await db.transaction().execute(async (trx) => {
    await trx.updateTable("chats").set({ title: "kept" }).where("id", "=", 43).execute();
    await thrown(() => stale(trx).execute());
  });
  must((await title()) === "kept", "undone");
  tell("after", "in it, caught inside", "the transaction goes on; the one statement is undone");
}

async function afterASavepoint() {
  await fresh("write");
  // [savepoint]
  const trx = await db.startTransaction().execute();
  await trx.updateTable("chats").set({ title: "kept" }).where("id", "=", 43).execute();
  const inner = await trx.savepoint("summaries").execute();
  try {
    await inner.updateTable("chats").set({ summary: "new", summary_fence: FIRST }).where("id", "=", 43).execute();
    await inner.updateTable("chats").set({ summary: "late", summary_fence: FIRST }).where("id", "=", 42).execute();
    await inner.releaseSavepoint("summaries").execute();
  } catch {
    await inner.rollbackToSavepoint("summaries").execute();
  }
  await trx.commit().execute();
  // [end]
  const other = await db.selectFrom("chats").selectAll().where("id", "=", 43).executeTakeFirstOrThrow();
  must(other.title === "kept" && other.summary === "", JSON.stringify(other));
  tell("after", "in a savepoint", "the savepoint is undone, the transaction goes on");
}

async function afterReturning() {
  await fresh("write");
  const refused = await thrown(() => stale().returning("id").execute());
  must(refused instanceof SqliteError, "another error");
  const good = await save(db, 42, "new", THIRD).returning(["id", "summary_fence"]).execute();
  must(JSON.stringify(good) === JSON.stringify([{ id: 42, summary_fence: THIRD }]), JSON.stringify(good));
  const { insertId } = await db
    .insertInto("chats")
    .values({ summary: "new", summary_fence: THIRD })
    .executeTakeFirstOrThrow();
  must(insertId === 44n, `${insertId}`);
  tell("after", "`returning()`", "as without a guard: thrown by `execute()`, or the rows; `insertId` too");
}

async function afterReading() {
  await fresh("write");
  await ask(sql`pragma journal_mode = wal`);
  const other = new Database("app.db");
  const locked = await thrown(() =>
    db.transaction().execute(async (trx) => {
      await trx.selectFrom("chats").selectAll().execute();
      other.exec("update chats set title = 'changed' where id = 43");
      await save(trx, 42, "late", THIRD).execute();
    }),
  );
  must(locked instanceof SqliteError && locked.code === "SQLITE_BUSY_SNAPSHOT", String(locked));
  tell("after", "a read, long work and a write in one transaction (WAL)", `${message(locked)}; end it before the work`);
}

async function title() {
  return (await db.selectFrom("chats").select("title").where("id", "=", 43).executeTakeFirstOrThrow()).title;
}

console.log("SQLite", await ask(sql`select sqlite_version()`));
await aGoodWrite();
await refused();
await afterAStatement();
await afterATransaction();
await afterASavepoint();
await afterReturning();
await afterReading();
must((await summary()) === "by another" && SECOND > FIRST, "written");
console.log("ok");
