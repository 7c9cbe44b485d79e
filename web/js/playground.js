// The playground: a kernel with its buffers, run on WebGPU and on the CPU device.
import { by, make } from "./frame.js";
import { Engine, call, start } from "./client.js";
import { FILLS, asRust, contentOf } from "./contents.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { cpu, runJob } from "./measure.js";
import { Report } from "./report.js";
import { numbers, picture, plot, table } from "./results.js";
import { copy, decode, share } from "./source-link.js";

start();

const shared = await decode(location.hash);
EXAMPLES.forEach(({ name }, index) => by("example").append(make("option", { value: index }, name)));
if (shared?.wgsl) by("example").prepend(make("option", { value: "" }, "from the link"));

// The example that is shown at first.
const START = 5;

const editor = new Editor(by("source"), "", later);
// What the kernel's interface was when it last compiled; the buffers as the page shows them.
let interface_ = null;
let buffers = [];
let values = "";
let gpu = null;
let results = {};
let current = null;

const report = new Report(by("report"), {
  verify: async () => {
    const { job, contents, outputs } = current;
    const { prepared, info, outputs: expected } = await runJob(await cpu(), job, contents);
    const found = [];
    for (const [index, bytes] of expected) {
      const compared = await prepared.compare(index, bytes, outputs.get(index), 1e-4);
      found.push({ name: info.bindings[index].name, ...compared });
    }
    await prepared.free();
    return found;
  },
});

function load(example) {
  editor.text = example.wgsl;
  ["x", "y", "z"].forEach((axis, index) => (by(axis).value = example.invocations[index]));
  buffers = structuredClone(example.buffers);
  values = example.values ?? "";
  by("show").value = example.show ?? "table";
  by("width").value = example.width ?? 480;
  return reflect();
}

let timer;
function later() {
  clearTimeout(timer);
  timer = setTimeout(reflect, 150);
}

// Reads the interface of the kernel, and shows its buffers or its error.
async function reflect() {
  const found = JSON.parse(await call(0, "reflect", [editor.text, ""]));
  showProblem(found.error?.text, found.error);
  interface_ = found.error ? null : found;
  by("run").disabled = !interface_;
  if (interface_) drawBuffers();
}

function showProblem(text, error) {
  by("problem").hidden = !text;
  by("problem").textContent = text ?? "";
  editor.underline(error);
}

// One line of controls for each binding of the kernel.
function drawBuffers() {
  const chosen = by("shown").value;
  const lines = interface_.bindings.map(({ name, type, writes, scalar, min_bytes }, index) => {
    buffers[index] ??= { fill: "zeros", count: Math.max(1024, min_bytes / 4) };
    const buffer = buffers[index];
    const fill = make("select", { ariaLabel: `content of ${name}` });
    fill.append(...FILLS.map((text) => make("option", {}, text)));
    fill.value = buffer.fill;
    const isList = buffer.fill === "values";
    const size = isList
      ? make("input", { type: "text", value: buffer.values ?? "", ariaLabel: `values of ${name}` })
      : make("input", { type: "number", min: 1, value: buffer.count, ariaLabel: `size of ${name}` });
    fill.onchange = () => {
      buffer.fill = fill.value;
      drawBuffers();
    };
    size.oninput = () => {
      if (isList) buffer.values = size.value;
      else buffer.count = Number(size.value);
    };
    const what = `${writes ? "read_write" : "read"} ${type}${scalar ? "" : ", in words"}`;
    const title = make("strong", {}, name);
    return make("div", { className: "controls" }, title, fill, size, make("span", { className: "quiet" }, what));
  });
  if (interface_.immediates) lines.push(immediatesLine(interface_.immediates));
  by("buffers").replaceChildren(...lines);
  const written = interface_.bindings.flatMap(({ name, writes }, index) =>
    writes ? [make("option", { value: index }, name)] : [],
  );
  by("shown").replaceChildren(...written);
  if (written.some(({ value }) => value === chosen)) by("shown").value = chosen;
}

