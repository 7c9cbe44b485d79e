// A worker that calls functions of the module by name, and causes faults, for the tests.
import init, * as scry from "../pkg/tests.js";

const ready = init();
const devices = [];

// Faults of browsers and devices.
const faults = {
  // No adapter, as on a machine whose GPU is on the browser's block list.
  refuse_adapter() {
    GPU.prototype.requestAdapter = async () => null;
  },
  // The browser rejects shaders that contain a text.
  refuse_shaders(marker) {
    const create = GPUDevice.prototype.createShaderModule;
    GPUDevice.prototype.createShaderModule = function (descriptor) {
      const { code } = descriptor;
      return create.call(this, code.includes(marker) ? { code: `${code}\nfn broken(` } : descriptor);
    };
  },
  // Remembers devices, for `lose_devices`.
  watch_devices() {
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...args) {
      devices.push(await request.apply(this, args));
      return devices.at(-1);
    };
  },
  lose_devices() {
    for (const device of devices) device.destroy();
  },
};

self.onmessage = async ({ data: { id, name, args } }) => {
  try {
    await ready;
    self.postMessage({ id, value: await (faults[name] ?? scry[name])(...args) });
  } catch (error) {
    self.postMessage({ id, error: String(error.message ?? error) });
  }
};
