// The edges of a photograph: one launch of the kernel of `examples/kernels/edges.wgsl`.
import { by } from "./frame.js";
import { start } from "./client.js";
import { chooseDevice, latest } from "./devices.js";
import { runJob, verify } from "./measure.js";
import { Report } from "./report.js";
import { numbers } from "./results.js";

// Pixels of a side at most: larger photos are reduced.
const MOST_PIXELS = 2048;

// Where the image is flat, terms cancel and only rounding errors are left.
const TOLERANCE = 1e-5;

start();
const wgsl = await (await fetch("kernels/edges.wgsl")).text();
let last = null;
let grey = null;
const report = new Report(by("report"), {
  verify: () => verify(last.job, last.contents, last.outputs, TOLERANCE),
});
// There is nothing to compute until the first photo is read.
const run = latest(() => grey && compute());
const device = await chooseDevice(run);

// Draws a photo, and returns its luminance from 0 to 1.
function read(bitmap) {
  const scale = Math.min(1, MOST_PIXELS / Math.max(bitmap.width, bitmap.height));
  const canvas = by("source");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const { data, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
  const luminance = new Float32Array(width * height);
  for (let at = 0; at < luminance.length; at++) {
    const [r, g, b] = [data[4 * at], data[4 * at + 1], data[4 * at + 2]];
    luminance[at] = (0.299 * r + 0.587 * g + 0.114 * b) / 255;
  }
  return { width, height, luminance };
}

async function compute() {
  const { width, height, luminance } = grey;
  const radius = Number(by("radius").value);
  by("radius-value").textContent = radius;
  by("status").textContent = "running …";
  try {
    const overrides = { src_width: width, src_height: height, RADIUS: radius };
    const job = { wgsl, overrides, invocations: [width, height, 1] };
    const contents = [luminance, new Float32Array(width * height)];
    const engine = await device();
    const { info, outputs, times } = await runJob(engine, job, contents);
    last = { job, contents, outputs };
    draw(numbers(outputs.get(1), "f32"), width, height);
    await report.showDevice(engine);
    await report.showRun(engine, info.kernel, times);
    by("status").textContent = `${width} × ${height} pixels`;
  } catch (error) {
    by("status").textContent = error.message;
  }
}

function draw(edges, width, height) {
  const canvas = by("edges");
  [canvas.width, canvas.height] = [width, height];
  const image = new ImageData(width, height);
  edges.forEach((value, at) => {
    image.data.fill(255 * value, 4 * at, 4 * at + 3);
    image.data[4 * at + 3] = 255;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

let chosen = 0;
async function show(blob) {
  const number = ++chosen;
  try {
    const bitmap = await createImageBitmap(blob);
    // Another photo was chosen meanwhile.
    if (number !== chosen) return bitmap.close();
    grey = read(bitmap);
    await run();
  } catch {
    by("status").textContent = "this file is no picture that the browser can read";
  }
}

by("photo").onchange = ({ target }) => target.files[0] && show(target.files[0]);
by("radius").oninput = run;
const camera = await (await fetch("data/camera.png")).blob();
// Unless a photo was chosen meanwhile.
if (chosen === 0) await show(camera);
