// Each page is driven as a user would, and its results are compared with those of a native build.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { address, nativeJob, open, site } from "./browser.js";

// Waits until a text of the page matches.
const text = (page, selector, pattern) =>
  page.waitForFunction(
    ([selector, source]) => new RegExp(source).test(document.querySelector(selector)?.textContent),
    [selector, pattern.source],
    { timeout: 60000 },
  );

// Presses "Verify against CPU"; returns the verdicts.
async function verify(page) {
  await page.getByRole("button", { name: "Verify against CPU" }).click();
  await page.waitForSelector("#report .good, #report .bad", { timeout: 60000 });
  const rows = await page.locator("#report .good, #report .bad").allTextContents();
  assert.equal(await page.locator("#report .bad").count(), 0, rows.join("; "));
  assert(rows.length > 0);
  return rows;
}

// Runs the last job of a page on the native CPU device, and compares the page's outputs with it.
async function compareWithNative(page, name, tolerance) {
  const run = await page.evaluate(async () => {
    const { lastRun } = await import("./js/measure.js");
    const { job, contents, outputs } = lastRun();
    const base64 = (view) =>
      new Promise((resolve) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result.split(",")[1]);
        reader.readAsDataURL(new Blob([view]));
      });
    const written = [...outputs].map(async ([index, bytes]) => [index, await base64(bytes)]);
    return {
      job,
      inputs: await Promise.all(contents.map(base64)),
      written: await Promise.all(written),
    };
  });
  const folder = join(site, "jobs", name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const write = (name, text) => writeFileSync(join(folder, name), Buffer.from(text, "base64"));
  run.inputs.forEach((text, index) => write(`input-${index}`, text));
  run.written.forEach(([index, text]) => write(`output-${index}`, text));
  const outputs = run.written.map(([index]) => index);
  const buffers = run.inputs.map((text) => Buffer.from(text, "base64").length);
  const job = { ...run.job, buffers, outputs, tolerance };
  const compare = (job) => {
    writeFileSync(join(folder, "job.json"), JSON.stringify(job));
    return spawnSync(nativeJob, [folder], { encoding: "utf8" });
  };
  const { status, stdout, stderr } = compare(job);
  console.log(`  native: ${stdout.trim()}`);
  assert.equal(status, 0, stderr);
  // An output that the page lacks is a difference.
  assert.match(compare({ ...job, outputs: outputs.slice(1) }).stderr, /writes \d buffers, the page has/);
}

