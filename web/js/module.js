// Begins early what takes longest: loading and compiling a module, and finding the GPU.

const modules = new Map();

// Returns the compiled WebAssembly of a module: `engine` or `explorer`.
export function compiled(name) {
  if (!modules.has(name)) {
    const url = new URL(`../pkg/${name}_bg.wasm`, import.meta.url);
    modules.set(name, WebAssembly.compileStreaming(fetch(url)));
  }
  return modules.get(name);
}

// Asks for the GPU, so that the browser has it ready when the engine asks.
export function findGpu() {
  return navigator.gpu?.requestAdapter().catch(() => null);
}
