// A drawn digit, and its nearest neighbours among handwritten ones.
import { by, make } from "./frame.js";
import { start } from "./client.js";
import { chooseDevice, latest } from "./devices.js";
import { runJob, verify } from "./measure.js";
import { fetchArray } from "./npy.js";
import { Report } from "./report.js";
import { numbers } from "./results.js";

start();
const wgsl = await (await fetch("kernels/distances.wgsl")).text();
const images = await fetchArray("data/digits_images.npy");
const labels = await fetchArray("data/digits_labels.npy");
const count = images.shape[0];

let query = null;
// The image of the set that is shown, which is not its own neighbour.
let shown = -1;
let last = null;
const report = new Report(by("report"), {
  verify: () => verify(last.job, last.contents, last.outputs, 1e-3),
});
const run = latest(classify);
const device = await chooseDevice(() => query && run());

async function classify() {
  const asked = query;
  if (!asked) return;
  const job = { wgsl, invocations: [count, 1, 1] };
  const contents = [images.elements, asked, new Float32Array(count)];
  try {
    const engine = await device();
    const { info, outputs, times } = await runJob(engine, job, contents);
    // The pad was cleared, or has another digit, which has its own run.
    if (query !== asked) return;
    last = { job, contents, outputs };
    showNeighbours(numbers(outputs.get(2), "f32"));
    await report.showDevice(engine);
    await report.showRun(engine, info.kernel, times);
    by("status").textContent = "";
  } catch (error) {
    by("status").textContent = error.message;
  }
}

// Shows the nearest images, and the label that most of them have.
function showNeighbours(distances) {
  const k = Math.min(25, Math.max(1, Number(by("k").value) || 1));
  const order = [...distances.keys()].filter((index) => index !== shown);
  order.sort((a, b) => distances[a] - distances[b] || a - b);
  const nearest = order.slice(0, k);
  const votes = new Map();
  // The nearer of two labels with as many votes is first in the map.
  for (const index of nearest) {
    votes.set(labels.elements[index], (votes.get(labels.elements[index]) ?? 0) + 1);
  }
  by("answer").textContent = [...votes].reduce((best, vote) => (vote[1] > best[1] ? vote : best))[0];
  by("neighbours").replaceChildren(
    ...nearest.map((index) => {
      const canvas = make("canvas", { className: "pixels", width: 8, height: 8 });
      canvas.style.width = "48px";
      drawImage(canvas, images.elements.subarray(64 * index, 64 * index + 64));
      const distance = Math.sqrt(distances[index]).toFixed(1);
      return make("div", {}, canvas, make("div", { className: "quiet" }, `${labels.elements[index]} · ${distance}`));
    }),
  );
}

// Draws 64 values from 0 to 16.
function drawImage(canvas, values) {
  const image = new ImageData(8, 8);
  values.forEach((value, at) => {
    image.data.fill(255 - value * 15.9, 4 * at, 4 * at + 3);
    image.data[4 * at + 3] = 255;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function setQuery(values, index) {
  query = values;
  shown = index;
  drawImage(by("seen"), values);
  return run();
}

// Drawing

const pad = by("pad");
const pen = pad.getContext("2d", { willReadFrequently: true });
let drawing = false;

function clear() {
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, pad.width, pad.height);
  by("answer").textContent = "?";
  by("neighbours").replaceChildren();
  query = null;
}

function position({ clientX, clientY }) {
  const { left, top, width, height } = pad.getBoundingClientRect();
  return [((clientX - left) / width) * pad.width, ((clientY - top) / height) * pad.height];
}

// Reduces the drawing to the set's images: the box around it at 32 × 32, black pixels of each 4 × 4.
function drawn() {
  const { data } = pen.getImageData(0, 0, pad.width, pad.height);
  const isBlack = (x, y) => data[4 * (y * pad.width + x)] < 128;
  let [left, top, right, bottom] = [pad.width, pad.height, -1, -1];
  for (let y = 0; y < pad.height; y++) {
    for (let x = 0; x < pad.width; x++) {
      if (!isBlack(x, y)) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  }
  if (right < 0) return null;
  const side = Math.max(right - left, bottom - top) + 1;
  const [x0, y0] = [(left + right + 1 - side) / 2, (top + bottom + 1 - side) / 2];
  const values = new Float32Array(64);
  for (let y = 0; y < 32; y++) {
    for (let x = 0; x < 32; x++) {
      const [sx, sy] = [x0 + ((x + 0.5) * side) / 32, y0 + ((y + 0.5) * side) / 32];
      const inside = sx >= 0 && sy >= 0 && sx < pad.width && sy < pad.height;
      if (inside && isBlack(Math.floor(sx), Math.floor(sy))) values[(y >> 2) * 8 + (x >> 2)]++;
    }
  }
  return values;
}

function line([x, y], [toX, toY]) {
  pen.strokeStyle = "#000";
  pen.lineWidth = 26;
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(toX, toY);
  pen.stroke();
}

let before;
pad.addEventListener("pointerdown", (event) => {
  if (shown >= 0) clear();
  shown = -1;
  drawing = true;
  pad.setPointerCapture(event.pointerId);
  before = position(event);
  line(before, before);
});
pad.addEventListener("pointermove", (event) => {
  if (!drawing) return;
  const next = position(event);
  line(before, next);
  before = next;
});
for (const event of ["pointerup", "pointercancel"]) {
  pad.addEventListener(event, () => {
    const values = drawing ? drawn() : null;
    drawing = false;
    if (values) setQuery(values, -1);
  });
}

// Shows an image of the set on the pad.
function showSample(index) {
  clear();
  const values = images.elements.slice(64 * index, 64 * index + 64);
  const cell = pad.width / 8;
  values.forEach((value, at) => {
    const shade = 255 - value * 15.9;
    pen.fillStyle = `rgb(${shade} ${shade} ${shade})`;
    pen.fillRect((at % 8) * cell, Math.floor(at / 8) * cell, cell, cell);
  });
  return setQuery(values, index);
}

by("clear").onclick = clear;
by("sample").onclick = () => showSample(Math.floor(Math.random() * count));
by("k").onchange = () => query && run();
await showSample(12);
