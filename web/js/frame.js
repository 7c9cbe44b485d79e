// The header and footer of every page.
const PAGES = [
  ["explorer.html", "Explorer"],
  ["playground.html", "Playground"],
  ["edges.html", "Edges"],
  ["heat.html", "Heat"],
  ["digits.html", "Digits"],
];

// Creates an element with attributes and children.
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// Returns the element with an id.
export const by = (id) => document.getElementById(id);

const here = location.pathname.split("/").at(-1) || "index.html";
const links = PAGES.map(([href, text]) => {
  const link = make("a", { href }, text);
  if (href === here) link.setAttribute("aria-current", "page");
  return link;
});
document.body.prepend(
  make(
    "header",
    {},
    make("strong", {}, make("a", { href: "index.html" }, "Scry")),
    make("nav", { ariaLabel: "Pages" }, ...links),
  ),
);
document.body.append(
  make(
    "footer",
    {},
    "Everything runs in this browser: no server computes, and nothing leaves this page.",
  ),
);
