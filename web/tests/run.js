// Tests of the web pages in Chromium: node run.js ADDRESS CHROMIUM SITE NATIVE_CASES NATIVE_JOB
import assert from "node:assert/strict";
import { PLAIN, WEBGPU, call, exitUnlessStarted, finish, open, test, withBrowser } from "./browser.js";
import { compareCases, conformance } from "./conformance.js";
import { faults } from "./faults.js";
import { firstResult, sizes } from "./numbers.js";
import { pages, screenshots } from "./pages.js";
import { scripts } from "./scripts.js";

await exitUnlessStarted();
await test("sizes", sizes);
await withBrowser(WEBGPU, async (browser) => {
  await test("first result beside a bare page", () => firstResult(browser));
  for (const [name, work] of Object.entries(pages)) await test(name, () => work(browser, true));
  await test("screenshots", () => screenshots(browser));
  let webgpu, cpu;
  await test("conformance on WebGPU", async () => {
    webgpu = await conformance(browser, "wgpu");
  });
  await test("conformance on the CPU", async () => {
    cpu = await conformance(browser, "cpu");
  });
  if (webgpu && cpu) await test("cases are those of a native build", () => compareCases(cpu, webgpu));
  for (const [name, work] of Object.entries(faults)) await test(name, () => work(browser));
});
await withBrowser(PLAIN, async (browser) => {
  await test("without WebGPU the processor computes", async () => {
    const { page, close } = await open(browser, "tests/worker.html");
    assert.match(await call(page, "device", ""), /^cpu:0 /);
    await assert.rejects(call(page, "device", "wgpu"), /WebGPU is not available here/);
    await close();
  });
  for (const [name, work] of Object.entries(pages)) {
    await test(`without WebGPU: ${name}`, () => work(browser, false));
  }
  for (const [name, work] of Object.entries(scripts)) await test(`scripts: ${name}`, () => work(browser));
  const noWorkers = { before: () => delete globalThis.Worker };
  await test("without workers the engine runs on the page", async () => {
    const { page, close } = await open(browser, "edges.html", noWorkers);
    await page.waitForSelector("text=on the page: no workers here", { timeout: 60000 });
    await close();
  });
  const noStorage = {
    before: () => {
      for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"]) {
        Object.defineProperty(globalThis, name, {
          get() {
            throw new DOMException("denied", "SecurityError");
          },
        });
      }
    },
  };
  await test("with storage denied", async () => {
    const { page, close } = await open(browser, "edges.html", noStorage);
    await page.waitForSelector("text=512 × 512 pixels", { timeout: 60000 });
    await close();
  });
  await test("with the network cut after the page is loaded", async () => {
    const { page, close } = await open(browser, "playground.html");
    await page.waitForSelector("#cpu canvas", { timeout: 60000 });
    await page.context().setOffline(true);
    await page.selectOption("#example", "1");
    await page.waitForSelector("#cpu svg", { timeout: 60000 });
    await close();
  });
});
finish();
