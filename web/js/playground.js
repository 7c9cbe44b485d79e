// The playground: a kernel with its buffers, run on WebGPU and on the CPU device.
import { by, make } from "./frame.js";
import { Engine, call, place, start } from "./client.js";
import { FILLS, asRust, contentOf } from "./contents.js";
import { latest } from "./devices.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { cpu, runJob, stopRuns, verify } from "./measure.js";
import { Report } from "./report.js";
import { MOST_PIXELS, numbers, picture, plot, table, whole } from "./results.js";
import { copy, decode, share } from "./source-link.js";

start();

EXAMPLES.forEach(({ name }, index) => by("example").append(make("option", { value: index }, name)));

// The example that is shown at first.
const START = 5;

const editor = new Editor(by("source"), "", later);
// The interface of the kernel of the text `source`, when it last compiled; the buffers as the page
// shows them.
let interface_ = null;
let source = null;
let buffers = [];
let values = "";
let gpu = null;
let results = {};
let current = null;
// The number of the shown source: what an older one has as its interface or result is dropped.
let version = 0;
// How many runs and verifications there are.
let working = 0;

const report = new Report(by("report"), {
  verify: () => {
    const { job, contents, outputs } = current;
    return busy(() => verify(job, contents, outputs, 1e-4));
  },
});

// Does what may never end: meanwhile Stop is enabled, and Run is not. Without workers a page cannot
// be stopped.
async function busy(work) {
  working++;
  enable();
  try {
    return await work();
  } finally {
    working--;
    enable();
  }
}

function enable() {
  by("run").disabled = working > 0 || !interface_;
  by("stop").disabled = working === 0 || place !== "worker";
}

// Ends what is computed; the next run opens the devices again.
function stop() {
  stopRuns();
  by("status").textContent = "stopped";
  // It may have waited for the run.
  return reflect();
}

function load(example) {
  editor.text = example.wgsl;
  ["x", "y", "z"].forEach((axis, index) => (by(axis).value = example.invocations[index] ?? 1));
  buffers = structuredClone(example.buffers);
  values = example.values ?? "";
  by("show").value = example.show ?? "table";
  by("width").value = example.width ?? 480;
  for (const side of ["gpu", "cpu"]) if (results[side]) by(side).textContent = "not run yet";
  results = {};
  return reflect();
}

// Loads the source of the URL; returns whether it has one. It is not run: its author is unknown, and
// it may never end.
async function loadShared() {
  const shared = await decode(location.hash);
  if (typeof shared?.wgsl !== "string") return false;
  if (!by("example").querySelector('option[value=""]')) {
    by("example").prepend(make("option", { value: "" }, "from the link"));
  }
  by("example").value = "";
  await load(checked(shared));
  by("status").textContent = "this source is from the link: Run starts it";
  return true;
}

// Replaces what a link has in another form than this page writes.
function checked({ wgsl, invocations, buffers, values, show, width }) {
  const list = (value) => (Array.isArray(value) ? value : []);
  const isText = (value) => typeof value === "string";
  return {
    wgsl,
    invocations: list(invocations).map((count) => whole(count, MOST_INVOCATIONS)),
    buffers: list(buffers).map((buffer) => ({
      fill: FILLS.includes(buffer?.fill) ? buffer.fill : "zeros",
      count: Number(buffer?.count),
      values: isText(buffer?.values) ? buffer.values : "",
    })),
    values: isText(values) ? values : "",
    show: ["picture", "plot", "table"].includes(show) ? show : "table",
    width: whole(width, MOST_PIXELS),
  };
}

let timer;
function later() {
  version++;
  clearTimeout(timer);
  timer = setTimeout(reflect, 150);
}

// Reads the interface of the kernel, and shows its buffers or its error.
async function reflect() {
  clearTimeout(timer);
  const number = ++version;
  const text = editor.text;
  let found;
  try {
    found = JSON.parse(await call(0, "reflect", [text, ""]));
  } catch (error) {
    found = { error: { text: error.message } };
  }
  // A later edit has its own answer.
  if (number !== version) return;
  showProblem(found.error?.text, found.error);
  interface_ = found.error ? null : found;
  source = text;
  enable();
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

// Invocations along an axis at most.
const MOST_INVOCATIONS = 2 ** 32 - 1;

// Returns the number of an input, which then shows it.
function limited(input, most) {
  const value = whole(input.value, most);
  if (input.value !== String(value)) input.value = value;
  return value;
}

const invocations = () => ["x", "y", "z"].map((axis) => limited(by(axis), MOST_INVOCATIONS));

const state = () => ({
  wgsl: editor.text,
  invocations: invocations(),
  buffers: buffers.slice(0, interface_?.bindings.length ?? buffers.length),
  values,
  show: by("show").value,
  width: limited(by("width"), MOST_PIXELS),
});

// One run at a time: a call during a run starts one more after it.
const run = latest(() => busy(runShown));

async function runShown() {
  // The interface is that of the text before the last edit, or still awaited.
  if (source !== editor.text) await reflect();
  if (!interface_ || source !== editor.text) return;
  const number = version;
  results = {};
  try {
    const contents = interface_.bindings.map(({ scalar }, index) => contentOf(buffers[index], scalar));
    const block = interface_.immediates && contentOf({ fill: "values", values }, "f32");
    const immediates = block ? [...new Uint8Array(block.buffer)] : undefined;
    const { entry } = interface_;
    const job = { wgsl: source, entry, invocations: invocations(), immediates };
    if (gpu?.isLost) gpu = await Engine.open("wgpu");
    await runOn("gpu", gpu, job, contents, number);
    if (number === version) await runOn("cpu", await cpu(), job, contents, number);
  } catch (error) {
    if (number === version) by("status").textContent = error.message;
  }
  if (by("status").textContent.startsWith("running")) by("status").textContent = "";
}

// Runs the job on one device, and shows the result or the error in its half of the page, unless the
// source was changed or the run stopped.
async function runOn(side, engine, job, contents, number) {
  if (!engine) return;
  by("status").textContent = `running on ${side === "gpu" ? "WebGPU" : "the CPU device"} …`;
  try {
    const done = await runJob(engine, job, contents);
    if (number !== version) return;
    results[side] = done;
    if (side === "gpu" || !gpu) {
      current = { job, contents, outputs: done.outputs };
      await report.showRun(engine, done.info.kernel, done.times);
    }
    show(side);
  } catch (error) {
    if (number !== version) return;
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
    picture: () => picture(list, limited(by("width"), MOST_PIXELS), components),
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
by("stop").onclick = stop;
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
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && working === 0) run();
});

async function begin() {
  try {
    gpu = await Engine.open("wgpu");
    by("gpu-title").textContent = "WebGPU";
  } catch (error) {
    by("gpu").replaceChildren(make("pre", { className: "problem" }, error.message));
  }
  await report.showDevice(gpu ?? (await cpu()));
  if (await loadShared()) return showBoth();
  by("example").value = START;
  await load(EXAMPLES[START]);
  showBoth();
  await run();
}
addEventListener("hashchange", () => loadShared().then(showBoth));
begin().catch((error) => (by("status").textContent = error.message));
