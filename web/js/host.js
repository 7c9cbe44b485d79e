// Answers the calls of a page to the engine: in a worker, or on the page itself.
import init, { Engine, reflect } from "../pkg/engine.js";
import * as display from "./display.js";
import { compiled } from "./module.js";

const ready = init({ module_or_path: compiled("engine") });
const objects = new Map();
let nextObject = 1;

// What the module itself does.
const MODULE = {
  open: (selector) => Engine.open(selector),
  reflect: (wgsl, entry) => reflect(wgsl, entry),
  adapter,
  ...display.calls(),
};

// What the browser says of the GPU; null without WebGPU.
async function adapter() {
  const found = await navigator.gpu?.requestAdapter();
  if (!found) return null;
  const { vendor, architecture, device, description } = found.info;
  const limits = {};
  for (const name in found.limits) limits[name] = found.limits[name];
  return { vendor, architecture, device, description, features: [...found.features], limits };
}

function keep(object) {
  objects.set(nextObject, object);
  return nextObject++;
}

// Calls a method; objects of the module are answered by number.
async function invoke({ object, method, args }) {
  await ready;
  if (object === 0) {
    const value = await MODULE[method](...args);
    return value?.__wbg_ptr ? keep(value) : value;
  }
  const target = objects.get(object);
  if (!target) throw new Error("the object was freed");
  if (method === "free") objects.delete(object);
  const member = target[method];
  const value = typeof member === "function" ? await member.apply(target, args) : member;
  return value?.__wbg_ptr ? keep(value) : value;
}

// Returns the answer to a call.
export async function answer(request) {
  try {
    return { id: request.id, value: await invoke(request) };
  } catch (error) {
    const isTrap = error instanceof WebAssembly.RuntimeError;
    const text = String(error?.message ?? error);
    const why = isTrap ? `the engine failed: ${text}; help: reload the page` : text;
    return { id: request.id, error: why };
  }
}
