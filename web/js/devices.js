// The choice of a device: WebGPU, or the CPU device, which is always there.
import { by, make } from "./frame.js";
import { Engine } from "./client.js";
import { cpu } from "./measure.js";

// Opens the devices, and fills the list `device` of the page. Returns the async function that returns
// the chosen one, opened anew if it was lost; `changed` is called when another is chosen.
export async function chooseDevice(changed) {
  const select = by("device");
  const engines = { cpu: await cpu() };
  try {
    engines.wgpu = await Engine.open("wgpu");
    select.append(make("option", { value: "wgpu" }, "WebGPU"));
  } catch (error) {
    select.title = error.message;
  }
  select.append(make("option", { value: "cpu" }, "CPU"));
  select.onchange = changed;
  return async () => {
    if (engines[select.value].isLost) engines[select.value] = await Engine.open(select.value);
    return engines[select.value];
  };
}

// Returns a function that runs `work` once more after the current run, however often it is called.
export function latest(work) {
  let [running, again] = [false, false];
  return async function next() {
    again = true;
    if (running) return;
    running = true;
    try {
      while (again) {
        again = false;
        await work();
      }
    } finally {
      running = false;
    }
  };
}
