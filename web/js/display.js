// Draws a buffer of the GPU on a canvas without copying it to the page, and counts what a page asks
// of WebGPU.

const counts = { buffers: 0, maps: 0, submits: 0 };
// The storage buffers of the page and their devices, while they exist.
let storage = [];
let drawing = null;

// Wraps a method of WebGPU, where the browser has it.
function wrap(type, method, before) {
  const prototype = globalThis[type]?.prototype;
  const original = prototype?.[method];
  if (!original) return;
  prototype[method] = function (...args) {
    const result = original.apply(this, args);
    before(this, result, ...args);
    return result;
  };
}

wrap("GPUDevice", "createBuffer", (device, buffer, { usage }) => {
  counts.buffers++;
  if (usage & GPUBufferUsage.STORAGE) {
    storage = storage.filter((entry) => entry.buffer.deref());
    storage.push({ device: new WeakRef(device), buffer: new WeakRef(buffer) });
  }
});
wrap("GPUBuffer", "mapAsync", () => counts.maps++);
wrap("GPUQueue", "submit", () => counts.submits++);

// Connects a canvas with the storage buffer of this many bytes, which holds its pixels: rows of
// RGBA, each of a multiple of 64 pixels.
function attach(canvas, bytes) {
  const found = storage.filter((entry) => entry.buffer.deref()?.size === bytes);
  if (found.length === 0) throw new Error(`there is no storage buffer of ${bytes} bytes`);
  const { device, buffer } = found.at(-1);
  const context = canvas.getContext("webgpu");
  const usage = GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT;
  context.configure({ device: device.deref(), format: "rgba8unorm", usage, alphaMode: "opaque" });
  drawing = { device, buffer, context, size: [canvas.width, canvas.height] };
}

// Copies the pixels to the canvas, on the GPU.
function draw() {
  const { context, size } = drawing;
  const [device, buffer] = [drawing.device.deref(), drawing.buffer.deref()];
  if (!device || !buffer) throw new Error("the buffer of the pixels was freed");
  const encoder = device.createCommandEncoder();
  const source = { buffer, bytesPerRow: 4 * size[0] };
  encoder.copyBufferToTexture(source, { texture: context.getCurrentTexture() }, size);
  device.queue.submit([encoder.finish()]);
}

// The calls of the module that this file answers.
export const calls = () => ({ attach, draw, counts: () => ({ ...counts }) });
