/** Holding locks and semaphores, with the SQLite module that FENCE_TEST_MODULE names. */

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { type Connection, getLoadablePath, Held, LeaseLost, load, Locks, PermitLost } from "sqlite-fence";

const module = process.env.FENCE_TEST_MODULE;
const connect = await opener();
const store = join(mkdtempSync(join(tmpdir(), "fence-")), "kv.db");
const locks = new Locks(store, connect);
// Another program, as far as the package knows.
const db = connect();
load(db);
one("select fence_open(?) as answer", store);
after(() => locks.close());

/** Each module by its own name; no two in one process. */
async function opener(): Promise<() => Connection> {
  if (module === "better-sqlite3") {
    const { default: Database } = await import("better-sqlite3");
    return () => new Database(":memory:");
  }
  if (module === "node:sqlite") {
    const { DatabaseSync } = await import("node:sqlite");
    return () => new DatabaseSync(":memory:", { allowExtension: true });
  }
  if (module === "bun:sqlite") {
    const { Database } = await import("bun:sqlite");
    return () => new Database(":memory:");
  }
  throw new Error(`FENCE_TEST_MODULE is ${module}`);
}

function one(sql: string, ...parameters: (string | bigint)[]): unknown {
  return (db.prepare(sql).get(...parameters) as { answer: unknown }).answer;
}

function held(): unknown {
  return one("select group_concat(key) as answer from (select key from fence_leases order by key)");
}

/** Ends the lease behind its holder's back. */
function end(lease: { key: string; wire: string }): void {
  assert.equal(Number(one("select fence_release(?, ?) as answer", lease.key, lease.wire)), 1);
}

async function until(done: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!done()) {
    assert.ok(performance.now() < deadline, "waited in vain");
    await sleep(2);
  }
}

test("the functions are there, twice is fine, and no further extension loads", () => {
  load(db);
  assert.equal(one("select fence_pad('7') as answer"), "7".padStart(40, "0"));
  assert.match(getLoadablePath(), /^\/.*\/fence\.(so|dylib)$/);
  assert.throws(() => one("select load_extension('anything') as answer"));
});

test("a path and a URI name the same store, also after a change of folder", async () => {
  const [here, elsewhere] = [process.cwd(), mkdtempSync(join(tmpdir(), "fence-"))];
  process.chdir(dirname(store));
  try {
    const [byPath, byUri] = [new Locks("kv.db", connect), new Locks("file:kv.db", connect)];
    await byUri.lock("chat").hold(1, () => assert.equal(held(), "chat:1"));
    byUri.close(); // The next hold opens another connection.
    process.chdir(elsewhere);
    await byPath.lock("chat").hold(2, () =>
      byUri.lock("chat").hold(3, () => assert.equal(held(), "chat:2,chat:3")),
    );
    byPath.close();
    byUri.close();
  } finally {
    process.chdir(here);
  }
  assert.deepEqual(readdirSync(elsewhere), []);
});

test("the key is held inside and free outside", async () => {
  const answer = await locks.lock("chat").hold(42, async (lease) => {
    assert.equal(lease.key, "chat:42");
    assert.equal(held(), "chat:42");
    return "done";
  });
  assert.equal(answer, "done");
  assert.equal(held(), null);
});

test("a fence keeps every digit in each spelling", async () => {
  const chat = locks.lock("chat");
  const first = await chat.hold(42, (lease) => {
    const told = one("select fence as answer from fence_leases");
    assert.equal(typeof lease.fence, "bigint");
    assert.equal(lease.fence.toString(), told);
    assert.equal(lease.wire, told);
    assert.equal(lease.padded, one("select fence_pad(?) as answer", lease.wire));
    return lease.fence;
  });
  assert.ok(await chat.hold(42, (lease) => lease.fence > first));
});

test("who does not wait is told that it is held", async () => {
  const chat = locks.lock("chat");
  await chat.hold(42, () =>
    assert.rejects(
      chat.hold(42, () => assert.fail("nobody else may be in here"), { waitMs: 0 }),
      (error) => error instanceof Held && /^fence: "chat:42" is held by somebody else, after waiting 0 ms: /.test(error.message),
    ),
  );
});

