// Runs a job and measures it; compares its results with those of the CPU device.
import { Engine } from "./client.js";

// Runs until warm times and device times are taken.
const WARM_RUNS = 3;

let reference;
let latestRun = null;

// Returns the last job that ran on another device than the CPU, with its contents and outputs; for
// the tests of the pages.
export const lastRun = () => latestRun;

// Runs a job once and reads what it writes, and then several times for its warm time. Returns the
// prepared job, its description, the outputs by binding, and times in milliseconds.
export async function runJob(engine, job, contents) {
  const begun = performance.now();
  const prepared = await engine.prepare(job, contents);
  await prepared.run();
  const info = await prepared.describe();
  const outputs = new Map();
  for (const [index, { writes }] of info.bindings.entries()) {
    if (writes) outputs.set(index, await prepared.read(index));
  }
  const first = performance.now() - begun;
  if (engine !== (await reference)) latestRun = { job, contents, outputs };
  let warm = Infinity;
  for (let run = 0; run < WARM_RUNS; run++) warm = Math.min(warm, await prepared.run());
  const device = await prepared.deviceTime();
  const times = { compile: info.compile_ms, first, warm, device };
  return { prepared, info, outputs, times };
}

// Returns the CPU device, opened once.
export function cpu() {
  reference ??= Engine.open("cpu");
  return reference;
}

// Runs a job on the CPU device, and compares its outputs with given ones. Returns for each output
// its name and the comparison.
export async function verify(job, contents, outputs, tolerance) {
  const { prepared, info, outputs: expected } = await runJob(await cpu(), job, contents);
  const found = [];
  for (const [index, bytes] of expected) {
    const comparison = await prepared.compare(index, bytes, outputs.get(index), tolerance);
    found.push({ name: info.bindings[index].name, ...comparison });
  }
  await prepared.free();
  return found;
}
