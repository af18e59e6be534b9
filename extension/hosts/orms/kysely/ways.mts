/** Kysely: each way to write that one might take, without a guard and with one; and each type that one might take. */

import { sql, type ColumnDataType } from "kysely";

import { padded, save } from "./chats.mts";
import { FIRST, GUARDS, THIRD, ask, db, fresh, message, must, outcome, tell } from "./story.mts";

async function ways() {
  const chat42 = db.updateTable("chats").where("id", "=", 42);
  const stale = { summary: "late", summary_fence: FIRST };
  const row = { id: 42, title: "", ...stale };
  const tried: [string, () => unknown][] = [
    ["`save` above", () => save(db, 42, "late", FIRST).execute()],
    ["`updateTable()` with the stale fence", () => chat42.set(stale).execute()],
    ["`updateTable()` that forgets the fence", () => chat42.set({ summary: "late" }).execute()],
    ["`set()`, `undefined` for a fence", () => chat42.set({ summary: "late", summary_fence: undefined }).execute()],
    [
      "`set()`, `summary_fence + 1` for a fence",
      () => chat42.set({ summary: "late", summary_fence: sql`summary_fence + 1` }).execute(),
    ],
    [
      "`onConflict()` with the stale fence",
      () =>
        db
          .insertInto("chats")
          .values(row)
          .onConflict((conflict) => conflict.column("id").doUpdateSet(stale))
          .execute(),
    ],
    [
      "`onConflict()`, a new fence that `doUpdateSet()` leaves out",
      () =>
        db
          .insertInto("chats")
          .values({ ...row, summary_fence: THIRD })
          .onConflict((conflict) => conflict.column("id").doUpdateSet({ summary: "upserted" }))
          .execute(),
    ],
    ["`replaceInto()` with the stale fence", () => db.replaceInto("chats").values(row).execute()],
    [
      "`replaceInto()` that forgets the fence",
      () => db.replaceInto("chats").values({ id: 42, summary: "late" }).execute(),
    ],
    ["`insertInto().orIgnore()`", () => db.insertInto("chats").orIgnore().values(row).execute()],
  ];
  for (const [what, act] of tried) {
    const outcomes: string[] = [];
    for (const guard of GUARDS) {
      await fresh(guard);
      outcomes.push(await outcome(act));
    }
    tell("way", what, ...outcomes);
  }
}

async function columnTypes() {
  const tried: [ColumnDataType, string | number | bigint][] = [
    ["text", FIRST],
    ["varchar(40)", FIRST],
    ["bigint", FIRST],
    ["bigint", BigInt(FIRST)],
    ["text", Number(BigInt(FIRST))],
    ["numeric", FIRST],
    ["decimal(40, 0)", FIRST],
    ["json", FIRST],
    ["json", JSON.stringify({ fence: Number(BigInt(FIRST)) })],
  ];
  for (const [type, value] of tried) tell("type", `\`${type}\`, a ${typeof value}`, ...(await held(type, value)));
  // @ts-expect-error A number has lost digits.
  db.updateTable("chats").set({ summary_fence: Number(FIRST) });
  // @ts-expect-error SQLite's integers do not hold a fence: padded(fence).
  db.updateTable("chats").set({ summary_fence: BigInt(FIRST) });
  must(padded(BigInt(FIRST)) === FIRST, "not padded");
}

/** What a column of this type makes of a fence, and what fence_guard says to it. */
async function held(type: ColumnDataType, value: string | number | bigint) {
  await db.schema.dropTable("fences").ifExists().execute();
  await db.schema.createTable("fences").addColumn("fence", type).execute();
  let kept: string;
  try {
    await ask(sql`insert into fences values (${value}) returning 1`);
    const read = await ask(sql`select fence from fences`);
    kept = read === FIRST ? "every digit" : `\`${read}\``;
  } catch (error) {
    kept = message(error as Error);
  }
  try {
    await ask(sql`select fence_guard('fences', 'fence')`);
    return [kept, "takes it"];
  } catch (error) {
    return [kept, (error as Error).message.includes("affinity") ? "refuses it" : "refuses the row"];
  }
}

console.log("SQLite", await ask(sql`select sqlite_version()`));
await ways();
await columnTypes();
console.log("ok");
