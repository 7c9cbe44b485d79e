// Calls the engine, which runs in a worker; without workers, on the page.

// Where the engine runs: "worker" or "page".
export let place = "worker";

// The engine of one module, and the calls that it has not answered.
class Host {
  #name;
  #worker = null;
  #send;
  #pending = new Map();
  #nextId = 0;
  #hasAnswered = false;
  // Why it answers no more calls.
  #stopped = null;

  constructor(name) {
    this.#name = name;
    try {
      this.#startWorker();
    } catch {
      this.#startHere();
    }
  }

  get name() {
    return this.#name;
  }

  #startWorker() {
    const url = new URL(`worker.js?host=${this.#name}`, import.meta.url);
    const worker = new Worker(url, { type: "module" });
    worker.onmessage = ({ data }) => {
      this.#hasAnswered = true;
      this.#settle(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.#workerFailed(event.message ?? "it could not be loaded");
    };
    worker.onmessageerror = () => this.#workerFailed("an answer could not be read");
    this.#worker = worker;
    this.#send = (message, transfer) => worker.postMessage(message, transfer);
    place = "worker";
  }

  #startHere() {
    const loaded = import(new URL(`${this.#name}.js`, import.meta.url));
    this.#send = async (message) => {
      try {
        const { answer } = await loaded;
        this.#settle(await answer(message));
      } catch (error) {
        const why = `the engine could not be loaded: ${error.message}; help: reload the page`;
        this.#settle({ id: message.id, error: why });
      }
    };
    place = "page";
  }

  // A worker that never answered has no objects yet: the page can do its calls. Objects of another
  // one are gone.
  #workerFailed(why) {
    if (this.#stopped) return;
    if (this.#hasAnswered) return this.stop(`the engine stopped: ${why}; help: reload the page`);
    this.#worker.terminate();
    this.#worker = null;
    this.#startHere();
    for (const { message } of this.#pending.values()) this.#send(message);
  }

  #settle({ id, value, error }) {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) call?.resolve(value);
    else call?.reject(new Error(error));
  }

  // Ends the worker; all calls, also later ones, are rejected.
  stop(why) {
    this.#stopped = why;
    this.#worker?.terminate();
    for (const id of [...this.#pending.keys()]) this.#settle({ id, error: why });
  }

  call(object, method, args = [], transfer = []) {
    if (this.#stopped) return Promise.reject(new Error(this.#stopped));
    return new Promise((resolve, reject) => {
      const message = { id: this.#nextId++, object, method, args };
      this.#pending.set(message.id, { resolve, reject, message });
      try {
        this.#send(message, transfer);
      } catch (error) {
        this.#settle({ id: message.id, error: error.message });
      }
    });
  }
}

let host;

// Starts the engine: `name` is that of a module beside this file, `host` or `explorer-host`.
export function start(name = "host") {
  host = new Host(name);
}

// Ends the engine, whatever it computes, and starts a new one: open devices are lost. Has no effect
// on a page without workers.
export function restart(why) {
  if (place !== "worker") return;
  host.stop(why);
  start(host.name);
}

// Calls a method of the module of the engine, which is object 0.
export const call = (object, method, args, transfer) => host.call(object, method, args, transfer);

// Calls a method of an object; remembers if the error is the loss of the engine's device.
async function callOn(engine, object, method, args, transfer) {
  try {
    return await engine.host.call(object, method, args, transfer);
  } catch (error) {
    if (/ is lost: /.test(error.message)) engine.wasLost = true;
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
  constructor(host, object) {
    this.host = host;
    this.object = object;
    this.wasLost = false;
  }
  // Opens a device; with an empty selector, the best one.
  static async open(selector = "") {
    const opening = host;
    return new Engine(opening, await opening.call(0, "open", [selector]));
  }
  // Whether it has to be opened anew: its device is lost, or the engine was restarted.
  get isLost() {
    return this.wasLost || this.host !== host;
  }
  async describe() {
    return JSON.parse(await callOn(this, this.object, "description"));
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
