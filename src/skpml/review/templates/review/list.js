// The list: which cells it shows, in which order, and their rows.

import { batch, batchCount, byId, cellCount, cells, formatConfidence } from "./data.js";
import { isInBatch, itemOf, items, labelOf, labels, STATES } from "./data.js";
import { decisions } from "./decisions.js";

// More rows than these make a browser slow; filters lead to the others.
export const MAX_ROWS = 2000;
const EXCERPT_LENGTH = 200;

const fold = (text) => text.normalize("NFC").toLowerCase();
const itemTexts = new Array(items.length);
function searchText(cell) {
  const { id, text } = itemOf(cell);
  itemTexts[cells.item[cell]] ??= fold(`${id}\n${text ?? ""}`);
  return `${fold(labelOf(cell))}\n${itemTexts[cells.item[cell]]}`;
}

// Compares cells by the names in one of their columns, as people read them: img_9 before img_10. Names are sorted once,
// because comparing them is slow.
const collator = new Intl.Collator("en", { numeric: true });
function compareNames(column, names) {
  const positions = cells[column];
  const ranks = new Uint32Array(names.length);
  const sorted = Array.from(names.keys()).sort((a, b) => collator.compare(names[a], names[b]));
  for (const [rank, place] of sorted.entries()) ranks[place] = rank;
  return (a, b) => ranks[positions[a]] - ranks[positions[b]];
}
const comparisons = {
  doubted: () => (a, b) => cells.confidence[a] - cells.confidence[b],
  believed: () => (a, b) => cells.confidence[b] - cells.confidence[a],
  label: () => compareNames("label", labels),
  id: () =>
    compareNames(
      "item",
      Array.from(items, (item) => item.id),
    ),
};
const all = Uint32Array.from(cells.item.keys());
const orders = { usefulness: all.slice(batchCount) };

// The row of each cell that was listed.
const rows = new Map();

export const list = {
  // Whether it shows the batch, all of it and in its order, or the other cells.
  inBatch: batchCount > 0,
  grid: byId("grid"),
  scroller: byId("rows"),
  // What to list: a label (or -1), a suggestion, a state, words, and the order. Empty means all.
  filters: { label: -1, action: "", state: "", search: "", sort: "usefulness" },
  // The cells that are shown, and the number of cells that match the filters.
  shown: orders.usefulness.slice(0, 0),
  matches: 0,
  // The cell that the person looks at, or -1.
  current: -1,

  // Filters and sorts again.
  refresh() {
    const { label, action, state, search, sort } = this.filters;
    const words = fold(search).split(/\s+/).filter(Boolean);
    const states = state === "decided" ? ["kept", "dropped"] : [state];
    orders[sort] ??= orders.usefulness.slice().sort(comparisons[sort]());
    const found = this.inBatch
      ? all.slice(0, batchCount)
      : orders[sort].filter(
          (cell) =>
            (label < 0 || cells.label[cell] === label) &&
            (action === "" || cells.action[cell] === action) &&
            (state === "" || states.includes(STATES[decisions.states[cell]])) &&
            (words.length === 0 || words.every((word) => searchText(cell).includes(word))),
        );
    this.matches = found.length;
    this.shown = found.slice(0, MAX_ROWS);
    this.grid.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.scroller.replaceChildren(...Array.from(this.shown, rowOf));
    this.choose(this.current);
  },

  // Shows the present decisions.
  redraw() {
    if (this.filters.state !== "" && !this.inBatch) this.refresh();
    else for (const cell of this.shown) showState(rows.get(cell), cell);
  },

  choose(cell) {
    rows.get(this.current)?.setAttribute("aria-selected", "false");
    this.current = cell;
    if (!this.shown.includes(cell)) return this.grid.removeAttribute("aria-activedescendant");
    const row = rows.get(cell);
    row.setAttribute("aria-selected", "true");
    this.grid.setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView({ block: "nearest" });
  },

  // The cell so many rows further, within the list.
  neighbor(step) {
    const place = this.shown.indexOf(this.current);
    return this.shown[place < 0 ? 0 : Math.min(this.shown.length - 1, Math.max(0, place + step))] ?? -1;
  },

  // Number of cells without filters.
  get size() {
    return this.inBatch ? batchCount : cellCount - batchCount;
  },

  get filtered() {
    const { label, action, state, search } = this.filters;
    return !this.inBatch && (label >= 0 || action + state + search.trim() !== "");
  },
};

function rowOf(cell, place) {
  if (!rows.has(cell)) rows.set(cell, makeRow(cell));
  const row = rows.get(cell);
  row.setAttribute("aria-rowindex", place + 2);
  showState(row, cell);
  return row;
}

function makeRow(cell) {
  const { id, text } = itemOf(cell);
  const row = byId("row-template").content.firstElementChild.cloneNode(true);
  row.id = `row-${cell}`;
  row.dataset.cell = cell;
  row.querySelector(".tag-name").textContent = labelOf(cell);
  row.querySelector(".id").textContent = id;
  row.querySelector(".excerpt").textContent = (text ?? "").slice(0, EXCERPT_LENGTH);
  if (isInBatch(cell)) {
    row.lastElementChild.remove();
    row.lastElementChild.className = "kind";
    row.lastElementChild.textContent = batch.drawn[cell] > 0 ? "random sample" : "most informative";
    return row;
  }
  row.querySelector(".bar span").style.width = `${100 * cells.confidence[cell]}%`;
  row.querySelector(".confidence").append(formatConfidence(cells.confidence[cell]));
  row.querySelector(".action").classList.add(cells.action[cell]);
  row.querySelector(".action").textContent = cells.action[cell];
  return row;
}

function showState(row, cell) {
  const state = STATES[decisions.states[cell]];
  if (row.classList.contains(state)) return;
  row.className = `row ${state}`;
  row.firstElementChild.setAttribute("aria-label", state);
}
