/** The library as a file, and loading it into a connection. */

import { fileURLToPath } from "node:url";

import type { Connection } from "./connection.js";

/** The library's path, for whatever loads extensions itself. */
export function getLoadablePath(): string {
  const suffix = process.platform === "darwin" ? "dylib" : "so";
  return fileURLToPath(new URL(`../fence.${suffix}`, import.meta.url));
}

/**
 * Loads the functions into this connection. Every connection that is to have them loads them; doing it twice is fine.
 *
 * A connection of node:sqlite must be opened with `allowExtension: true`; once the functions are loaded, it loads no
 * further extension until `enableLoadExtension(true)`.
 */
export function load(connection: Connection): void {
  connection.enableLoadExtension?.(true);
  try {
    connection.loadExtension(getLoadablePath());
  } finally {
    connection.enableLoadExtension?.(false);
  }
}
