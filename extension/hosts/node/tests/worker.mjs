// What each worker of workers.test.mts and workers_alone.mjs does: it holds a key, says with which fence and where in
// memory its SQLite is, and ends.
import { readFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";

import { Locks } from "sqlite-fence";

const { module, store, end = "closed" } = workerData;
const sqlite = await import(module);
const connect =
  module === "node:sqlite"
    ? () => new sqlite.DatabaseSync(":memory:", { allowExtension: true })
    : () => new sqlite.default(":memory:");
/** Where the addon stands; nothing for a SQLite that is Node's own. */
const place = () => readFileSync("/proc/self/maps", "utf8").match(/^.*\.node$/m)?.[0];

const locks = new Locks(store, connect);
const fence = await locks.lock("worker").hold(1, (lease) => lease.fence);
parentPort.postMessage({ fence, place: place() });
if (end === "closed") locks.close();
if (end === "exit") process.exit();
if (end === "terminated") {
  await locks.lock("terminated").hold(fence, () => new Promise(() => setInterval(() => {}, 60_000)));
}
