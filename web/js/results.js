// Results as a picture, a table or a plot.
import { make } from "./frame.js";

const ARRAYS = { f32: Float32Array, u32: Uint32Array, i32: Int32Array };

// Returns bytes as numbers of a scalar type; as words if the type is another one.
export function numbers(bytes, scalar) {
  const array = ARRAYS[scalar] ?? Uint32Array;
  return new array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 4));
}

// Returns the smallest and the largest finite number; null if there is none.
export function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

// Returns the numbers that are black and white in a picture: if all are equal, 0 and 1, or beyond.
function shades(values) {
  const [low, high] = range(values) ?? [0, 1];
  return low < high ? [low, high] : [Math.min(0, low), Math.max(1, high)];
}

// Pixels of a side of a picture at most: browsers draw no canvas that is much larger.
export const MOST_PIXELS = 8192;

// Returns a whole number from 1 to a limit, from the text of an input.
export const whole = (text, most) => Math.min(most, Math.max(1, Math.round(Number(text)) || 1));

// Draws numbers as a picture of a width: grey, or four components per pixel.
export function picture(values, wide, components = 1) {
  const pixels = Math.floor(values.length / (components === 4 ? 4 : 1));
  const width = Math.min(whole(wide, MOST_PIXELS), Math.max(1, pixels));
  const height = whole(Math.floor(pixels / width), MOST_PIXELS);
  const canvas = make("canvas", { className: "picture", width, height });
  const image = new ImageData(width, height);
  const [low, high] = components === 4 ? [0, 1] : shades(values);
  const scale = 255 / (high - low);
  for (let at = 0; at < width * height; at++) {
    for (let channel = 0; channel < 3; channel++) {
      const value = components === 4 ? values[4 * at + channel] : values[at];
      image.data[4 * at + channel] = (value - low) * scale;
    }
    image.data[4 * at + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// Draws numbers as a line.
export function plot(values) {
  const [width, height, margin] = [640, 260, 8];
  const [low, high] = range(values) ?? [0, 0];
  const x = (at) => margin + (at / Math.max(1, values.length - 1)) * (width - 2 * margin);
  // Equal values are in the middle.
  const part = (value) => (low < high ? (value - low) / (high - low) : 0.5);
  const y = (value) => height - margin - part(value) * (height - 2 * margin);
  const step = Math.max(1, Math.floor(values.length / 2000));
  const points = [];
  for (let at = 0; at < values.length; at += step) {
    if (Number.isFinite(values[at])) points.push(`${x(at).toFixed(1)},${y(values[at]).toFixed(1)}`);
  }
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", described(values));
  svg.style.width = "100%";
  const line = document.createElementNS(name, "polyline");
  line.setAttribute("points", points.join(" "));
  line.setAttribute("style", "fill: none; stroke: var(--accent); stroke-width: 1.5");
  svg.append(line);
  return make("div", {}, svg, make("div", { className: "quiet" }, described(values)));
}

function described(values) {
  const count = `${values.length.toLocaleString("en")} values`;
  const found = range(values);
  return found ? `${count} from ${found[0]} to ${found[1]}` : `${count}, none of them finite`;
}

// Lists the first numbers, some in a row.
export function table(values, columns = 4) {
  const shown = Math.min(values.length, 256);
  const rows = [];
  for (let at = 0; at < shown; at += columns) {
    const cells = [...values.slice(at, Math.min(at + columns, shown))].map((value) =>
      make("td", {}, Number.isInteger(value) ? String(value) : value.toPrecision(7)),
    );
    rows.push(make("tr", {}, make("th", { scope: "row" }, String(at)), ...cells));
  }
  const rest = values.length - shown;
  const more = rest > 0 ? [make("div", { className: "quiet" }, `and ${rest} more`)] : [];
  const list = make("table", {}, make("tbody", {}, ...rows));
  return make("div", { className: "values", tabIndex: 0 }, list, ...more);
}
