// Results as a picture, a table or a plot.
import { make } from "./frame.js";

const ARRAYS = { f32: Float32Array, u32: Uint32Array, i32: Int32Array };

// Returns bytes as numbers of a scalar type; as words if the type is another one.
export function numbers(bytes, scalar) {
  const array = ARRAYS[scalar] ?? Uint32Array;
  return new array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 4));
}

// Returns the smallest and the largest finite number.
function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high && value < Infinity) high = value;
  }
  return Number.isFinite(low) && high > low ? [low, high] : [Math.min(low, 0) || 0, 1];
}

// Draws numbers as a picture of a width: grey, or four components per pixel.
export function picture(values, width, components = 1) {
  const pixels = Math.floor(values.length / (components === 4 ? 4 : 1));
  const height = Math.max(1, Math.floor(pixels / width));
  const canvas = make("canvas", { className: "picture", width, height });
  const image = new ImageData(width, height);
  const [low, high] = components === 4 ? [0, 1] : range(values);
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
  const [low, high] = range(values);
  const x = (at) => margin + (at / Math.max(1, values.length - 1)) * (width - 2 * margin);
  const y = (value) => height - margin - ((value - low) / (high - low)) * (height - 2 * margin);
  const step = Math.max(1, Math.floor(values.length / 2000));
  const points = [];
  for (let at = 0; at < values.length; at += step) {
    if (Number.isFinite(values[at])) points.push(`${x(at).toFixed(1)},${y(values[at]).toFixed(1)}`);
  }
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${values.length} values from ${low} to ${high}`);
  svg.style.width = "100%";
  const line = document.createElementNS(name, "polyline");
  line.setAttribute("points", points.join(" "));
  line.setAttribute("style", "fill: none; stroke: var(--accent); stroke-width: 1.5");
  svg.append(line);
  const label = `${values.length.toLocaleString("en")} values from ${low} to ${high}`;
  return make("div", {}, svg, make("div", { className: "quiet" }, label));
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
