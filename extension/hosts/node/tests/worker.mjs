// What each worker of workers.test.mts does.
import { parentPort, workerData } from "node:worker_threads";

import { Locks } from "sqlite-fence";

const { module, store } = workerData;
const sqlite = await import(module);
const connect =
  module === "node:sqlite"
    ? () => new sqlite.DatabaseSync(":memory:", { allowExtension: true })
    : () => new sqlite.default(":memory:");

const locks = new Locks(store, connect);
parentPort.postMessage(await locks.lock("worker").hold(1, (lease) => lease.fence));
locks.close();
