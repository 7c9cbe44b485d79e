// The compiler explorer: a source, and the languages that it is compiled to, linked by lines.
import { by, make } from "./frame.js";
import { call, place, start } from "./client.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { decode, share } from "./source-link.js";

const NAMES = ["KIR", "PTX", "SPIR-V", "WGSL"];

start("explorer-host");

const example = by("example");
EXAMPLES.forEach(({ name }, index) => example.append(make("option", { value: index }, name)));

const editor = new Editor(by("source"), EXAMPLES[2].wgsl, later);
example.value = "2";
let entry = "";

// Shows the source of the URL, if it has one.
async function loadShared() {
  const shared = await decode(location.hash);
  if (typeof shared?.wgsl !== "string") return;
  const found = example.querySelector('option[value=""]');
  if (!found) example.prepend(make("option", { value: "" }, "from the link"));
  example.value = "";
  editor.text = shared.wgsl;
  entry = String(shared.entry ?? "");
  const targets = [...by("target").options].map(({ value }) => value);
  if (targets.includes(shared.target)) by("target").value = shared.target;
}

// One panel for each language; on narrow pages one at a time.
const panes = NAMES.map((name) => {
  const list = make("div", {
    className: "listing",
    tabIndex: 0,
    role: "region",
    ariaLabel: `${name} of the kernel`,
  });
  const lines = make("span", { className: "quiet" });
  const head = make("div", { className: "head" }, make("h2", {}, name), lines);
  const panel = make("section", { className: "panel" }, head, list);
  const tab = make("button", {}, name);
  tab.onclick = () => choose(name);
  by("tabs").append(tab);
  by("panes").append(panel);
  return { name, panel, list, lines, tab };
});

function choose(name) {
  for (const pane of panes) {
    pane.panel.classList.toggle("chosen", pane.name === name);
    pane.tab.setAttribute("aria-pressed", pane.name === name);
  }
}
choose("PTX");

let timer;
function later() {
  clearTimeout(timer);
  timer = setTimeout(compile, 120);
}

let latest = 0;
async function compile() {
  const number = ++latest;
  const begun = performance.now();
  const request = [editor.text, entry, by("target").value, by("checked").checked];
  let found;
  try {
    found = JSON.parse(await call(0, "explore", request));
  } catch (error) {
    found = { error: { message: error.message, text: error.message } };
  }
  // A later edit has its own answer.
  if (number !== latest) return;
  by("problem").hidden = !found.error;
  editor.underline(found.error);
  for (const pane of panes) pane.panel.style.opacity = found.error ? 0.45 : 1;
  if (found.error) {
    by("problem").textContent = found.error.text;
    by("status").textContent = "the code on the right is of the last source without errors";
    return;
  }
  showEntries(found);
  panes.forEach((pane, index) => showPane(pane, found.panes[index]));
  editor.tint(new Set(found.panes.flatMap(({ from }) => from ?? [])), hue);
  light(number === 1 ? busiest(found) : editor.line);
  by("status").textContent = summary(found, performance.now() - begun);
}

function showEntries({ entries, entry: chosen }) {
  by("entry").replaceChildren(...entries.map((name) => make("option", {}, name)));
  by("entry").value = chosen;
}

function summary(found, milliseconds) {
  const parts = [
    `compiled in ${milliseconds.toFixed(0)} ms`,
    `workgroups of ${found.workgroup.filter((size, axis) => axis === 0 || size > 1).join(" × ")}`,
  ];
  if (found.memory) parts.push(`${found.memory} bytes of workgroup memory`);
  if (found.features) parts.push(`needs ${found.features}`);
  if (found.assumed.length) parts.push(`${found.assumed.join(", ")} assumed to be 1`);
  if (place === "page") parts.push("no workers here: compiled on the page");
  return parts.join(" · ");
}

function showPane(pane, { lines, from, error }) {
  if (error) {
    pane.lines.textContent = "";
    pane.list.replaceChildren(make("p", { className: "problem" }, error));
    return;
  }
  pane.lines.textContent = `${lines.length} lines`;
  const rows = lines.map((text, index) => {
    const row = make("span", { className: "row" }, text);
    row.dataset.from = from[index];
    if (from[index] > 0) row.style.setProperty("--hue", hue(from[index]));
    return row;
  });
  pane.list.replaceChildren(...rows);
}

// Returns the hue of a source line: neighbours differ most.
const hue = (line) => (line * 137) % 360;

// Returns the line of the source that most of the generated code is from.
function busiest({ panes: [kir] }) {
  const counts = new Map();
  for (const line of kir.from ?? []) if (line > 0) counts.set(line, (counts.get(line) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

// Highlights a line of the source and all lines that are from it; shows the longest run of those.
function light(line, origin) {
  editor.light(line);
  for (const pane of panes) {
    let [run, longest] = [[], []];
    for (const row of pane.list.querySelectorAll(".row")) {
      const isLit = Number(row.dataset.from) === line && line > 0;
      row.classList.toggle("lit", isLit);
      if (isLit) run.push(row);
      else run = [];
      if (run.length > longest.length) longest = run;
    }
    if (longest.length > 0 && pane.list !== origin) {
      const top = longest[0].offsetTop - pane.list.offsetTop;
      pane.list.scrollTop = top - pane.list.clientHeight / 3;
    }
  }
}

for (const pane of panes) {
  pane.list.addEventListener("click", ({ target }) => {
    const line = Number(target.closest(".row")?.dataset.from ?? 0);
    if (line === 0) return;
    light(line, pane.list);
    editor.reveal(line);
  });
}
for (const event of ["click", "keyup"]) {
  editor.area.addEventListener(event, () => light(editor.line));
}
example.onchange = () => {
  if (example.value === "") return;
  editor.text = EXAMPLES[example.value].wgsl;
  entry = "";
  compile();
};
by("entry").onchange = () => {
  entry = by("entry").value;
  compile();
};
by("target").onchange = compile;
by("checked").onchange = compile;
by("link").onclick = async () => {
  const value = { wgsl: editor.text, target: by("target").value, entry: by("entry").value };
  by("status").textContent = await share(value);
};
addEventListener("hashchange", () => loadShared().then(compile));
await loadShared();
compile();
