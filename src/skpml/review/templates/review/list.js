// The list: which cells it shows, in which order, and their rows.

import { batch, batchCount, byId, cells, formatConfidence, isInBatch } from "./data.js";
import { itemOf, items, labelOf, labels, MODES, makePicture, STATES } from "./data.js";
import { decisions } from "./decisions.js";

// More rows than these make a browser slow; filters lead to the others.
export const MAX_ROWS = 2000;
const EXCERPT_LENGTH = 200;

export const fold = (text) => text.normalize("NFC").toLowerCase();
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
// The cells of a mode in an order; each is sorted once.
const orders = {};
function sortCells(mode, sort) {
  if (sort === "usefulness" || mode === "batch") return Uint32Array.from(cells.item.keys()).subarray(...MODES[mode]);
  orders[`${mode} ${sort}`] ??= sortCells(mode, "usefulness").sort(comparisons[sort]());
  return orders[`${mode} ${sort}`];
}

// The row of each cell that was listed.
const rows = new Map();

export const list = {
  // What it shows: the batch, all of it and in its order, other doubtful tags, or all but the batch.
  mode: batchCount > 0 ? "batch" : "doubts",
  grid: byId("grid"),
  // What to list: a label (or -1), a suggestion, a state, words, and the order. Empty means all.
  filters: { label: -1, action: "", state: "", search: "", sort: "usefulness" },
  // The cells that match the filters, and those of them that are shown.
  matches: [],
  shown: [],
  // The cell that the person looks at, or -1.
  current: -1,

  // Filters and sorts again.
  refresh() {
    const { label, action, state, search, sort } = this.filters;
    const words = fold(search).split(/\s+/).filter(Boolean);
    const states = state === "decided" ? ["kept", "dropped"] : [state];
    const matches = (cell) =>
      (label < 0 || cells.label[cell] === label) &&
      (action === "" || cells.action[cell] === action) &&
      (state === "" || states.includes(STATES[decisions.states[cell]])) &&
      (words.length === 0 || words.every((word) => searchText(cell).includes(word)));
    this.matches = Array.from(sortCells(this.mode, sort)).filter((cell) => this.inBatch || matches(cell));
    this.shown = this.matches.slice(0, MAX_ROWS);
    this.grid.setAttribute("aria-rowcount", String(this.shown.length + 1));
    byId("rows").replaceChildren(...Array.from(this.shown, rowOf));
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

  get inBatch() {
    return this.mode === "batch";
  },

  // Number of cells without filters.
  get size() {
    const [first, end] = MODES[this.mode];
    return end - first;
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
  // A long name is cut in the list.
  row.querySelector(".tag-name").title = labelOf(cell);
  row.querySelector(".id").textContent = id;
  row.querySelector(".excerpt").textContent = (text ?? "").slice(0, EXCERPT_LENGTH);
  const thumbnail = makePicture(itemOf(cell), (picture) => picture.remove(), { alt: "", loading: "lazy" });
  if (thumbnail) row.querySelector(".item").prepend(thumbnail);
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
