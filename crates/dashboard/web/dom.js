// Small functions to create and change elements. Texts are always set as text, never as markup.

/** An element with attributes and children. `on…` adds a listener; false, null and undefined are omitted. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  set(element, attributes);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** The same for SVG. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else element.setAttribute(key, value);
  }
}

/** Sets a text only if it changes, so that selections and screen readers are not disturbed. */
export function text(element, value) {
  const shown = String(value);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Sets the class only if it changes. */
export function className(element, value) {
  if (element.className !== value) element.className = value;
}

export const byId = (id) => document.getElementById(id);

/** Announces a text to screen readers. */
export function announce(message) {
  text(byId("live"), message);
}

/**
 * A table whose rows stay while their keys exist.
 * Columns: { title, hint, class, cell(td, item) }; the first one is the row's header.
 */
export class Table {
  constructor(caption, columns) {
    this.columns = columns;
    this.rows = new Map();
    this.body = make("tbody");
    const heads = columns.map((column) =>
      make("th", { scope: "col", class: column.class, title: column.hint },
        column.hidden ? make("span", { class: "hidden" }, column.title) : column.title));
    this.element = make("div", { class: "scroll" },
      make("table", {}, make("caption", { class: "hidden" }, caption), make("thead", {}, make("tr", {}, heads)), this.body));
  }

  /** Shows items: [{ key, class, … }], in order. */
  update(items) {
    const wantedKeys = new Set(items.map((item) => item.key));
    // First, so that the rows that stay are not moved: an element that moves loses the focus.
    for (const [key, row] of this.rows) {
      if (!wantedKeys.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    }
    let before = null;
    for (const item of items) {
      let row = this.rows.get(item.key);
      if (!row) {
        row = this.row();
        this.rows.set(item.key, row);
      }
      className(row.element, item.class ?? "");
      this.columns.forEach((column, place) => column.cell(row.cells[place], item));
      const wanted = before ? before.nextSibling : this.body.firstChild;
      if (wanted !== row.element) this.body.insertBefore(row.element, wanted);
      before = row.element;
    }
  }

  row() {
    const cells = this.columns.map((column, place) =>
      place === 0 ? make("th", { scope: "row", class: column.class }) : make("td", { class: column.class }));
    return { element: make("tr", {}, cells), cells };
  }
}
