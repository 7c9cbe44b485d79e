// A source editor: a text area above a layer with line numbers, marks and underlined errors.
import { make } from "./frame.js";

export class Editor {
  // Creates the editor in an element; `changed` is called when its text changes.
  constructor(element, text, changed) {
    this.marks = make("div", { className: "marks", ariaHidden: "true" });
    this.area = make("textarea", {
      value: text,
      spellcheck: false,
      autocapitalize: "off",
      autocomplete: "off",
      ariaLabel: "WGSL source",
      wrap: "off",
    });
    element.classList.add("editor");
    element.append(this.marks, this.area);
    this.lit = 0;
    this.error = null;
    this.tinted = new Set();
    this.hue = () => 0;
    this.area.addEventListener("input", () => {
      this.error = null;
      this.draw();
      changed();
    });
    this.area.addEventListener("scroll", () => this.scroll());
    this.area.addEventListener("keydown", (event) => this.indent(event));
    this.draw();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.error = null;
    this.draw();
  }

  // The line of the cursor, from 1.
  get line() {
    return this.text.slice(0, this.area.selectionStart).split("\n").length;
  }

  // Underlines an error: `{ line, column }`, or null for none.
  underline(error) {
    this.error = error?.line ? error : null;
    this.draw();
  }

  // Highlights a line.
  light(line) {
    if (line === this.lit) return;
    this.lit = line;
    this.draw();
  }

  // Marks lines in the margin, each with its hue.
  tint(lines, hue) {
    this.tinted = lines;
    this.hue = hue;
    this.draw();
  }

  // Scrolls a line into view.
  reveal(line) {
    const top = (line - 1) * LINE_HEIGHT;
    const { scrollTop, clientHeight } = this.area;
    if (top < scrollTop || top > scrollTop + clientHeight - 3 * LINE_HEIGHT) {
      this.area.scrollTop = Math.max(0, top - clientHeight / 2);
    }
  }

  // Tab indents; after Escape it leaves the editor, so that the keyboard reaches what follows.
  indent(event) {
    if (event.key === "Escape") this.leaves = true;
    else if (event.key === "Tab" && !this.leaves && !event.shiftKey) {
      event.preventDefault();
      document.execCommand("insertText", false, "    ");
    } else if (event.key !== "Shift") this.leaves = false;
  }

  draw() {
    const rows = this.text.split("\n").map((text, index) => {
      const row = make("span", { className: "row" });
      row.dataset.line = index + 1;
      if (this.tinted.has(index + 1)) row.style.setProperty("--hue", this.hue(index + 1));
      if (index + 1 === this.lit) row.classList.add("lit");
      if (index + 1 === this.error?.line) row.append(...underlined(text, this.error.column));
      else row.textContent = text;
      return row;
    });
    this.marks.replaceChildren(...rows);
    this.scroll();
  }

  scroll() {
    this.marks.scrollTop = this.area.scrollTop;
    this.marks.scrollLeft = this.area.scrollLeft;
  }
}

const LINE_HEIGHT = 20;

// Returns a line with the word at a column underlined.
function underlined(text, column) {
  const characters = [...text];
  const start = Math.min(Math.max(0, column - 1), Math.max(0, characters.length - 1));
  const rest = characters.slice(start).join("");
  const word = rest.match(/^\w+|^\S/)?.[0] ?? (rest || " ");
  const before = characters.slice(0, start).join("");
  return [before, make("u", {}, word), rest.slice(word.length)];
}
