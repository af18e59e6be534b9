/**
 * What is held: a lease or a permit, live until it is let go or lost.
 *
 * It is renewed at a third of its ttl. It is lost when the store says that it is over, or when its ttl has passed since
 * the last renewal that worked. Lost it stays: it is never renewed into a new one. Who asks is answered by the clock
 * too, so an event loop that stood still learns it at its first question.
 */

import { ask, type Connection } from "./connection.js";
import { type FenceError, LeaseLost, PermitLost } from "./errors.js";

/** The longest pause that a timer takes. */
const LONGEST_MS = 2 ** 31 - 1;

/** What a lease and a permit have in common. */
export abstract class HeldThing {
  /** The key that is held, with the lock's name. */
  readonly key: string;
  readonly #aborter = new AbortController();
  #liveUntil: number;
  #timer: NodeJS.Timeout | undefined;

  /** @internal Was granted at `askedAt`, by `performance.now()`, or later. */
  constructor(
    private readonly connection: Connection,
    key: string,
    protected readonly name: string,
    private readonly ttlMs: number,
    askedAt: number,
  ) {
    this.key = key;
    this.#liveUntil = askedAt + ttlMs;
    this.#renewIn(ttlMs / 3);
  }

  /** Whether it has ended before the work. A fence refuses what is written late; this saves the effort. */
  get lost(): boolean {
    if (!this.#aborter.signal.aborted && performance.now() >= this.#liveUntil) this.#lose();
    return this.#aborter.signal.aborted;
  }

  /** Aborts when it is lost: for whatever takes a signal, such as `fetch`. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** Throws if it is lost. */
  check(): void {
    if (this.lost) throw this.lostError();
  }

  /** @internal Gives it back; whether it was live to the end. Where the store cannot be asked, the clock answers. */
  letGo(): boolean {
    clearTimeout(this.#timer);
    const lost = this.lost;
    try {
      return Number(this.release(this.connection)) === 1 && !lost;
    } catch {
      return !lost;
    }
  }

  /** @internal */
  abstract lostError(): FenceError;
  /** @internal */
  protected abstract renew(connection: Connection, ttlMs: bigint): unknown;
  /** @internal */
  protected abstract release(connection: Connection): unknown;

  #renewIn(pauseMs: number): void {
    this.#timer = setTimeout(() => this.#renew(), Math.min(Math.max(pauseMs, 1), LONGEST_MS));
    this.#timer.unref(); // It is the work that keeps the process alive.
  }

  #renew(): void {
    const askedAt = performance.now();
    let renewed: boolean;
    try {
      renewed = Number(this.renew(this.connection, BigInt(this.ttlMs))) === 1;
    } catch {
      // Trouble with the store may pass before the ttl does.
      if (!this.lost) this.#renewIn(this.ttlMs / 24);
      return;
    }
    if (renewed) {
      this.#liveUntil = askedAt + this.ttlMs;
      this.#renewIn(this.ttlMs / 3);
    } else {
      this.#lose();
    }
  }

  #lose(): void {
    clearTimeout(this.#timer);
    this.#aborter.abort(this.lostError());
  }
}

/** A key held, with its fence: write it with everything that is written under the lease. */
export class Lease extends HeldThing {
  /** The fence as a number, with every digit. SQLite's integers do not hold it: write `padded`. */
  get fence(): bigint {
    return BigInt(this.name);
  }

  /** The fence as plain decimal text. */
  get wire(): string {
    return this.name;
  }

  /** The fence as 40 digits, so that text order is number order: for a TEXT column. */
  get padded(): string {
    return this.name.padStart(40, "0");
  }

  /** @internal */
  lostError(): FenceError {
    return new LeaseLost(
      `fence: the lease of ${JSON.stringify(this.key)} with fence ${this.name} was lost before its holder was done: ` +
        "whatever it wrote late was refused if it was written with the fence",
    );
  }

  /** @internal */
  protected renew(connection: Connection, ttlMs: bigint): unknown {
    return ask(connection, "fence_renew(?, ?, ?)", this.key, this.name, ttlMs);
  }

  /** @internal */
  protected release(connection: Connection): unknown {
    return ask(connection, "fence_release(?, ?)", this.key, this.name);
  }
}

/** One of a semaphore's permits. It has no fence: three valid holders at once would refuse each other's writes. */
export class Permit extends HeldThing {
  /** The permit's id, text that is no number. */
  get id(): string {
    return this.name;
  }

  /** @internal */
  lostError(): FenceError {
    return new PermitLost(
      `fence: the permit ${this.name} of ${JSON.stringify(this.key)} was lost before its holder was done`,
    );
  }

  /** @internal */
  protected renew(connection: Connection, ttlMs: bigint): unknown {
    return ask(connection, "semaphore_renew(?, ?, ?)", this.key, this.name, ttlMs);
  }

  /** @internal */
  protected release(connection: Connection): unknown {
    return ask(connection, "semaphore_release(?, ?)", this.key, this.name);
  }
}
