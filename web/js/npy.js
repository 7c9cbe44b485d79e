// Reads arrays of NumPy's format `.npy`: little-endian f32 and u32.

const ARRAYS = { "<f4": Float32Array, "<u4": Uint32Array };

// Fetches a file; returns its shape and elements.
export async function fetchArray(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} could not be loaded: ${response.status}`);
  const buffer = await response.arrayBuffer();
  const view = new DataView(buffer);
  const text = new TextDecoder("latin1").decode(new Uint8Array(buffer, 0, Math.min(256, buffer.byteLength)));
  const type = text.match(/'descr': '([^']+)'/)?.[1];
  const array = ARRAYS[type];
  if (!text.slice(1).startsWith("NUMPY") || !array || !text.includes("'fortran_order': False")) {
    throw new Error(`${url} is no array of f32 or u32 in rows`);
  }
  const shape = text.match(/'shape': \(([^)]*)\)/)[1].split(",").filter((part) => part.trim());
  return { shape: shape.map(Number), elements: new array(buffer, 10 + view.getUint16(8, true)) };
}
