// Runs a job and measures it; compares its results with those of the CPU device.
import { Engine, restart } from "./client.js";

// Runs until warm times and device times are taken.
const WARM_RUNS = 3;

let reference;
let latestRun = null;

// Returns the last job that ran on another device than the CPU, with its contents and outputs; for
// the tests of the pages.
export const lastRun = () => latestRun;

// Runs a job once and reads what it writes, and then several times for its warm time. Returns its
// description, the outputs by binding, and times in milliseconds. `use` is called with the prepared
// job and these, before the job is freed.
export async function runJob(engine, job, contents, use = () => {}) {
  const begun = performance.now();
  const prepared = await engine.prepare(job, contents);
  try {
    const done = await measure(prepared, begun);
    if (engine !== (await reference)) latestRun = { job, contents, outputs: done.outputs };
    await use(prepared, done);
    return done;
  } finally {
    // With its device, the job is lost too.
    await prepared.free().catch(() => {});
  }
}

async function measure(prepared, begun) {
  await prepared.run();
  const info = await prepared.describe();
  const outputs = new Map();
  for (const [index, { writes }] of info.bindings.entries()) {
    if (writes) outputs.set(index, await prepared.read(index));
  }
  const first = performance.now() - begun;
  let warm = Infinity;
  for (let run = 0; run < WARM_RUNS; run++) warm = Math.min(warm, await prepared.run());
  const device = await prepared.deviceTime();
  return { info, outputs, times: { compile: info.compile_ms, first, warm, device } };
}

// Returns the CPU device, opened once.
export function cpu() {
  reference ??= Engine.open("cpu");
  return reference;
}

// Ends all runs, also kernels that never end.
export function stopRuns() {
  restart("stopped");
  reference = undefined;
}

// Runs a job on the CPU device, and compares its outputs with given ones. Returns for each output
// its name and the comparison.
export async function verify(job, contents, outputs, tolerance) {
  const found = [];
  await runJob(await cpu(), job, contents, async (prepared, { info, outputs: expected }) => {
    for (const [index, bytes] of expected) {
      const comparison = await prepared.compare(index, bytes, outputs.get(index), tolerance);
      found.push({ name: info.bindings[index].name, ...comparison });
    }
  });
  return found;
}
