// Faults of devices, and bad input: each is an error that says what happened and what to do.
import assert from "node:assert/strict";
import { call, open } from "./browser.js";

const DOUBLE = `
  @group(0) @binding(0) var<storage, read_write> marked: array<f32>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&marked) { marked[id.x] *= 2.0; }
  }`;

// Runs a test in a page of its own.
async function inWorker(browser, work, expected) {
  const { page, close } = await open(browser, "tests/worker.html", { expected });
  await work(page);
  await close();
}

// Faults that need WebGPU: names and tests.
export const faults = {
  "an adapter that is refused": (browser) =>
    inWorker(browser, async (page) => {
      await call(page, "refuse_adapter");
      await assert.rejects(call(page, "device", "wgpu"), /WebGPU is not available here.*help: /s);
      assert.match(await call(page, "device", ""), /^cpu:0 /);
    }),
  "a shader that the browser refuses": (browser) =>
    inWorker(browser, async (page) => {
      await call(page, "refuse_shaders", "marked");
      const refused = call(page, "compile", "wgpu", DOUBLE);
      // The browser's message, the WGSL that it was given, and that it is a defect.
      await assert.rejects(refused, /error[^]*var<storage, read_write> marked[^]*help: report this/);
      // The device still works.
      assert.equal(await call(page, "compile", "wgpu", DOUBLE.replaceAll("marked", "x")), "main");
    }),
  "a device that is lost while its work is awaited": (browser) =>
    inWorker(browser, async (page) => {
      await call(page, "watch_devices");
      const working = call(page, "multiply_add", "wgpu", 1 << 18, 8000);
      const lost = assert.rejects(working, /is lost: .*help: drop it and open a new Device/s);
      await page.waitForTimeout(300);
      await call(page, "lose_devices");
      await lost;
      const value = await call(page, "multiply_add", "wgpu", 1024, 100);
      assert(Math.abs(value - 2) < 1e-5, `a new device works: ${value}`);
    }, /destroyed|lost/i),
  "a device that a page loses": async (browser) => {
    const { page, close } = await open(browser, "edges.html", { expected: /destroyed|lost/i });
    await page.waitForSelector("text=512 × 512 pixels", { timeout: 60000 });
    const [worker] = page.workers();
    await worker.evaluate(() => {
      const create = GPUDevice.prototype.createBuffer;
      GPUDevice.prototype.createBuffer = function (descriptor) {
        globalThis.lastDevice = this;
        return create.call(this, descriptor);
      };
    });
    const radius = (value) => page.locator("#radius").fill(value);
    await radius("2");
    await page.waitForSelector("text=512 × 512 pixels", { timeout: 60000 });
    await worker.evaluate(() => globalThis.lastDevice.destroy());
    await radius("3");
    await page.waitForSelector("text=/is lost: .*; help: /", { timeout: 60000 });
    // The next run opens the device again.
    await radius("4");
    await page.waitForSelector("text=512 × 512 pixels", { timeout: 60000 });
    await close();
  },
  "a call that would have to block": (browser) =>
    inWorker(browser, (page) =>
      assert.rejects(call(page, "download_blocking", "wgpu"), /block.*help: /s),
    ),
  "a page that is closed with work in flight": async (browser) => {
    const { page, close } = await open(browser, "tests/worker.html");
    // The page is gone before the call returns.
    call(page, "multiply_add", "wgpu", 1 << 18, 8000).catch(() => {});
    await page.waitForTimeout(300);
    await close();
    await inWorker(browser, async (next) => {
      const value = await call(next, "multiply_add", "wgpu", 1024, 100);
      assert(Math.abs(value - 2) < 1e-5, `the next page works: ${value}`);
    });
  },
  "bindings and launches at the limits": (browser) =>
    inWorker(browser, async (page) => {
      for (const selector of ["wgpu", "cpu"]) {
        const found = JSON.parse(await call(page, "large_requests", selector));
        assert.equal(found.binding, 1, `the last word of a binding of 128 MiB on ${selector}`);
        assert.equal(found.groups, 1, `the last of more than 65,535 workgroups on ${selector}`);
        assert.match(found.buffer, /2\d{9} bytes.*help: /s, `a buffer of 2 GiB on ${selector}`);
      }
    }),
};
