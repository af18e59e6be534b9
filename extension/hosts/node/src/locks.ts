/**
 * The locks and semaphores of one store, and `hold`, which does the whole of it: waits, takes, renews, releases.
 *
 * Waiting never blocks the event loop: it asks, which takes microseconds, and sets a timer. So a waiter here stands in no
 * line; one in another process that waits inside the library is served before it.
 */

import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { ask, type Connection } from "./connection.js";
import { FenceError, Held } from "./errors.js";
import { Lease, Permit } from "./held.js";
import { load } from "./library.js";

/** The pause after the first question, and the longest one, in milliseconds. */
const SHORTEST_MS = 1;
const LONGEST_MS = 25;

export interface SemaphoreOptions {
  /** How long a lease or a permit lasts without renewal; 30,000 unless said otherwise. */
  ttlMs?: number;
  /** How long `hold` waits; 30,000 unless said otherwise: as long as a lease lasts whose holder has died. */
  waitMs?: number;
  /** Whether it ends at once when this process ends. */
  bound?: boolean;
}

export interface LockOptions extends SemaphoreOptions {
  /** How long a key stays closed after a lease that ended without release. */
  delayMs?: number;
}

export interface HoldOptions {
  /** How long this hold waits. */
  waitMs?: number;
  /** Ends the wait when it aborts; the hold then rejects with its reason. */
  signal?: AbortSignal;
}

/**
 * The locks and semaphores of the store at this path, or at this location of a cluster.
 *
 * `connect` opens a connection to a database in memory, with the module that your own database is opened with: a process
 * must use one SQLite library.
 */
export class Locks {
  #store: string;
  readonly #connect: () => Connection;
  #connection: Connection | undefined;

  constructor(store: string, connect: () => Connection) {
    if (store === "" || store === ":memory:") {
      throw new FenceError(
        `fence: ${JSON.stringify(store)} is no file that could be shared: give the path of a store, such as kv.db`,
      );
    }
    // A path is the same file after a change of folder. What is none is the library's to read.
    this.#store = /^(file:|etcds?:\/\/)/.test(store) ? store : resolve(store);
    this.#connect = connect;
  }

  /** The lock of this name. The key that is taken is the name, a colon and the key that is given to `hold`. */
  lock(name: string, options: LockOptions = {}): Lock {
    return new Lock(() => this.#open(), name, options);
  }

  /** The semaphore of this key, of which at most `limit` permits are live. */
  semaphore(key: string, limit: number, options: SemaphoreOptions = {}): Semaphore {
    return new Semaphore(() => this.#open(), key, limit, options);
  }

  /** Closes the connection. What is still held is not renewed any more, and ends with its ttl. */
  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  #open(): Connection {
    if (this.#connection === undefined) {
      const connection = this.#connect();
      load(connection);
      const opened = ask(connection, "fence_open(?)", this.#store);
      if (this.#store.startsWith("file:")) this.#store = String(opened); // Now it is a path.
      this.#connection = connection;
    }
    return this.#connection;
  }
}

/** A named family of keys. Made by `Locks.lock`. */
export class Lock {
  readonly #open: () => Connection;
  readonly #name: string;
  readonly #options: LockOptions;

  /** @internal */
  constructor(open: () => Connection, name: string, options: LockOptions) {
    this.#open = open;
    this.#name = name;
    this.#options = options;
  }

  /**
   * Takes the key, runs the work with its lease, renews it meanwhile, and releases it at the end.
   *
   * Gives what the work gives. Rejects with `Held` when the wait was over, and the work did not run; with `LeaseLost`
   * when the work succeeded and the lease had ended before it.
   */
  hold<T>(
    key: string | number | bigint,
    work: (lease: Lease) => Promise<T> | T,
    options: HoldOptions = {},
  ): Promise<T> {
    const full = `${this.#name}:${key}`;
    const { ttlMs, waitMs, delayMs, bound } = withDefaults(this.#options);
    const rest = JSON.stringify({ delay_ms: delayMs, bound });
    const take = (): Lease | undefined => {
      const connection = this.#open();
      const askedAt = performance.now();
      const fence = ask(connection, "fence_acquire(?, ?, 0, ?)", full, BigInt(ttlMs), rest);
      return fence === null ? undefined : new Lease(connection, full, String(fence), ttlMs, askedAt);
    };
    return hold(full, take, work, { waitMs, ...options });
  }
}

/** A number of permits of one key. Made by `Locks.semaphore`. */
export class Semaphore {
  readonly #open: () => Connection;
  readonly #key: string;
  readonly #limit: number;
  readonly #options: SemaphoreOptions;

  /** @internal */
  constructor(open: () => Connection, key: string, limit: number, options: SemaphoreOptions) {
    this.#open = open;
    this.#key = key;
    this.#limit = limit;
    this.#options = options;
  }

  /** Takes a permit as `Lock.hold` takes a key. Rejects with `PermitLost` when it had ended before the work. */
  hold<T>(work: (permit: Permit) => Promise<T> | T, options: HoldOptions = {}): Promise<T> {
    const { ttlMs, waitMs, bound } = withDefaults(this.#options);
    const take = (): Permit | undefined => {
      const connection = this.#open();
      const askedAt = performance.now();
      const call = "semaphore_acquire(?, ?, ?, 0, ?)";
      const id = ask(connection, call, this.#key, BigInt(this.#limit), BigInt(ttlMs), JSON.stringify({ bound }));
      return id === null ? undefined : new Permit(connection, this.#key, String(id), ttlMs, askedAt);
    };
    return hold(this.#key, take, work, { waitMs, ...options });
  }
}

async function hold<H extends Lease | Permit, T>(
  key: string,
  take: () => H | undefined,
  work: (held: H) => Promise<T> | T,
  options: HoldOptions & { waitMs: number },
): Promise<T> {
  const held = await takeInTime(take, options);
  if (held === undefined) {
    throw new Held(
      `fence: ${JSON.stringify(key)} is held by somebody else, after waiting ${options.waitMs} ms: ` +
        "wait longer, or try again later",
    );
  }
  let done: T;
  try {
    done = await work(held);
  } catch (error) {
    held.letGo();
    throw error;
  }
  if (!held.letGo()) throw held.lostError();
  return done;
}

async function takeInTime<H>(
  take: () => H | undefined,
  { waitMs, signal }: HoldOptions & { waitMs: number },
): Promise<H | undefined> {
  const deadline = performance.now() + waitMs;
  let pause = SHORTEST_MS;
  for (;;) {
    signal?.throwIfAborted();
    const held = take();
    if (held !== undefined) return held;
    const left = deadline - performance.now();
    if (left <= 0) return undefined;
    await sleep(Math.min(pause, left));
    pause = Math.min(pause * 1.5, LONGEST_MS);
  }
}

function withDefaults(options: LockOptions): Required<LockOptions> {
  return { ttlMs: 30_000, waitMs: 30_000, delayMs: 0, bound: false, ...options };
}
