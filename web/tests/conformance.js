// The conformance suite in a worker of a page.
import assert from "node:assert/strict";
import { call, nativeCases, open } from "./browser.js";

// Runs the suite on a device; returns its report.
export async function conformance(browser, selector) {
  const { page, close } = await open(browser, "tests/worker.html");
  const report = JSON.parse(await call(page, "run_conformance", selector));
  await close();
  printSkipped(report);
  for (const line of report.failed) console.log(`error: on ${report.device}: ${line}`);
  console.log(
    `${report.tests.length} tests, ${report.cases} cases, ${report.skipped.length} of them skipped, ` +
      `on ${report.device}`,
  );
  assert.equal(report.failed.length, 0, `${report.failed.length} cases failed`);
  return report;
}

// Prints what was skipped: a line for the cases of a test with the same reason. Set VERBOSE in the
// environment for each case.
function printSkipped({ device, skipped }) {
  const counts = new Map();
  for (const line of skipped) {
    const [test] = line.match(/^\w+::\w+/);
    const reason = line.split(": ").slice(2).join(": ");
    const key = process.env.VERBOSE ? line : `${test}: ${reason}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  for (const [line, count] of counts) console.log(`skipped on ${device}: ${line} (${count})`);
}

// Checks that two devices of a browser ran the cases that a native build has. Tests whose cases
// depend on limits of the device are printed.
export function compareCases(cpu, webgpu) {
  assert.equal(String(cpu.cases), nativeCases, "cases of a native build");
  assert.deepEqual(
    webgpu.tests.map(([name]) => name),
    cpu.tests.map(([name]) => name),
  );
  cpu.tests.forEach(([name, cases], index) => {
    const other = webgpu.tests[index][1];
    if (other !== cases) {
      console.log(`${name}: ${other} cases on WebGPU, ${cases} on the CPU, by the limits`);
      assert(other > 0, name);
    }
  });
}
