// Sources in the URL: the part after `#`, deflated and in base64url, which no server sees.

// Bytes of the value of a link at most: a short link can inflate to gigabytes.
const MOST_BYTES = 2 ** 20;

async function transformed(bytes, stream) {
  const parts = [];
  let size = 0;
  for await (const part of chunks(new Blob([bytes]).stream().pipeThrough(stream))) {
    size += part.length;
    if (size > MOST_BYTES) throw new Error("the source is too large for a link");
    parts.push(part);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// Not every browser can iterate over a stream. Its rest is cancelled if the caller stops.
async function* chunks(stream) {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Returns the fragment of a URL for a value that JSON can express.
export async function encode(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  if (bytes.length > MOST_BYTES) throw new Error("the source is too large for a link");
  const packed = await transformed(bytes, new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return `#${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Returns the value of a fragment; null if there is none, or it is damaged.
export async function decode(fragment) {
  if (fragment.length < 2 || fragment.length > MOST_BYTES) return null;
  try {
    const text = atob(fragment.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const bytes = await transformed(packed, new DecompressionStream("deflate-raw"));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

// Puts a value into the URL of the page, and the URL into the clipboard; returns what happened.
export async function share(value) {
  try {
    history.replaceState(null, "", await encode(value));
  } catch (error) {
    return error.message;
  }
  return copy(location.href, "link");
}

// Copies a text; returns what happened.
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    return `${what} copied`;
  } catch {
    const isLink = text === location.href;
    return `the ${what} could not be copied${isLink ? "; it is in the address bar" : ""}`;
  }
}
