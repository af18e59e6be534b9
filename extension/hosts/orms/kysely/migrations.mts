/** Kysely's migrations: what they do to a guard, and how it is whole again. */

import { sql, type AlterColumnBuilderCallback, type Kysely } from "kysely";
import { Migrator, type Migration } from "kysely/migration";

import { connect, type Tables } from "./chats.mts";
import { ask, message, must, tell, thrown } from "./story.mts";

// [guard]
const guard = sql`select fence_guard('chats', 'summary_fence', 'write', '["summary"]')`;

const summaryFence: Migration = {
  async up(db: Kysely<any>) {
    await db.schema
      .alterTable("chats")
      .addColumn("summary_fence", "text", (column) => column.notNull().defaultTo(""))
      .execute();
    await guard.execute(db);
  },
  async down(db: Kysely<any>) {
    await sql`select fence_unguard('chats')`.execute(db);
    await db.schema.alterTable("chats").dropColumn("summary_fence").execute();
  },
};
// [end]

const chats: Migration = {
  async up(db: Kysely<any>) {
    await db.schema
      .createTable("chats")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("title", "text")
      .addColumn("summary", "text", (column) => column.notNull().defaultTo(""))
      .execute();
  },
};

/** What SQLite cannot alter in place is built anew: create, copy, drop, rename. */
async function build(db: Kysely<any>) {
  await db.schema
    .createTable("chats_new")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("title", "text", (column) => column.notNull().defaultTo(""))
    .addColumn("summary", "text", (column) => column.notNull().defaultTo(""))
    .addColumn("summary_fence", "text", (column) => column.notNull().defaultTo(""))
    .execute();
  await sql`insert into chats_new select id, coalesce(title, ''), summary, summary_fence from chats`.execute(db);
  await db.schema.dropTable("chats").execute();
  await db.schema.alterTable("chats_new").renameTo("chats").execute();
}

// [again]
const title: Migration = {
  async up(db: Kysely<any>) {
    // Kysely begins no transaction for a migration on SQLite: without one, a writer could come in between.
    await db.transaction().execute(async (trx) => {
      await build(trx);
      await guard.execute(trx);
    });
  },
};
// [end]

const mistake: Migration = { up: build };

// [migrate]
export async function migrate(db: Kysely<any>, migrations: Record<string, Migration>): Promise<void> {
  const { error } = await new Migrator({ db, provider: { getMigrations: async () => migrations } }).migrateToLatest();
  if (error) throw error;
  const { rows } = await sql<{ verdict: string }>`
    select verdict from fence_audit where fence_column = 'summary_fence' and guard <> 'whole'
  `.execute(db);
  for (const { verdict } of rows) throw new Error(`chats: ${verdict}`);
}
// [end]

const state = (db: Kysely<any>) =>
  ask(sql`select guard from fence_audit where fence_column = 'summary_fence'`, db) as Promise<
    "whole" | "broken" | "none"
  >;

async function theGuardStays() {
  const db = connect("migrated.db");
  await migrate(db, { "1": chats, "2": summaryFence });
  must((await state(db)) === "whole", "not guarded");
  await migrate(db, { "1": chats, "2": summaryFence, "3": title });
  must((await state(db)) === "whole", "not guarded again");
  const error = await thrown(() => migrate(db, { "1": chats, "2": summaryFence, "3": title, "4": mistake }));
  must((await state(db)) === "none", "it was noticed too early");
  tell("audit", "what `migrate` says to a table that was built anew without its guard", message(error));
}

function alter(db: Kysely<Tables>, change: AlterColumnBuilderCallback) {
  return db.schema.alterTable("chats").alterColumn("title", change).execute();
}

/** Each by itself, in a transaction that is thrown away, and what is left of the guard. */
async function operations() {
  const db = connect("operations.db");
  await migrate(db, { "1": chats, "2": summaryFence });
  const tried: [string, (db: Kysely<Tables>) => Promise<unknown>][] = [
    ["`addColumn()`", (db) => db.schema.alterTable("chats").addColumn("more", "text").execute()],
    ["`dropColumn()`", (db) => db.schema.alterTable("chats").dropColumn("title").execute()],
    ["`renameColumn()`", (db) => db.schema.alterTable("chats").renameColumn("title", "name").execute()],
    ["`renameTo()`", (db) => db.schema.alterTable("chats").renameTo("talks").execute()],
    ["`createIndex()`", (db) => db.schema.createIndex("i").on("chats").column("title").execute()],
    ["`createIndex().unique()`", (db) => db.schema.createIndex("i").unique().on("chats").column("title").execute()],
    ["`alterColumn()`, `setNotNull()` (SQLite 3.54.1)", (db) => alter(db, (column) => column.setNotNull())],
    [
      "`alterColumn()`, `setDataType()` (SQLite 3.54.1)",
      (db) => alter(db, (column) => column.setDataType("varchar(200)")),
    ],
    ["create, copy, drop, rename", build],
  ];
  const words = { whole: "stays", broken: "**no longer whole**", none: "**gone**" };
  for (const [what, operate] of tried) {
    const trx = await db.startTransaction().execute();
    const refused = await operate(trx).then(
      () => null,
      (error: Error) => error,
    );
    tell("operation", what, refused ? message(refused) : words[await state(trx)]);
    await trx.rollback().execute();
  }
}

console.log("SQLite", await ask(sql`select sqlite_version()`));
await theGuardStays();
await operations();
console.log("ok");
