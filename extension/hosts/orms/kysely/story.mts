/**
 * The story that these programs play, and how they tell what they saw.
 *
 * A holder with the fence FIRST was late: another one, with the fence SECOND, wrote the row meanwhile. A line that is
 * told reads `KIND: what: cell | cell`; ../README.md says what becomes of it.
 */

import { sql, type Kysely } from "kysely";

import { connect, padded, type Tables } from "./chats.mts";

export const FIRST = padded(33132838977483490749893836800001n);
export const SECOND = padded(33132838977483490749893836800002n);
export const THIRD = padded(33132838977483490749893836800003n);
export const GUARDS = [null, "holder", "write"] as const;

export const db = connect();

/** Two chats; the fence `seen` wrote the first one. */
export async function fresh(guard: string | null = null, seen = SECOND): Promise<void> {
  await db.schema.dropTable("chats").ifExists().execute();
  await createTable(db);
  await db
    .insertInto("chats")
    .values([
      { id: 42, title: "", summary: "by another", summary_fence: seen },
      { id: 43, title: "", summary: "", summary_fence: "" },
    ])
    .execute();
  if (guard === "write") await ask(sql`select fence_guard('chats', 'summary_fence', 'write', '["summary"]')`);
  else if (guard) await ask(sql`select fence_guard('chats', 'summary_fence', ${guard})`);
}

// [table]
export async function createTable(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .createTable("chats")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("title", "text", (column) => column.notNull().defaultTo(""))
    .addColumn("summary", "text", (column) => column.notNull().defaultTo(""))
    .addColumn("summary_fence", "text", (column) => column.notNull().defaultTo(""))
    .execute();
}
// [end]

/** The first value that a statement gives. */
export async function ask(statement: ReturnType<typeof sql>, on: Kysely<any> = db): Promise<unknown> {
  const { rows } = await statement.execute(on);
  return Object.values(rows[0] as object)[0];
}

/** The first chat's summary. */
export async function summary(): Promise<string> {
  return (await db.selectFrom("chats").select("summary").where("id", "=", 42).executeTakeFirstOrThrow()).summary;
}

export function tell(kind: string, what: string, ...cells: unknown[]): void {
  must(!what.includes(": "), what);
  console.log(`${kind}: ${what}: ${cells.join(" | ")}`);
}

/** The error that this throws. */
export async function thrown(act: () => unknown): Promise<Error & { code?: string }> {
  try {
    await act();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it went well");
}

export const message = (error: Error): string => `\`${error.name}: ${error.message}\``;

/** What came of a write, in a word or two: `lands` if the summary is another one than before. */
export async function outcome(act: () => unknown): Promise<string> {
  const before = await summary();
  try {
    await act();
  } catch (error) {
    must((await summary()) === before, "refused and written");
    return /fence: ([^:]*)/.exec((error as Error).message)?.[1] ?? message(error as Error);
  }
  return (await summary()) === before ? "0 rows" : "**lands**";
}

export function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}
