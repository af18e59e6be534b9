// Workers alone use the SQLite module of this name, one after another; the main thread never does. So an addon leaves
// the process with each worker, and comes back with the next one. Called with the store's path and the module's name.
import { writeSync } from "node:fs";
import { Worker } from "node:worker_threads";

const [store, module] = process.argv.slice(2);
// Its connection closed, or left open for the end of the worker to close; terminated inside a hold; by process.exit().
const ends = ["closed", "left open", "terminated", "exit"];

/** Runs a worker to its end; gives its fence, and where in memory the addon was. */
function work(end) {
  return new Promise((resolve, reject) => {
    let done;
    const worker = new Worker(new URL("worker.mjs", import.meta.url), { workerData: { module, store, end } });
    worker.on("message", (fence) => {
      done = fence;
      if (end === "terminated") worker.terminate();
    });
    worker.on("error", reject);
    worker.on("exit", () => (done === undefined ? reject(new Error("no fence")) : resolve(done)));
  });
}

let last = 0n;
const holes = [];
const places = new Set();
for (let i = 0; i < 40; i += 1) {
  const { fence, place } = await work(ends[i % ends.length]);
  if (fence <= last) throw new Error(`${fence} after ${last}`);
  last = fence;
  places.add(place);
  holes.push(new ArrayBuffer(2 ** 21)); // So that the next one does not find the place free.
}
writeSync(1, places.size > 1 ? "40 workers, each with a larger fence\n" : "the addon never moved\n");
