// Starts Chromium and opens pages, for the tests.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export const [, , address, executablePath, site, nativeCases, nativeJob] = process.argv;

// As root, Chromium has no sandbox.
export const PLAIN = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
// SwiftShader computes on the processor; without the last three, devices are lost when a canvas is
// shown.
export const WEBGPU = [
  ...PLAIN,
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--enable-features=Vulkan",
  "--use-vulkan=swiftshader",
  "--use-angle=swiftshader",
];

const failures = [];

// Runs a test; prints its seconds. ONLY in the environment selects tests by a part of the name.
export async function test(name, work) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) return;
  const start = performance.now();
  try {
    await work();
    console.log(`ok: ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failures.push(name);
    console.log(`error: ${name}\n${error.stack}`);
  }
}

// Reports the failed tests by the exit status.
export function finish() {
  if (failures.length === 0) return;
  console.log(`error: failed in Chromium: ${failures.join(", ")}`);
  process.exitCode = 1;
}

// Says so, and ends the process, if Chromium does not start on this machine.
export async function exitUnlessStarted() {
  try {
    await withBrowser(PLAIN, () => {});
  } catch (error) {
    console.log(`skipped: web pages: ${executablePath} does not start: ${error.message.split("\n")[0]}`);
    process.exit(0);
  }
}

// Calls `work` with a new browser.
export async function withBrowser(args, work) {
  const browser = await chromium.launch({ executablePath, args });
  try {
    await work(browser);
  } finally {
    await browser.close();
  }
}

// Opens a page. Errors on its console, other than those that `expected` matches, fail the test when
// it is closed.
export async function open(browser, path, { expected, before, ...options } = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  if (before) await page.addInitScript(before);
  await page.goto(address + path);
  const close = async () => {
    await context.close();
    const unexpected = errors.filter((error) => !expected?.test(error));
    assert.deepEqual(unexpected, [], `errors on the console of ${path}`);
  };
  return { page, close };
}

// Calls a function of the module in the worker of `worker.html`.
export const call = (page, name, ...args) =>
  page.evaluate(([name, args]) => window.call(name, ...args), [name, args]);