// Tests of the pages: names and tests. `webgpu` says whether the browser has it.
export const pages = {
  "the explorer links lines and underlines errors": async (browser) => {
    const { page, close } = await open(browser, "explorer.html");
    await text(page, "#status", /compiled in/);
    for (const name of ["KIR", "PTX", "SPIR-V", "WGSL"]) {
      const rows = page.getByRole("region", { name: `${name} of the kernel` }).locator(".row.lit");
      assert((await rows.count()) > 0, `${name} has lines of the chosen line`);
    }
    // Another line of the source by a line of the PTX.
    const store = page.locator(".listing .row", { hasText: "st.global" }).first();
    await store.click();
    assert.equal(await page.locator(".marks .lit").getAttribute("data-line"), await store.getAttribute("data-from"));
    const area = page.getByRole("textbox", { name: "WGSL source" });
    await area.fill("@compute @workgroup_size(1) fn main() { let x = missing; }");
    await text(page, "#problem", /missing/);
    assert.equal(await page.locator(".marks u").textContent(), "missing");
    // The keyboard leaves the editor by Escape and Tab.
    await area.focus();
    await page.keyboard.press("Tab");
    assert.match(await area.inputValue(), / {4}/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    assert.notEqual(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
    await area.fill("@compute @workgroup_size(7) fn main() {}");
    await text(page, "#status", /workgroups of 7/);
    assert.equal(await page.locator(".marks u").count(), 0);
    // A link that is followed on the open page.
    const shown = await page.evaluate(async () => {
      const { encode } = await import("./js/source-link.js");
      return encode({ wgsl: "@compute @workgroup_size(3) fn linked() {}" });
    });
    await page.evaluate((hash) => (location.hash = hash), shown);
    await text(page, "#status", /workgroups of 3/);
    assert.match(await area.inputValue(), /fn linked/);
    await close();
  },
  "the playground runs a kernel on both devices": async (browser, webgpu) => {
    const { page, close } = await open(browser, "playground.html");
    await page.waitForSelector("#cpu canvas", { timeout: 60000 });
    assert.equal(await page.locator("#gpu canvas").count(), webgpu ? 1 : 0);
    if (webgpu) await compareWithNative(page, "ripples", 1e-4);
    await page.selectOption("#example", "4");
    await page.waitForSelector("#cpu svg", { timeout: 60000 });
    await verify(page);
    if (webgpu) await compareWithNative(page, "histogram", 0);
    // Sizes that no page can upload, or that make no sense.
    for (const [size, pattern] of [
      [2 ** 29, /2147483648 bytes.*help: use smaller buffers/],
      [-3, /cannot have -3 elements; help: /],
    ]) {
      await page.getByRole("spinbutton", { name: "size of data" }).fill(String(size));
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await text(page, "#status", pattern);
    }
    // The page works after them.
    await page.getByRole("spinbutton", { name: "size of data" }).fill("8");
    await page.getByRole("spinbutton", { name: "size of bins" }).fill("1");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await text(page, "#cpu", /^1 values from/);
    await page.getByRole("textbox", { name: "WGSL source" }).fill("fn main() { let x = y; }");
    await text(page, "#problem", /no definition in scope for identifier: `y`/);
    assert(await page.getByRole("button", { name: "Run", exact: true }).isDisabled());
    // The link reproduces the page; Ctrl+Enter runs.
    await page.selectOption("#example", "1");
    await text(page, "#cpu", /^2,000 values/);
    await page.selectOption("#show", "table");
    await page.getByRole("textbox", { name: "WGSL source" }).press("Control+Enter");
    await page.waitForSelector("#cpu table", { timeout: 60000 });
    await page.waitForSelector("#run:enabled", { timeout: 60000 });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as Rust" }).click();
    await page.waitForSelector("text=program copied");
    const program = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(program, /gpu\.run\(&kernel, &\[&x, &y\], launch\)/);
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.waitForFunction(() => location.hash.length > 10);
    const { hash } = new URL(page.url());
    const again = await open(browser, `playground.html${hash}`);
    // The author of a link is unknown: its source is shown, and not run.
    await text(again.page, "#status", /this source is from the link: Run starts it/);
    assert.match(await again.page.getByRole("textbox", { name: "WGSL source" }).inputValue(), /fn waves/);
    assert.equal(await again.page.locator("#cpu").textContent(), "not run yet");
    await again.page.getByRole("button", { name: "Run", exact: true }).click();
    await again.page.waitForSelector("#cpu table", { timeout: 60000 });
    await again.close();
    // So does the same link in an open page.
    await page.selectOption("#example", "0");
    await text(page, "#cpu", /^1,024 values/);
    await page.evaluate((hash) => (location.hash = hash), `${hash}A`);
    await page.evaluate((hash) => (location.hash = hash), hash);
    await text(page, "#status", /from the link/);
    assert.match(await page.getByRole("textbox", { name: "WGSL source" }).inputValue(), /fn waves/);
    await close();
  },
  "the playground runs what it shows, and stops": async (browser, webgpu) => {
    const { page, close } = await open(browser, "playground.html");
    await page.waitForSelector("#cpu canvas", { timeout: 60000 });
    await page.waitForSelector("#run:enabled");
    assert(await page.getByRole("button", { name: "Stop" }).isDisabled());
    const source = (body) => `@group(0) @binding(0) var<storage, read_write> data: array<u32>;
      @compute @workgroup_size(1) fn main() { ${body} }`;
    // Changes the source and presses Run before the page has read the new one.
    const edit = (text) =>
      page.evaluate((text) => {
        const area = document.querySelector("textarea");
        area.value = text;
        area.dispatchEvent(new Event("input"));
        document.querySelector("#run").click();
      }, text);
    await page.selectOption("#show", "table");
    await edit(source("data[0] = 17u; data[1] = 4u;"));
    await text(page, "#cpu", /^017400/);
    await edit(source("data[0] = missing;"));
    await text(page, "#problem", /missing/);
    assert(await page.getByRole("button", { name: "Run", exact: true }).isDisabled());
    // Sizes that no launch has become ones that it can have.
    await page.locator("#x").fill("1.4");
    await page.selectOption("#example", "0");
    await page.locator("#x").fill("-3.7");
    await page.waitForSelector("#run:enabled");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await text(page, "#cpu", /^1,024 values/);
    assert.equal(await page.locator("#x").inputValue(), "1");
    // SwiftShader cannot be interrupted, and later tests need it.
    if (!webgpu) {
      await page.waitForSelector("#run:enabled");
      const loop = "for (var i = 0u; i < 4294967295u; i++)";
      await edit(source(`${loop} { ${loop} { data[0] += data[1] + 1u; } }`));
      await page.waitForSelector("#stop:enabled");
      await text(page, "#status", /running on the CPU device/);
      await page.waitForTimeout(300);
      await page.getByRole("button", { name: "Stop" }).click();
      await text(page, "#status", /^stopped$/);
      await page.waitForSelector("#run:enabled", { timeout: 60000 });
      await page.selectOption("#example", "1");
      await text(page, "#cpu", /^2,000 values/);
    }
    await close();
  },
  "edges are those of a native build": async (browser, webgpu) => {
    const { page, close } = await open(browser, "index.html");
    await page.route("**/camera.png", async (route) => {
      await page.waitForSelector("#device option", { state: "attached" });
      await page.locator("#radius").dispatchEvent("input");
      await route.continue();
    });
    // An input before the photo is loaded is no error.
    await page.goto(`${address}edges.html`);
    await text(page, "#status", /512 × 512 pixels/);
    const rows = await verify(page);
    assert.match(rows[0], /262,144 values agree/);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy report" }).click();
    await page.waitForSelector("text=report copied");
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(copied.device.backend, webgpu ? "wgpu" : "cpu");
    assert(copied.times.first >= copied.times.compile && copied.times.warm > 0);
    assert(copied.verified[0].agrees && copied.launches > 0);
    if (webgpu) await compareWithNative(page, "edges", 1e-5);
    await page.setInputFiles("#photo", { name: "no.png", mimeType: "image/png", buffer: Buffer.from("no") });
    await text(page, "#status", /no picture/);
    await close();
  },
  "heat stays on the GPU": async (browser, webgpu) => {
    // Counts what the page asks of the engine.
    const before = () => {
      globalThis.calls = [];
      const post = globalThis.Worker.prototype.postMessage;
      globalThis.Worker.prototype.postMessage = function (message, ...rest) {
        globalThis.calls.push(message.method);
        return post.call(this, message, ...rest);
      };
    };
    const { page, close } = await open(browser, "heat.html", { before });
    await text(page, "#report", /Frames\d+ of/);
    await page.getByRole("button", { name: "Heat the middle" }).click();
    const report = () => page.locator("#report").textContent();
    if (webgpu) assert.match(await report(), /(?<!\d)0 buffers created, 0 mapped, [1-9]\d* submissions/);
    await page.getByRole("button", { name: "Pause" }).click();
    await verify(page);
    // Each simulation frees the one before, however fast Restart is pressed.
    await page.evaluate(() => {
      for (let press = 0; press < 3; press++) document.querySelector("#restart").click();
    });
    await page.waitForFunction(() => {
      const count = (method) => globalThis.calls.filter((call) => call === method).length;
      const isIdle = document.querySelector("#status").textContent === "";
      return isIdle && count("record") === 5 && count("prepare") - count("free") === 1;
    }, null, { timeout: 60000 });
    await close();
  },
  "a digit of the set is recognised": async (browser, webgpu) => {
    const { page, close } = await open(browser, "digits.html");
    await text(page, "#answer", /^2$/);
    assert.equal(await page.locator("#neighbours canvas").count(), 5);
    await verify(page);
    if (webgpu) await compareWithNative(page, "digits", 1e-3);
    // Draw a one: a vertical line.
    await page.getByRole("button", { name: "Clear" }).click();
    const { x, y, width, height } = await page.locator("#pad").boundingBox();
    await page.mouse.move(x + width / 2, y + height * 0.2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + height * 0.8, { steps: 8 });
    await page.mouse.up();
    await text(page, "#answer", /^1$/);
    // The answer for a digit does not appear on a pad that was cleared meanwhile.
    await page.evaluate(() => {
      document.querySelector("#sample").click();
      document.querySelector("#clear").click();
    });
    await page.waitForTimeout(1000);
    assert.equal(await page.locator("#answer").textContent(), "?");
    assert.equal(await page.locator("#status").textContent(), "");
    await close();
  },
};

// Takes pictures of every page in both widths and schemes; fails if a page is wider than the screen.
export async function screenshots(browser) {
  const folder = join(site, "screenshots");
  mkdirSync(folder, { recursive: true });
  for (const name of ["index", "explorer", "playground", "edges", "heat", "digits"]) {
    const { page, close } = await open(browser, `${name}.html`);
    await page.waitForTimeout(name === "index" ? 200 : 2500);
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ]) {
      await page.setViewportSize({ width, height });
      const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(scrollWidth <= width, `${name} is ${scrollWidth} pixels wide on a screen of ${width}`);
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        const path = join(folder, `${name}-${width}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: true });
      }
    }
    await close();
  }
}
