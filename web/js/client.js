// Calls the engine, which runs in a worker; without workers, on the page.

// Where the engine runs: "worker" or "page".
export let place = "worker";

const pending = new Map();
let nextId = 0;
let send;

function settle({ id, value, error }) {
  const call = pending.get(id);
  pending.delete(id);
  if (error === undefined) call?.resolve(value);
  else call?.reject(new Error(error));
}

// Fails all calls, when the worker ends.
function fail(why) {
  for (const id of [...pending.keys()]) settle({ id, error: why });
}

function startWorker(url) {
  const worker = new Worker(url, { type: "module" });
  worker.onmessage = ({ data }) => settle(data);
  worker.onerror = (event) => {
    event.preventDefault();
    fail(`the engine stopped: ${event.message ?? "it could not be loaded"}; help: reload the page`);
  };
  return (message, transfer) => worker.postMessage(message, transfer);
}

async function startHere(url) {
  place = "page";
  const { answer } = await import(url);
  return async (message) => settle(await answer(message));
}

// Starts the engine: `name` is that of a module beside this file, `host` or `explorer-host`.
export function start(name = "host") {
  const url = new URL(`${name}.js`, import.meta.url);
  send = (async () => {
    try {
      return startWorker(new URL(`worker.js?host=${name}`, import.meta.url));
    } catch {
      return startHere(url);
    }
  })();
}

// Calls a method of an object of the engine; object 0 is the module.
export async function call(object, method, args = [], transfer = []) {
  const post = await send;
  return new Promise((resolve, reject) => {
    const id = nextId++;
    pending.set(id, { resolve, reject });
    post({ id, object, method, args }, transfer);
  });
}

// Calls a method of an object; remembers if the error is the loss of the engine's device.
async function callOn(engine, object, method, args, transfer) {
  try {
    return await call(object, method, args, transfer);
  } catch (error) {
    if (/ is lost: /.test(error.message)) engine.isLost = true;
    throw error;
  }
}

// A kernel with its buffers, on one device.
class Job {
  constructor(engine, object) {
    this.engine = engine;
    this.object = object;
  }
  call(method, args) {
    return callOn(this.engine, this.object, method, args);
  }
  async describe() {
    return JSON.parse(await this.call("description"));
  }
  // Runs the kernel once; returns milliseconds.
  run() {
    return this.call("run");
  }
  // Runs the kernel once; returns milliseconds on the device.
  deviceTime() {
    return this.call("device_time");
  }
  write(index, bytes) {
    return this.call("write", [index, bytes]);
  }
  read(index) {
    return this.call("read", [index]);
  }
  async compare(index, expected, found, tolerance) {
    return JSON.parse(await this.call("compare", [index, expected, found, tolerance]));
  }
  // Records launches for `replay`; in every second one the first two buffers are exchanged.
  record(steps) {
    return this.call("record", [steps]);
  }
  replay() {
    return this.call("replay");
  }
  free() {
    return this.call("free");
  }
}

// An open device.
export class Engine {
  constructor(object) {
    this.object = object;
    this.isLost = false;
  }
  // Opens a device; with an empty selector, the best one.
  static async open(selector = "") {
    return new Engine(await call(0, "open", [selector]));
  }
  async describe() {
    return JSON.parse(await call(this.object, "description"));
  }
  // Compiles a kernel and uploads its buffers, each of them an ArrayBuffer view.
  async prepare({ wgsl, entry, overrides, invocations, immediates }, contents) {
    const views = contents.map(
      (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength),
    );
    const size = views.reduce((sum, view) => sum + view.length, 0);
    checkSize(size);
    const all = new Uint8Array(size);
    let offset = 0;
    for (const view of views) {
      all.set(view, offset);
      offset += view.length;
    }
    const buffers = views.map((view) => view.length);
    const job = { wgsl, entry, overrides, buffers, invocations, immediates };
    const args = [JSON.stringify(job), all];
    return new Job(this, await callOn(this, this.object, "prepare", args, [all.buffer]));
  }
}

// Bytes of the buffers of a job at most: they are in the memory of the module, which has 4 GiB.
const MOST_BYTES = 512 * 2 ** 20;

// Rejects buffers that are larger than a page can upload at once.
export function checkSize(bytes) {
  if (bytes <= MOST_BYTES) return;
  throw new Error(
    `the buffers have ${bytes} bytes, and a page can upload ${MOST_BYTES} at once; ` +
      "help: use smaller buffers",
  );
}
