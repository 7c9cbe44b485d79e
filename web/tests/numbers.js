// Sizes of what pages load, and the time to a first result beside a page without Scry.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { open, site } from "./browser.js";

// Bytes at most.
const EXPLORER = 1.5e6;
const SCRIPTS = 150e3;

// How many times as long as without Scry a first result may take.
const FIRST_RESULT = 2;

// Pairs of page loads in a round, of which the first one is not counted. A pair is measured while the
// machine is equally busy, so that the median of their ratios is steadier than the ratio of medians.
const PAIRS = 9;

// Rounds at most: other programs, which delay the engine's worker more than a page without one, may be
// gone in the next round.
const ROUNDS = 3;

const gzipped = (path) => gzipSync(readFileSync(join(site, path)), { level: 9 }).length;

// Prints the sizes; fails if the explorer's module or the scripts of all pages exceed their budgets.
export function sizes() {
  const modules = readdirSync(join(site, "pkg")).map((name) => `pkg/${name}`);
  const scripts = readdirSync(join(site, "js")).map((name) => `js/${name}`);
  for (const path of [...modules, "style.css"]) {
    console.log(`  ${path}: ${readFileSync(join(site, path)).length} bytes, ${gzipped(path)} gzipped`);
  }
  const explorer = gzipped("pkg/explorer_bg.wasm") + gzipped("pkg/explorer.js");
  const script = scripts.reduce((sum, path) => sum + readFileSync(join(site, path)).length, 0);
  console.log(`  scripts of all pages: ${script} bytes`);
  assert(explorer <= EXPLORER, `the explorer's module has ${explorer} bytes`);
  assert(script <= SCRIPTS, `the scripts have ${script} bytes`);
}

// Compares the times from navigation to the first result of one kernel, with and without Scry.
export async function firstResult(browser) {
  let ratio = Infinity;
  for (let round = 0; round < ROUNDS && ratio > FIRST_RESULT; round++) {
    ratio = await firstResultRatio(browser);
  }
  assert(ratio <= FIRST_RESULT, `${ratio.toFixed(2)} times the bare page`);
}

// Measures a round; prints and returns the ratio.
async function firstResultRatio(browser) {
  const pairs = [];
  for (let pair = 0; pair <= PAIRS; pair++) {
    const names = pair % 2 ? ["bare", "scry"] : ["scry", "bare"];
    const times = {};
    for (const name of names) times[name] = await firstResultOf(browser, name);
    if (pair > 0) pairs.push(times);
  }
  const [bare, scry, ratio] = [
    (pair) => pair.bare,
    (pair) => pair.scry,
    (pair) => pair.scry / pair.bare,
  ].map((value) => median(pairs.map(value)));
  console.log(
    `  first result, median of ${PAIRS} pairs: ${bare.toFixed(0)} ms bare, ${scry.toFixed(0)} ms ` +
      `with Scry, ${ratio.toFixed(2)} times`,
  );
  return ratio;
}

// Loads a page; returns the milliseconds until its first result.
async function firstResultOf(browser, name) {
  const { page, close } = await open(browser, `tests/first-${name}.html`);
  const handle = await page.waitForFunction(() => window.result, null, { timeout: 60000 });
  const { milliseconds, last } = await handle.jsonValue();
  assert.equal(last, 2 * (2 ** 20 - 1));
  await close();
  return milliseconds;
}

function median(list) {
  return list.toSorted((a, b) => a - b)[list.length >> 1];
}
