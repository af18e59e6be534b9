/** The tables and the connection, as an application has them. */

import Database from "better-sqlite3";
import { Kysely, SqliteDialect, type Generated } from "kysely";
import { load } from "sqlite-fence";

// [type]
/** A fence in the database: TEXT of 40 digits, or '' where none was seen yet. A lease has it as `lease.padded`. */
export type Padded = string;

export const padded = (fence: bigint): Padded => fence.toString().padStart(40, "0");
export const fenceOf = (stored: Padded): bigint | null => (stored === "" ? null : BigInt(stored));

export interface Tables {
  chats: {
    id: Generated<number>;
    title: Generated<string>;
    summary: Generated<string>;
    summary_fence: Generated<Padded>;
  };
}
// [end]

// [connect]
export function connect(file = "app.db"): Kysely<Tables> {
  const database = new Database(file);
  load(database);
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database }) });
}
// [end]

// [save]
/** Changes one row, or none: then a holder that came later has written. */
export function save(db: Kysely<Tables>, chatId: number, summary: string, fence: Padded) {
  return db
    .updateTable("chats")
    .set({ summary, summary_fence: fence })
    .where("id", "=", chatId)
    .where("summary_fence", "<", fence);
}
// [end]
