/** Loading, using and closing in worker threads, with the SQLite module that FENCE_TEST_MODULE names. */

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

const module = process.env.FENCE_TEST_MODULE ?? "";
const store = join(mkdtempSync(join(tmpdir(), "fence-")), "kv.db");

/** A worker holds a key once; gives the fence. */
function work(): Promise<bigint> {
  return new Promise((resolve, reject) => {
    let fence: bigint | undefined;
    const worker = new Worker(new URL("worker.mjs", import.meta.url), { workerData: { module, store } });
    worker.on("message", (message: { fence: bigint }) => (fence = message.fence));
    worker.on("error", reject);
    worker.on("exit", (code) =>
      code === 0 && fence !== undefined ? resolve(fence) : reject(new Error(`it ended with ${code}`)),
    );
  });
}

test("200 workers one after another and 8 at once load, use and close", async () => {
  const fences: bigint[] = [];
  for (let i = 0; i < 200; i += 1) fences.push(await work());
  assert.ok(fences.every((fence, i) => i === 0 || fence > fences[i - 1]!));
  const together = await Promise.all(Array.from({ length: 8 }, work));
  assert.equal(new Set([...fences, ...together]).size, 208);
});
