// The data of the page, and helpers to show them. Text becomes text nodes only and is never parsed as HTML.

export const byId = (id) => document.getElementById(id);

// A cell is one tag of one item; `cells` holds a list per column. First come the cells of the batch, which a person is
// asked to check next, in their order; then the other doubtful tags, the most useful first; then tags that are kept.
const payload = JSON.parse(byId("payload").textContent);
export const { title, key, labels, items, cells, evidence, examples, votes, kept, batch, earlier } = payload;
export const cellCount = cells.item.length;
export const batchCount = batch.drawn.length;
export const doubtCount = cellCount - batchCount - kept.listed;
export const isInBatch = (cell) => cell < batchCount;

// What the list can show: the first and the last cell of each, exclusive.
export const MODES = {
  batch: [0, batchCount],
  doubts: [batchCount, batchCount + doubtCount],
  all: [batchCount, cellCount],
};
export const isInMode = (cell, mode) => cell >= MODES[mode][0] && cell < MODES[mode][1];
export const itemOf = (cell) => items[cells.item[cell]];
export const labelOf = (cell) => labels[cells.label[cell]];

// A tag of an item, whether the item has it or not. A row number has no blank, so the first blank ends it.
export const keyOf = (row, label) => `${row} ${label}`;
export const splitKey = (name) => [name.slice(0, name.indexOf(" ")), name.slice(name.indexOf(" ") + 1)];
const cellByKey = new Map(cells.item.map((_, cell) => [keyOf(itemOf(cell).row, labelOf(cell)), cell]));
export const findCell = (row, label) => cellByKey.get(keyOf(row, label));
const itemByRow = new Map(items.map((item) => [String(item.row), item]));
export const findItem = (row) => itemByRow.get(String(row));

// What is decided about a cell. An accepted suggestion is a decision, but nobody has checked the tag. Tags that an item
// does not have are undecided or added.
export const [UNDECIDED, KEPT, DROPPED, ACCEPTED_KEPT, ACCEPTED_DROPPED, ADDED] = [0, 1, 2, 3, 4, 5];
export const STATES = ["undecided", "kept", "dropped", "kept", "dropped", "added"];

// Creates an element; children are elements or text.
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// The picture of an item, or null. Only a path relative to the page is requested: anything else would be a request to a
// stranger. A path that leads nowhere calls `onerror`.
export function makePicture({ id, image }, onerror, attributes = {}) {
  if (image === null || !image.isWellFormed() || /^[A-Za-z][A-Za-z0-9+.-]*:|^[\\/]/.test(image)) return null;
  const picture = make("img", { alt: `Image of ${id}`, decoding: "async", ...attributes });
  picture.addEventListener("error", () => picture.isConnected && onerror(picture));
  picture.src = image.split(/[\\/]/).map(encodeURIComponent).join("/");
  return picture;
}

const integers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const formatCount = (number) => integers.format(number);
export const plural = (number, noun) => `${formatCount(number)} ${noun}${number === 1 ? "" : "s"}`;

// A confidence that is not exactly 0 or 1 is not shown as 0.00 or 1.00.
export function formatConfidence(value) {
  if (value > 0 && value < 0.005) return "<0.01";
  return value < 1 && value > 0.995 ? ">0.99" : value.toFixed(2);
}
