/** A connection to SQLite, in what better-sqlite3, node:sqlite and bun:sqlite have in common. */

export interface Connection {
  loadExtension(path: string): unknown;
  /** node:sqlite alone. */
  enableLoadExtension?(allow: boolean): unknown;
  prepare(sql: string): Statement;
  close(): unknown;
}

export interface Statement {
  get(...parameters: (string | bigint)[]): unknown;
}

/**
 * The answer of one call. Numbers are passed as bigints: better-sqlite3 makes a REAL of a number, and the library
 * refuses what may have lost digits.
 */
export function ask(connection: Connection, call: string, ...parameters: (string | bigint)[]): unknown {
  const row = connection.prepare(`select ${call} as answer`).get(...parameters);
  return (row as { answer: unknown }).answer;
}
