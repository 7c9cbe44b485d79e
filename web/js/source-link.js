// Sources in the URL: the part after `#`, deflated and in base64url, which no server sees.

async function transformed(bytes, stream) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

// Returns the fragment of a URL for a value that JSON can express.
export async function encode(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const packed = await transformed(bytes, new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return `#${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// Returns the value of a fragment; null if there is none, or it is damaged.
export async function decode(fragment) {
  if (fragment.length < 2) return null;
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
  history.replaceState(null, "", await encode(value));
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