test("waiting leaves the event loop free and ends with the release", async () => {
  const chat = locks.lock("chat");
  const order: string[] = [];
  let second: Promise<unknown> | undefined;
  await chat.hold(42, async () => {
    second = chat.hold(42, () => order.push("second"));
    for (let turn = 0; turn < 50; turn += 1) await sleep(1);
    order.push("first");
  });
  await second;
  assert.deepEqual(order, ["first", "second"]);
});

test("a wait ends when its signal aborts, and takes nothing", async () => {
  const chat = locks.lock("chat");
  const aborter = new AbortController();
  await chat.hold(42, async () => {
    const waits = chat.hold(42, () => assert.fail("it was aborted"), { signal: aborter.signal });
    aborter.abort(new Error("no longer wanted"));
    await assert.rejects(waits, /no longer wanted/);
  });
  assert.equal(held(), null);
});

test("it is renewed for as long as the work lasts", async () => {
  await locks.lock("chat", { ttlMs: 300 }).hold(42, async (lease) => {
    const begun = performance.now();
    await until(() => performance.now() - begun > 1000);
    assert.equal(lease.lost, false);
    lease.check();
    assert.equal(held(), "chat:42");
  });
});

test("a ttl longer than any timer is renewed no sooner", async () => {
  await locks.lock("chat", { ttlMs: 365 * 86_400_000 }).hold(42, async (lease) => {
    await sleep(20);
    assert.equal(lease.lost, false);
  });
});

test("a lost lease is told in between, by its signal, and at the end", async () => {
  const hold = locks.lock("chat", { ttlMs: 90 }).hold(42, async (lease) => {
    end(lease);
    await until(() => lease.signal.aborted);
    assert.equal(lease.lost, true);
    assert.throws(() => lease.check(), LeaseLost);
  });
  await assert.rejects(hold, (error) => error instanceof LeaseLost && /^fence: the lease of "chat:42" /.test(error.message));
});

test("the end tells even what no renewal found out", async () => {
  await assert.rejects(locks.lock("chat").hold(42, (lease) => end(lease)), LeaseLost);
});

test("an event loop that stood still knows it at once", async () => {
  const hold = locks.lock("chat", { ttlMs: 20 }).hold(42, (lease) => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40);
    assert.equal(lease.lost, true);
  });
  await assert.rejects(hold, LeaseLost);
});

test("an error of the work releases and goes its way", async () => {
  const mine = new Error("mine");
  await assert.rejects(locks.lock("chat").hold(42, () => Promise.reject(mine)), mine);
  assert.equal(held(), null);
});

test("trouble with the store is its own error and not held", async () => {
  const nowhere = new Locks(join(store, "no", "kv.db"), connect);
  await assert.rejects(nowhere.lock("chat").hold(42, () => assert.fail("no store")), /^Error|SqliteError: fence: |fence: /);
  assert.throws(() => new Locks(":memory:", connect), /give the path of a store/);
});

test("options reach the store", async () => {
  await locks.lock("chat", { delayMs: 1234, bound: true }).hold(42, () => {
    assert.equal(one("select delay_ms || ' ' || bound as answer from fence_leases"), "1234 1");
  });
});

test("no more permits than the limit, and they are no fences", async () => {
  const gpu = locks.semaphore("gpu", 2);
  await gpu.hold((first) =>
    gpu.hold(async (second) => {
      assert.notEqual(first.id, second.id);
      assert.throws(() => one("select fence_pad(?) as answer", first.id));
      await assert.rejects(gpu.hold(() => assert.fail("a third one"), { waitMs: 0 }), Held);
    }),
  );
  assert.equal(held(), null);
});

test("a lost permit is told", async () => {
  const hold = locks.semaphore("gpu", 2).hold((permit) => {
    assert.equal(Number(one("select semaphore_release(?, ?) as answer", permit.key, permit.id)), 1);
  });
  await assert.rejects(hold, PermitLost);
});
