// Contents of buffers, from short descriptions.
import { checkSize } from "./client.js";

export const FILLS = ["zeros", "ones", "index", "random", "values"];

const ARRAYS = { f32: Float32Array, u32: Uint32Array, i32: Int32Array };

// A reproducible generator of numbers from 0 to 1.
function* random() {
  let state = 12345;
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield (state >>> 8) / 2 ** 24;
  }
}

// Returns the content of a buffer: `{ fill, count, values }`, where the count is one of scalars.
export function contentOf({ fill, count, values = "" }, scalar) {
  const array = ARRAYS[scalar] ?? Uint32Array;
  if (fill === "values") {
    const list = values.split(/[\s,]+/).filter(Boolean);
    const wrong = list.find((text) => Number.isNaN(Number(text)));
    if (wrong) throw new Error(`\`${wrong}\` is not a number; help: separate numbers by commas`);
    return new array(list.map(Number));
  }
  if (!Number.isInteger(count) || count < 1) {
    throw new Error(`a buffer cannot have ${count} elements; help: give a whole number from 1 on`);
  }
  checkSize(4 * count);
  const content = new array(count);
  const generator = random();
  const next = {
    zeros: () => 0,
    ones: () => 1,
    index: (at) => at,
    random: () => (array === Float32Array ? 1 : 2 ** 16) * generator.next().value,
  }[fill];
  for (let at = 0; at < count && fill !== "zeros"; at++) content[at] = next(at);
  return content;
}

const RUST_TYPES = { f32: "f32", u32: "u32", i32: "i32" };

// Returns a number as a literal of Rust.
function literal(text, ty) {
  const number = Number(text);
  if (ty !== "f32") return `${new ARRAYS[ty]([number])[0]}${ty}`;
  if (Number.isFinite(number)) return `${String(number).replace("e+", "e")}f32`;
  return Number.isNaN(number) ? "f32::NAN" : `f32::${number < 0 ? "NEG_" : ""}INFINITY`;
}

const literals = (values, ty) =>
  values
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((text) => literal(text, ty))
    .join(", ");

// Returns the Rust expression for the content of a buffer.
function rustContent({ fill, count, values = "" }, scalar) {
  const ty = RUST_TYPES[scalar] ?? "u32";
  if (fill === "values") return `[${literals(values, ty)}]`;
  if (fill === "index") return `(0..${count}).map(|index| index as ${ty}).collect::<Vec<${ty}>>()`;
  if (fill === "random") {
    const scale = ty === "f32" ? "as f32 / (1 << 24) as f32" : `as ${ty} / 256`;
    return `(0..${count})
        .scan(12345u32, |state, _| {
            *state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            Some((*state >> 8) ${scale})
        })
        .collect::<Vec<${ty}>>()`;
  }
  return `[${fill === "ones" ? 1 : 0}${ty}; ${count}]`;
}

// Returns the names of bindings as variables of Rust, each another one.
function variables(names) {
  const taken = new Set([...RUST_KEYWORDS, ...LOCALS]);
  return names.map((name) => {
    let snake = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
    while (taken.has(snake)) snake += "_";
    taken.add(snake);
    return snake;
  });
}
// What the program itself names.
const LOCALS = ["gpu", "kernel", "launch", "result", "main", "index", "state"];
const RUST_KEYWORDS = new Set(
  ("as async await box break const continue crate dyn else enum extern false final fn for if impl in " +
    "let loop macro match mod move mut override priv pub ref return self static struct super trait " +
    "true try type typeof unsafe unsized use virtual where while yield").split(" "),
);

// Returns a program in Rust that does what a job does.
export function asRust({ wgsl, invocations, buffers, values }, interface_) {
  const names = variables(interface_.bindings.map(({ name }) => name));
  // One more than follow any quotation mark of the source, which would end the string.
  const longest = Math.max(0, ...[...wgsl.matchAll(/"(#*)/g)].map(([, hashes]) => hashes.length));
  const hashes = "#".repeat(longest + 1);
  const uploads = interface_.bindings.map(({ scalar }, index) => {
    const content = rustContent(buffers[index], scalar);
    return `    let ${names[index]} = gpu.upload(&${content})?;\n`;
  });
  const { immediates } = interface_;
  const set = immediates
    ? `.immediate_bytes([${literals(values ?? "", "f32")}]` +
      ".map(f32::to_le_bytes).concat())"
    : "";
  const written = interface_.bindings.findIndex(({ writes }) => writes);
  const print =
    written < 0
      ? ""
      : `    let result = ${names[written]}.download()?;
    println!("{:?}", &result[..result.len().min(16)]);\n`;
  return `//! A kernel from the playground of Scry.

// Cargo.toml: scry-gpu = "0.2"
use scry_gpu::{Device, Launch};

const SOURCE: &str = r${hashes}"
${wgsl}"${hashes};

fn main() -> scry_gpu::Result<()> {
    let gpu = Device::auto()?;
    println!("computing on {}", gpu.info());
    let kernel = gpu.compile(SOURCE)?;
${uploads.join("")}    let launch = Launch::invocations([${invocations.join(", ")}])${set};
    gpu.run(&kernel, &[${names.map((name) => `&${name}`).join(", ")}], launch)?;
${print}    Ok(())
}
`;
}
