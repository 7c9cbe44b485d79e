// Heat in a plate: a simulation whose data stay on the GPU.
import { by, make } from "./frame.js";
import { call, start } from "./client.js";
import { chooseDevice, latest } from "./devices.js";
import { cpu } from "./measure.js";
import { Report } from "./report.js";

const [WIDTH, HEIGHT] = [512, 320];
// Steps of a frame; even, so that each frame reads what the previous one wrote.
const STEPS = 8;
// More than the picture needs: no other buffer has this size.
const PIXEL_WORDS = WIDTH * HEIGHT + 64;

start();
const wgsl = await (await fetch("kernels/heat.wgsl")).text();
const job = { wgsl, invocations: [WIDTH, HEIGHT, 1] };
const NO_PEN = new Float32Array([0, 0, 0, 0]);

let simulation = null;
let running = true;
const report = new Report(by("report"), { verify: compareWithCpu });
// One start at a time: each frees the simulation before it.
const restart = latest(begin);
const device = await chooseDevice(restart);

// The plate at first: a hot square.
function plate() {
  const heat = new Float32Array(WIDTH * HEIGHT);
  for (let y = 110; y < 210; y++) heat.fill(1, y * WIDTH + 180, y * WIDTH + 330);
  return heat;
}

async function prepare(engine) {
  const state = plate();
  const contents = [state, state.slice(), new Uint32Array(PIXEL_WORDS), NO_PEN];
  const prepared = await engine.prepare(job, contents);
  try {
    await prepared.record(STEPS);
    return prepared;
  } catch (error) {
    await prepared.free().catch(() => {});
    throw error;
  }
}

// Ends a simulation: its job can be freed once no call uses it.
async function end({ job, frames, writing }) {
  await frames;
  await writing;
  // If its device is lost, there is nothing to free.
  await job.free().catch(() => {});
}

// Starts from the first state, on the chosen device.
async function begin() {
  const old = simulation;
  simulation = null;
  if (old) await end(old);
  by("status").textContent = "compiling …";
  let prepared;
  try {
    const begun = performance.now();
    const engine = await device();
    prepared = await prepare(engine);
    const draw = await drawing(prepared, newCanvas());
    await prepared.replay();
    await draw();
    const first = performance.now() - begun;
    const info = await prepared.describe();
    const times = { compile: info.compile_ms, first, warm: await prepared.run() };
    times.device = await prepared.deviceTime();
    await report.showDevice(engine);
    await report.showRun(engine, info.kernel, times);
    simulation = { engine, job: prepared, draw, count: 0, since: await call(0, "counts") };
    by("status").textContent = "";
    simulation.frames = showFrames(simulation);
  } catch (error) {
    by("status").textContent = error.message;
    await prepared?.free().catch(() => {});
  }
}

// Puts a canvas into the page: one that was connected with a buffer cannot be used again.
function newCanvas() {
  const canvas = make("canvas", { className: "picture", width: WIDTH, height: HEIGHT });
  canvas.id = "canvas";
  by("place").replaceChildren(canvas);
  canvas.addEventListener("pointerdown", heatAt);
  canvas.addEventListener("pointermove", (event) => event.buttons && heatAt(event));
  canvas.addEventListener("pointerup", () => setPen(NO_PEN));
  return canvas;
}

// Returns the function that shows the pixels. On WebGPU they are copied to the canvas on the GPU.
async function drawing(prepared, canvas) {
  if (by("device").value === "wgpu") {
    const offscreen = canvas.transferControlToOffscreen();
    await call(0, "attach", [offscreen, 4 * PIXEL_WORDS], [offscreen]);
    return () => call(0, "draw");
  }
  const context = canvas.getContext("2d");
  return async () => {
    const bytes = await prepared.read(2);
    const pixels = new Uint8ClampedArray(bytes.buffer, bytes.byteOffset, 4 * WIDTH * HEIGHT);
    context.putImageData(new ImageData(pixels, WIDTH, HEIGHT), 0, 0);
  };
}

// Runs frames until another simulation starts.
async function showFrames(current) {
  const begun = performance.now();
  while (simulation === current) {
    await new Promise(requestAnimationFrame);
    if (!running || simulation !== current) continue;
    try {
      await current.job.replay();
      await current.draw();
      current.count++;
      if (current.count % 30 === 0) await showCounts(current, begun);
    } catch (error) {
      if (simulation === current) by("status").textContent = error.message;
      return;
    }
  }
}

async function showCounts({ engine, count, since }, begun) {
  const now = await call(0, "counts");
  const seconds = (performance.now() - begun) / 1000;
  report.show({
    Frames: `${count} of ${STEPS} steps, ${(count / seconds).toFixed(0)} in a second`,
    "In the frame loop":
      by("device").value === "wgpu"
        ? `${now.buffers - since.buffers} buffers created, ${now.maps - since.maps} mapped, ` +
          `${now.submits - since.submits} submissions`
        : "the CPU device has no WebGPU buffers",
  });
  report.values.launches = (await engine.describe()).launches;
}

// Runs the same frames on the chosen device and on the CPU device; compares the heat.
async function compareWithCpu() {
  const jobs = [];
  try {
    const states = [];
    for (const engine of [await cpu(), await device()]) {
      const job = await prepare(engine);
      jobs.push(job);
      for (let run = 0; run < 4; run++) await job.replay();
      states.push(await job.read(0));
    }
    const comparison = await jobs[0].compare(0, states[0], states[1], 1e-5);
    return [{ name: `heat after ${4 * STEPS} steps`, ...comparison }];
  } finally {
    for (const job of jobs) await job.free().catch(() => {});
  }
}

function setPen(pen) {
  if (!simulation) return;
  const written = simulation.job.write(3, new Uint8Array(pen.buffer.slice(0)));
  // An error of the device is that of the next frame too.
  simulation.writing = Promise.allSettled([simulation.writing, written]);
}

function heatAt({ target, clientX, clientY }) {
  const { left, top, width, height } = target.getBoundingClientRect();
  const [x, y] = [((clientX - left) / width) * WIDTH, ((clientY - top) / height) * HEIGHT];
  setPen(new Float32Array([x, y, 14, 1]));
}

by("run").onclick = () => {
  running = !running;
  by("run").textContent = running ? "Pause" : "Run";
  by("run").setAttribute("aria-pressed", String(!running));
};
by("spark").onclick = () => {
  setPen(new Float32Array([WIDTH / 2, HEIGHT / 2, 24, 1]));
  setTimeout(() => setPen(NO_PEN), 200);
};
by("restart").onclick = restart;
await restart();
