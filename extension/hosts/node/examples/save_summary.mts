/**
 * Saves a summary under a hold, and shows that a late holder is refused.
 *
 *     npm install ./dist/sqlite-fence-*.tgz better-sqlite3
 *     node save_summary.mts
 *
 * Two workers on one app.db. The first takes `summaries:42` and its process stands still for longer than its lease lasts,
 * as a long garbage collection or a moved virtual machine makes it. The second takes the key and saves. The first comes
 * back, believes that it still holds the key, and saves as well.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import Database from "better-sqlite3";
import { LeaseLost, Locks } from "sqlite-fence";

const chatId = 42;

/** What a worker does; everything else here is the story around it. */
async function work(name: string, ttlMs: number, pause = async () => {}): Promise<void> {
  const db = new Database("app.db");
  const summaries = new Locks("kv.db", () => new Database(":memory:")).lock("summaries", { ttlMs });
  try {
    await summaries.hold(chatId, async (lease) => {
      const summary = `what ${name} found`;
      await pause();
      const saved = db
        .prepare("update chats set summary = ?, summary_fence = ? where id = ? and summary_fence < ?")
        .run(summary, lease.padded, chatId, lease.padded);
      console.log(`${name}: changes ${saved.changes}`);
    });
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    console.log(`${name}: the lease was lost`);
  }
}

async function story(): Promise<void> {
  process.chdir(mkdtempSync(join(tmpdir(), "fence-")));
  const db = new Database("app.db");
  db.exec("create table chats (id integer primary key, summary text, summary_fence text not null default '')");
  db.prepare("insert into chats (id) values (?)").run(chatId);

  const first = fork(import.meta.filename, ["first"]);
  await once(first, "message"); // It holds the key, and stands still.
  await work("second", 30_000); // Waits until the lease of the first has run out.
  const goOn = setInterval(() => first.kill("SIGCONT"), 50);
  await once(first, "exit");
  clearInterval(goOn);

  console.log("stayed:", db.prepare("select summary from chats").pluck().get());
}

if (process.argv[2] === "first") {
  await work("first", 300, async () => {
    await new Promise((sent) => process.send?.("holds", sent));
    process.kill(process.pid, "SIGSTOP"); // Stands still, until somebody lets it go on.
  });
  process.disconnect();
} else {
  await story();
}
