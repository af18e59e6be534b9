// better-sqlite3.
import { fork } from "node:child_process";
import { once } from "node:events";

import Database from "better-sqlite3";

const library = process.argv[2];

// [how]
function connect(file) {
  const db = new Database(file);
  db.loadExtension(library); // Or, with the npm package: load(db)
  return db;
}
// [end]

const one = (db, sql, ...parameters) => db.prepare(sql).pluck().get(...parameters);

function wrong(what, act) {
  try {
    act();
  } catch (error) {
    console.log(`wrong: ${what}: ${error.name}: ${error.message}`);
    return;
  }
  throw new Error(`${what} went well`);
}

function must(holds, otherwise) {
  if (!holds) throw new Error(otherwise);
}

const db = connect("app.db");
if (process.send) {
  // The child that is made below.
  const fence = one(db, "select fence_acquire('turn', 30000, 60000)");
  must(one(db, "select fence_release('turn', ?)", fence) === 1, "not released");
  await new Promise((sent) => process.send(fence, sent));
  process.exit();
}
console.log("SQLite", one(db, "select sqlite_version()"));
db.exec("create table chats (id integer primary key, summary text, summary_fence text not null default '')");
db.exec("insert into chats (id) values (42)");
const fence = one(db, "select fence_acquire('chat:42', 30000)");
const save = db.prepare(
  "update chats set summary = ?, summary_fence = fence_pad(?) where id = 42 and fence_ok(summary_fence, ?)",
);
must(save.run("a summary", fence, fence).changes === 1, "not saved");
must(save.run("too late", "7", "7").changes === 0, "saved late");
must(one(db, "select fence_release('chat:42', ?)", fence) === 1, "not released");

// Eight connections of one process.
const connections = Array.from({ length: 8 }, () => connect("app.db"));
const fences = connections.map((db) => one(db, "select fence from fence_acquire('of ' || random())"));
must(new Set(fences).size === 8, `${fences}`);
for (const db of connections) db.close();

// Node's fork starts a program anew, as node:cluster does: a child has nothing of its parent. The parent's lease stands.
const parents = one(db, "select fence_acquire('parent', 30000)");
const children = Array.from({ length: 4 }, () => fork(process.argv[1], [library]));
for (const [fence] of await Promise.all(children.map((child) => once(child, "message")))) fences.push(fence);
must(new Set(fences).size === 12, `${fences}`);
must(one(db, "select fence_release('parent', ?)", parents) === 1, "the parent's lease is gone");

wrong("in a connection that did not load it", () => one(new Database(":memory:"), "select fence_acquire('k')"));
wrong("a ttl bound as a number, which better-sqlite3 makes a REAL", () => one(db, "select fence_acquire('k', ?)", 30000));
must(one(db, "select fence_acquire('k', ?)", 30000n), "a bigint is an INTEGER");
wrong("a key bound as a number", () => one(db, "select fence_acquire(?)", 42));
wrong("a fence as a number", () => one(db, "select fence_pad(?)", Number(33132838977483490749893836800001n)));
wrong("a fence as a bigint", () => one(db, "select fence_pad(?)", 33132838977483490749893836800001n));
const { DatabaseSync } = await import("node:sqlite");
wrong("in node:sqlite beside better-sqlite3, in one process", () =>
  new DatabaseSync(":memory:", { allowExtension: true }).loadExtension(library),
);
console.log("ok");
