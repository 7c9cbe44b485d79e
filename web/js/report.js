// The panel of a page that says what computed, how fast, and whether the CPU agrees.
import { call, place } from "./client.js";
import { make } from "./frame.js";
import { copy } from "./source-link.js";

const LIMITS = {
  max_buffer_size: (value) => `${bytes(value)} in a buffer`,
  max_storage_binding_size: (value) => `${bytes(value)} in a binding`,
  max_storage_bindings: (value) => `${value} storage bindings`,
  max_workgroup_invocations: (value) => `${value} invocations of a workgroup`,
  max_workgroup_memory: (value) => `${bytes(value)} of workgroup memory`,
};

const milliseconds = (time) =>
  Number.isFinite(time) ? `${time < 10 ? time.toFixed(2) : time.toFixed(0)} ms` : "not measured";

// Returns a number of bytes, in the largest unit of which it is a whole number.
function bytes(value) {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (unit < 3 && value >= 1024 && value % 1024 === 0) [value, unit] = [value / 1024, unit + 1];
  return `${value.toLocaleString("en")} ${units[unit]}`;
}

const number = (value) => (value < 1e-3 && value > 0 ? value.toExponential(2) : String(value));

export class Report {
  // Creates the panel in an element. `verify` returns comparisons with the CPU device.
  constructor(element, { verify }) {
    this.values = {};
    this.table = make("tbody");
    this.note = make("span", { className: "status", role: "status" });
    this.verifyButton = make("button", { disabled: true }, "Verify against CPU");
    this.verifyButton.onclick = () => this.verify(verify);
    const copyButton = make("button", {}, "Copy report");
    copyButton.onclick = async () => {
      this.note.textContent = await copy(JSON.stringify(this.json(), null, 2), "report");
    };
    element.classList.add("panel");
    element.append(
      make(
        "div",
        { className: "head" },
        make("h2", {}, "Report"),
        make("span", { className: "spring" }),
        this.note,
        make("span", { className: "group" }, this.verifyButton, copyButton),
      ),
      make("div", { className: "body" }, make("table", {}, this.table)),
    );
  }

  // Shows the device of an engine.
  async showDevice(engine) {
    const { title, info, launches } = await engine.describe();
    this.values.device = { title, ...info };
    this.values.launches = launches;
    this.values.adapter ??= await call(0, "adapter");
    this.draw();
  }

  // Shows measured times, and the launches so far; earlier verdicts are outdated.
  async showRun(engine, kernel, times) {
    const { launches } = await engine.describe();
    Object.assign(this.values, { kernel, times, launches });
    delete this.values.verified;
    this.verifyButton.disabled = false;
    this.draw();
  }

  // Shows other values: texts by name.
  show(extra) {
    this.values.extra = { ...this.values.extra, ...extra };
    this.draw();
  }

  async verify(work) {
    this.verifyButton.disabled = true;
    this.note.textContent = "computing on the CPU device …";
    try {
      this.values.verified = await work();
      this.note.textContent = "";
    } catch (error) {
      this.note.textContent = error.message;
    }
    this.verifyButton.disabled = false;
    this.draw();
  }

  // The report as a value for JSON.
  json() {
    return { page: location.href, browser: navigator.userAgent, engine: place, ...this.values };
  }

  draw() {
    const { device, adapter, kernel, times, launches, extra = {}, verified } = this.values;
    const rows = [];
    if (device) rows.push(["Device", device.title]);
    if (adapter) {
      const parts = [adapter.vendor, adapter.architecture, adapter.device, adapter.description];
      rows.push(["Adapter", parts.filter(Boolean).join(", ") || "the browser does not say"]);
    } else if (device) rows.push(["Adapter", "none: this browser has no WebGPU here"]);
    if (device) {
      const limits = Object.entries(LIMITS).map(([name, format]) => format(device.limits[name]));
      rows.push(["Limits", limits.join(" · ")]);
    }
    rows.push(["Engine", place === "worker" ? "in a worker" : "on the page: no workers here"]);
    if (times) {
      rows.push(["Kernel", kernel]);
      rows.push(["Compilation", milliseconds(times.compile)]);
      rows.push(["First result (cold)", milliseconds(times.first)]);
      rows.push(["Launch (warm)", milliseconds(times.warm)]);
      rows.push(["On the device", milliseconds(times.device)]);
    }
    if (launches !== undefined) rows.push(["Launches", launches.toLocaleString("en")]);
    rows.push(...Object.entries(extra));
    const cells = rows.map(([name, text]) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, text)),
    );
    for (const result of verified ?? []) cells.push(verdictRow(result));
    this.table.replaceChildren(...cells);
  }
}

function verdictRow({ name, agrees, compared, largest, ulps, first }) {
  const distance = ulps > 2 ** 40 ? "" : `, ${ulps} ULPs`;
  const text = agrees
    ? `${name}: ${compared.toLocaleString("en")} values agree, largest error ${number(largest)}${distance}`
    : `${name}${first.path} is ${first.found}, on the CPU ${first.expected}; largest error ${number(largest)}`;
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, "Verified"),
    make("td", { className: agrees ? "good" : "bad" }, text),
  );
}
