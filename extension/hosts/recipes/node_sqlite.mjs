// node:sqlite, which Node has since version 22.
import { DatabaseSync } from "node:sqlite";

const library = process.argv[2];

// [how]
function connect(file) {
  const db = new DatabaseSync(file, { allowExtension: true });
  db.loadExtension(library); // Or, with the npm package: load(db)
  db.enableLoadExtension(false);
  return db;
}
// [end]

const one = (db, sql, ...parameters) => Object.values(db.prepare(sql).get(...parameters))[0];

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

const connections = Array.from({ length: 8 }, () => connect("app.db"));
const fences = connections.map((db) => one(db, "select fence from fence_acquire('of ' || random())"));
must(new Set(fences).size === 8, `${fences}`);
for (const db of connections) db.close();

wrong("without allowExtension", () => new DatabaseSync(":memory:").loadExtension(library));
wrong("in a connection that did not load it", () => one(new DatabaseSync(":memory:"), "select fence_acquire('k')"));
wrong("a fence as a number", () => one(db, "select fence_pad(?)", Number(33132838977483490749893836800001n)));
wrong("a fence as a bigint", () => one(db, "select fence_pad(?)", 33132838977483490749893836800001n));
db.close();
console.log("ok");