function immediatesLine({ name, type }) {
  const input = make("input", { type: "text", value: values, ariaLabel: `values of ${name}` });
  input.oninput = () => (values = input.value);
  const what = make("span", { className: "quiet" }, `immediates: ${type}, as f32`);
  return make("div", { className: "controls" }, make("strong", {}, name), input, what);
}

const invocations = () => ["x", "y", "z"].map((axis) => Math.max(1, Number(by(axis).value) || 1));

const state = () => ({
  wgsl: editor.text,
  invocations: invocations(),
  buffers: buffers.slice(0, interface_?.bindings.length ?? buffers.length),
  values,
  show: by("show").value,
  width: Number(by("width").value),
});

async function run() {
  by("run").disabled = true;
  results = {};
  const { wgsl } = state();
  try {
    const contents = interface_.bindings.map(({ scalar }, index) => contentOf(buffers[index], scalar));
    const block = interface_.immediates && contentOf({ fill: "values", values }, "f32");
    const immediates = block ? [...new Uint8Array(block.buffer)] : undefined;
    const job = { wgsl, entry: interface_.entry, invocations: invocations(), immediates };
    if (gpu?.isLost) gpu = await Engine.open("wgpu");
    await runOn("gpu", gpu, job, contents);
    await runOn("cpu", await cpu(), job, contents);
    if (by("status").textContent.startsWith("running")) by("status").textContent = "";
  } catch (error) {
    by("status").textContent = error.message;
  }
  by("run").disabled = !interface_;
}

// Runs the job on one device, and shows the result or the error in its half of the page.
async function runOn(side, engine, job, contents) {
  if (!engine) return;
  by("status").textContent = `running on ${side === "gpu" ? "WebGPU" : "the CPU device"} …`;
  try {
    const done = await runJob(engine, job, contents);
    results[side] = done;
    if (side === "gpu" || !gpu) {
      current = { job, contents, outputs: done.outputs };
      await report.showRun(engine, done.info.kernel, done.times);
    }
    await done.prepared.free();
    show(side);
  } catch (error) {
    by(side).replaceChildren(make("pre", { className: "problem" }, error.message));
  }
}

function show(side) {
  const done = results[side];
  const index = Number(by("shown").value);
  const bytes = done?.outputs.get(index);
  if (!bytes) return;
  const { scalar, components } = done.info.bindings[index];
  const list = numbers(bytes, scalar);
  const drawn = {
    picture: () => picture(list, Math.max(1, Number(by("width").value) || 1), components),
    plot: () => plot(list),
    table: () => table(list),
  }[by("show").value]();
  const { first, warm } = done.times;
  const times = `first result ${first.toFixed(1)} ms, warm ${warm.toFixed(2)} ms`;
  by(side).replaceChildren(drawn, make("div", { className: "quiet" }, times));
}

function showBoth() {
  by("width").parentElement.hidden = by("show").value !== "picture";
  show("gpu");
  show("cpu");
}

for (const id of ["shown", "show", "width"]) by(id).onchange = showBoth;
by("run").onclick = run;
by("link").onclick = async () => (by("status").textContent = await share(state()));
by("rust").onclick = async () => {
  if (interface_) by("status").textContent = await copy(asRust(state(), interface_), "program");
};
by("example").onchange = async () => {
  if (by("example").value === "") return;
  await load(EXAMPLES[by("example").value]);
  await run();
};
editor.area.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && interface_) run();
});

async function begin() {
  try {
    gpu = await Engine.open("wgpu");
    by("gpu-title").textContent = "WebGPU";
  } catch (error) {
    by("gpu").replaceChildren(make("pre", { className: "problem" }, error.message));
  }
  await report.showDevice(gpu ?? (await cpu()));
  if (!shared?.wgsl) by("example").value = START;
  await load(shared?.wgsl ? { ...EXAMPLES[0], ...shared } : EXAMPLES[START]);
  showBoth();
  if (interface_) await run();
}
begin().catch((error) => (by("status").textContent = error.message));
