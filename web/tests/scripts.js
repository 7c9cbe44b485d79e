// Tests of the pages' scripts: failures and inputs that no user of a page causes at will.
import assert from "node:assert/strict";
import { address, open } from "./browser.js";

// Calls `work` with a page that runs no kernel.
async function onIndex(browser, work, options) {
  const { page, close } = await open(browser, "index.html", options);
  await work(page);
  await close();
}

// Names and tests.
export const scripts = {
  "a worker that cannot be loaded is replaced by the page": (browser) =>
    onIndex(
      browser,
      async (page) => {
        await page.route("**/worker.js*", (route) => route.fulfill({ status: 404 }));
        await page.goto(`${address}edges.html`);
        await page.waitForSelector("text=on the page: no workers here", { timeout: 60000 });
        await page.goto(`${address}tests/worker.html`);
        const called = page.evaluate(() => window.call("device", ""));
        await assert.rejects(called, /the worker failed/);
        await assert.rejects(page.evaluate(() => window.call("device", "")), /the worker failed/);
      },
      { expected: /404/ },
    ),
  "a worker that fails rejects its calls": (browser) =>
    onIndex(
      browser,
      async (page) => {
        await page.evaluate(async () => {
          const { call, start } = await import("./js/client.js");
          start();
          await call(0, "adapter");
        });
        const call = () =>
          page.evaluate(async () => (await import("./js/client.js")).call(0, "adapter"));
        await page.workers()[0].evaluate(() => {
          setTimeout(() => {
            throw new Error("broken");
          });
        });
        await page.waitForTimeout(300);
        await assert.rejects(call(), /the engine stopped: .*broken; help: reload the page/);
        await assert.rejects(call(), /the engine stopped/);
      },
      { expected: /broken/ },
    ),
  "a restarted engine opens devices anew": (browser) =>
    onIndex(browser, async (page) => {
      const found = await page.evaluate(async () => {
        const { Engine, restart, start } = await import("./js/client.js");
        start();
        const old = await Engine.open("cpu");
        const waiting = old.describe().catch(({ message }) => message);
        restart("stopped");
        const after = await old.describe().catch(({ message }) => message);
        const fresh = await Engine.open("cpu");
        const { title } = await fresh.describe();
        return { waiting: await waiting, after, lost: [old.isLost, fresh.isLost], title };
      });
      assert.deepEqual([found.waiting, found.after], ["stopped", "stopped"]);
      assert.deepEqual(found.lost, [true, false]);
      assert.match(found.title, /^cpu:0 /);
    }),
  "a run that fails frees its job, and does not block the next": (browser) =>
    onIndex(browser, async (page) => {
      const found = await page.evaluate(async () => {
        const { runJob } = await import("./js/measure.js");
        const { latest } = await import("./js/devices.js");
        let [freed, runs] = [0, 0];
        const fail = async () => {
          throw new Error("no");
        };
        const engine = { prepare: async () => ({ run: fail, free: async () => freed++ }) };
        const run = latest(() => {
          runs++;
          return runJob(engine, {}, []);
        });
        const messages = [];
        for (let turn = 0; turn < 2; turn++) await run().catch(({ message }) => messages.push(message));
        return { freed, runs, messages };
      });
      assert.deepEqual(found, { freed: 2, runs: 2, messages: ["no", "no"] });
    }),
  "counts that are no whole numbers are rejected": (browser) =>
    onIndex(browser, async (page) => {
      const messages = await page.evaluate(async () => {
        const { Engine, start } = await import("./js/client.js");
        start();
        const engine = await Engine.open("cpu");
        const wgsl = "@compute @workgroup_size(1) fn main() {}";
        const prepare = (invocations) =>
          engine.prepare({ wgsl, invocations }, []).then(String, ({ message }) => message);
        return Promise.all([[1.5], [-1], [2 ** 32]].map(prepare));
      });
      for (const message of messages) assert.match(message, /`invocations` .*; help: give whole/);
    }),
  "ranges leave out what is not finite": (browser) =>
    onIndex(browser, async (page) => {
      const found = await page.evaluate(async () => {
        const { picture, plot, range, whole } = await import("./js/results.js");
        const shown = (values) => {
          const drawn = plot(Float32Array.from(values));
          return [drawn.textContent, drawn.querySelector("polyline").getAttribute("points")];
        };
        const { width, height } = picture(new Float32Array(6), 1e9);
        return {
          range: range([-Infinity, 1, NaN, 3, Infinity]),
          none: [range([NaN]), shown([NaN])[0]],
          equal: shown([5, 5]),
          size: [width, height],
          whole: ["1.4", "-3", "", "x", "1e99"].map((text) => whole(text, 100)),
        };
      });
      assert.deepEqual(found, {
        range: [1, 3],
        none: [null, "1 values, none of them finite"],
        equal: ["2 values from 5 to 5", "8.0,130.0 632.0,130.0"],
        size: [6, 1],
        whole: [1, 1, 1, 1, 100],
      });
    }),
  "copied programs quote any source and any names": (browser) =>
    onIndex(browser, async (page) => {
      const program = await page.evaluate(async () => {
        const { asRust } = await import("./js/contents.js");
        const names = ["launch", "fooBar", "foo_bar", "gpu", "match"];
        const bindings = names.map((name) => ({ name, scalar: "f32", writes: true }));
        const buffers = names.map(() => ({ fill: "values", values: "1e30, 2" }));
        return asRust({ wgsl: '// "## and "#', invocations: [1], buffers }, { bindings });
      });
      assert(program.includes('= r###"\n// "## and "#"###;'), program);
      assert(program.includes("[&launch_, &foo_bar, &foo_bar_, &gpu_, &match_], launch)"), program);
      assert(program.includes("[1e30f32, 2f32]"), program);
    }),
  "a link that inflates to more than a source is ignored": (browser) =>
    onIndex(browser, async (page) => {
      const found = await page.evaluate(async () => {
        const { decode, encode } = await import("./js/source-link.js");
        const fragment = async (text) => {
          const stream = new CompressionStream("deflate-raw");
          const packed = new Blob([text]).stream().pipeThrough(stream);
          const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
          return `#${btoa(String.fromCharCode(...bytes))}`;
        };
        const large = `{"wgsl":"${" ".repeat(2 ** 21)}"}`;
        return {
          small: await decode(await fragment('{"wgsl":"x"}')),
          same: await decode(await encode({ wgsl: "ä" })),
          large: await decode(await fragment(large)),
        };
      });
      assert.deepEqual(found, { small: { wgsl: "x" }, same: { wgsl: "ä" }, large: null });
    }),
};
