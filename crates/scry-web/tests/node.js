// Runs the module in Node.js: node node.js SCRY_WEB_JS [NUMBER OF CASES OF A NATIVE BUILD]
"use strict";

const assert = require("node:assert");
const path = require("node:path");

const [, , script, nativeCases] = process.argv;
const scry = require(path.resolve(script));

// A kernel that is accepted or rejected, but never ends the module with a trap.
async function compileOrReject(name, wgsl) {
  try {
    await scry.compile("cpu", wgsl);
    return `${name}: accepted`;
  } catch (error) {
    assert(!(error instanceof WebAssembly.RuntimeError), `${name}: ${error.stack}`);
    assert(!(error instanceof RangeError), `${name}: ${error.stack}`);
    return error.message;
  }
}

const kernel = (body, before = "") => `
  @group(0) @binding(0) var<storage, read_write> x: array<u32>;
  ${before}
  @compute @workgroup_size(1)
  fn main(@builtin(global_invocation_id) id: vec3u) { ${body} }`;

// Sources that nest `depth` deep, each by another recursion of the front end.
const nests = {
  parentheses: (depth) => kernel(`x[0] = ${"(".repeat(depth)}id.x${")".repeat(depth)};`),
  indices: (depth) => kernel(`x[0] = ${"x[".repeat(depth)}0${"]".repeat(depth)};`),
  calls: (depth) => kernel(`x[0] = ${"min(x[1], ".repeat(depth)}1u${")".repeat(depth)};`),
  negations: (depth) => kernel(`let a = ${"- ".repeat(depth)}f32(id.x); x[0] = u32(a);`),
  operators: (depth) => kernel(`x[0] = ${"id.x + ".repeat(depth)}1u;`),
  blocks: (depth) => kernel(`${"{".repeat(depth)} x[0] = 1u; ${"}".repeat(depth)}`),
  conditions: (depth) =>
    kernel(`${"if x[id.x] != 7u { x[1]++; ".repeat(depth)} ${"}".repeat(depth)}`),
  loops: (depth) =>
    kernel(`${"loop { if x[id.x] == 7u { break; } x[1]++; ".repeat(depth)} ${"}".repeat(depth)}`),
  switches: (depth) =>
    kernel(
      `${"switch x[id.x] { case 1u: { x[1]++; } default: { ".repeat(depth)} ${"}}".repeat(depth)}`,
    ),
  elseIfs: (depth) => {
    const chain = Array.from({ length: depth }, (_, n) => `if id.x == ${n}u { x[${n}] = 1u; }`);
    return kernel(chain.join(" else "));
  },
  functions: (depth) => {
    const level = (n) => `fn f${n}(i: u32) { if x[i] != ${n}u { f${n - 1}(i + 1u); } }`;
    const all = Array.from({ length: depth }, (_, n) => level(n + 1)).join("\n");
    return kernel(`f${depth}(id.x);`, `fn f0(i: u32) { x[i] = 1u; }\n${all}`);
  },
  functionsOfConditions: (depth) => {
    const open = "if x[i] != 7u { x[i]++; ".repeat(20);
    const level = (n) => `fn f${n}(i: u32) { ${open} f${n - 1}(i + 1u); ${"}".repeat(20)} }`;
    const all = Array.from({ length: depth }, (_, n) => level(n + 1)).join("\n");
    return kernel(`f${depth}(id.x);`, `fn f0(i: u32) { x[i] = 1u; }\n${all}`);
  },
  emptyFunctions: (depth) => {
    const level = (n) => `fn f${n}(i: u32) { f${n - 1}(i + 1u); }`;
    const all = Array.from({ length: depth }, (_, n) => level(n + 1)).join("\n");
    return kernel(`f${depth}(id.x);`, `fn f0(i: u32) { x[i] = 1u; }\n${all}`);
  },
  constants: (depth) => {
    const level = (n) => `const C${n} = C${n - 1} + 1u;`;
    const all = Array.from({ length: depth }, (_, n) => level(n + 1)).join("\n");
    return kernel(`x[0] = C${depth};`, `const C0 = 1u;\n${all}`);
  },
  // All at once: an expression in brackets in a chain of `else if` in blocks.
  mixed: (depth) => {
    const level = Math.min(depth, 50);
    const sum = `${"(".repeat(level)}${"id.x + ".repeat(depth)}1u${")".repeat(level)}`;
    const chain = Array.from({ length: Math.min(depth, 120) }, (_, n) => `if id.x == ${n}u { }`);
    const inner = `${chain.join(" else ")} else { x[0] = ${sum}; }`;
    return kernel(`${"if x[1] != 7u { ".repeat(level)} ${inner} ${"}".repeat(level)}`);
  },
  types: (depth) =>
    kernel("x[0] = 1u;", `var<private> a: ${"array<".repeat(depth)}u32${", 1>".repeat(depth)};`),
  structures: (depth) => {
    const level = (n) => `struct S${n} { a: S${n - 1} }`;
    const all = Array.from({ length: depth }, (_, n) => level(n + 1)).join("\n");
    return kernel("x[0] = 1u;", `struct S0 { a: u32 }\n${all}\nvar<private> a: S${depth};`);
  },
};

async function checkNesting(depths) {
  for (const [name, nest] of Object.entries(nests)) {
    for (const depth of depths) {
      const outcome = await compileOrReject(`${name} ${depth}`, nest(depth));
      if (process.env.VERBOSE) console.log(`  ${depth} ${name}: ${outcome.slice(0, 150)}`);
    }
  }
}

async function checkConformance() {
  const start = performance.now();
  const report = JSON.parse(await scry.run_conformance("cpu"));
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  for (const line of report.skipped) console.log(`skipped on ${report.device}: ${line}`);
  for (const line of report.failed) console.error(`FAILED: ${line}`);
  console.log(`${report.tests.length} tests, ${report.cases} cases in ${seconds} s on ${report.device}`);
  assert.equal(report.failed.length, 0, `${report.failed.length} cases failed`);
  if (nativeCases) assert.equal(String(report.cases), nativeCases, "cases of a native build");
}

async function measure() {
  const [elements, steps] = [1 << 16, 1000];
  let best = Infinity;
  for (let run = 0; run < 3; run++) {
    const start = performance.now();
    const result = await scry.multiply_add("cpu", elements, steps);
    assert(Math.abs(result - 2) < 1e-5, `${result}`);
    best = Math.min(best, performance.now() - start);
  }
  const rate = (elements * steps) / best / 1e6;
  console.log(`multiply and add: ${best.toFixed(1)} ms, ${rate.toFixed(2)} billion per second`);
}

async function main() {
  // Node.js has no WebGPU: the fallback is the processor, in the same thread.
  const device = await scry.device("");
  console.log(device);
  assert.match(device, /^cpu:0 .*1 thread/);
  await assert.rejects(scry.device("wgpu"), /WebGPU is not available here/);
  // Work of the CPU device is done when it is submitted, so that nothing would have to wait.
  assert.equal(await scry.download_blocking("cpu"), "[7]");
  // More runs than unfinished submissions fit in the queue.
  assert.equal(await scry.run_plan("cpu", 300), "[900.0, 900.0]");
  await checkNesting([10, 120, 170, 300, 375, 490, 1000, 3900, 30000]);
  await checkConformance();
  await measure();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
