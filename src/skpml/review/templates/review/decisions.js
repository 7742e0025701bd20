// The decisions: undo, storage in the browser, and exchange as a CSV file.

import { ACCEPTED_KEPT, ADDED, batch, cellCount, cells, earlier, findCell, findItem, itemOf } from "./data.js";
import { key, keyOf, labelOf, labels, MODES, make, plural, STATES, splitKey, title, UNDECIDED } from "./data.js";

// Chromium may give a page that asks early an empty storage which keeps nothing; once it has granted a lock, the storage
// is reliable. A browser without locks, or one that needs more than three seconds, is trusted.
await Promise.race([
  new Promise((resolve) => setTimeout(resolve, 3000)),
  Promise.resolve(navigator.locks?.request("skpml-review", { mode: "shared" }, () => {})).catch(() => {}),
]);

// localStorage, or nothing if the browser refuses it.
export const storage = {
  refused: false,
  get: (name) => attempt(() => localStorage.getItem(name)),
  set: (name, value) => attempt(() => localStorage.setItem(name, value)),
};

function attempt(action) {
  try {
    return action();
  } catch {
    storage.refused = true;
    return null;
  }
}

// One letter per cell. The key is a digest of file and cells, so the letters are never taken for those of other cells.
const STORAGE_KEY = `skpml-review:${key}`;
const LETTERS = ".kdKD";

function decode(text) {
  if (text?.length !== cellCount) return new Uint8Array(cellCount);
  return Uint8Array.from(text, (letter) => Math.max(0, LETTERS.indexOf(letter)));
}

// Tags that were added before this page was made: their places in `earlier`.
const ADD = "add";
const addedEarlier = new Map();
for (const [place, row] of earlier.row.entries())
  if (earlier.decision[place] === ADD) addedEarlier.set(keyOf(row, labels[earlier.label[place]]), place);

const ADDED_KEY = `${STORAGE_KEY}:added`;

function decodeAdded(text) {
  try {
    return new Map(JSON.parse(text ?? "[]"));
  } catch {
    return new Map();
  }
}

export const decisions = {
  states: decode(storage.get(STORAGE_KEY)),
  // States of tags that items do not have, by `keyOf`, as far as they differ from the earlier decisions.
  added: decodeAdded(storage.get(ADDED_KEY)),
  // Each step is a list of [cell, state before]; a tag that its item does not have stands there by `keyOf`.
  steps: [],
  unsaved: false,
  // Called after every change.
  onchange: () => {},

  // Numbers of undecided, kept and dropped cells of what the list can show.
  count(mode) {
    const counts = { undecided: 0, kept: 0, dropped: 0 };
    for (const state of this.states.subarray(...MODES[mode])) counts[STATES[state]] += 1;
    return counts;
  },

  get decided() {
    return this.states.reduce((count, state) => count + (state !== UNDECIDED), this.added.size);
  },

  read(cell) {
    return typeof cell === "number" ? this.states[cell] : (this.added.get(cell) ?? readEarlier(cell));
  },

  // The tags that are added, by `keyOf`: to all items, or to one.
  listAdded(row) {
    const known = new Set([...addedEarlier.keys(), ...this.added.keys()]);
    const isWanted = (name) => row === undefined || splitKey(name)[0] === String(row);
    return Array.from(known).filter((name) => isWanted(name) && this.read(name) === ADDED);
  },

  // Applies a list of [cell, state] as one step, the last one of a cell, and returns how many cells changed.
  apply(changes) {
    const open = [...new Map(changes)].filter(([cell, state]) => this.read(cell) !== state);
    if (open.length > 0) this.steps.push(open.map(([cell]) => [cell, this.read(cell)]));
    this.write(open);
    return open.length;
  },

  // Reverts the last step and returns the cells that it changed.
  undo() {
    const step = this.steps.pop() ?? [];
    this.write(step);
    return step.map(([cell]) => cell);
  },

  // Deletes all decisions of this page, in one step, and returns their number.
  clear() {
    const added = Array.from(this.added.keys(), (name) => [name, readEarlier(name)]);
    return this.apply([...Array.from(cells.item.keys(), (cell) => [cell, UNDECIDED]), ...added]);
  },

  write(changes) {
    for (const [cell, state] of changes) {
      if (typeof cell === "number") this.states[cell] = state;
      else if (state === readEarlier(cell)) this.added.delete(cell);
      else this.added.set(cell, state);
    }
    this.unsaved = true;
    storage.set(STORAGE_KEY, Array.from(this.states, (state) => LETTERS[state]).join(""));
    storage.set(ADDED_KEY, JSON.stringify(Array.from(this.added)));
    this.onchange();
  },
};

function readEarlier(name) {
  return addedEarlier.has(name) ? ADDED : UNDECIDED;
}

// The id of the item of an added tag, which need not be on the page if the tag was added before.
export function idOfAdded(name) {
  return findItem(splitKey(name)[0])?.id ?? earlier.id[addedEarlier.get(name)];
}
// Some browsers allow reading but not writing; this finds out.
decisions.write([]);

// The same page in another window has changed something.
window.addEventListener("storage", (event) => {
  if (event.key === STORAGE_KEY) decisions.states = decode(event.newValue);
  else if (event.key === ADDED_KEY) decisions.added = decodeAdded(event.newValue);
  else return;
  decisions.steps = [];
  decisions.onchange();
});
window.addEventListener("beforeunload", (event) => {
  if (storage.refused && decisions.unsaved && decisions.decided > 0) event.preventDefault();
});

// The last two are written only if a line has a value there.
const COLUMNS = ["id", "row", "label", "decision", "confidence", "by", "drawn"];
const [REQUIRED_COUNT, WRITTEN_COUNT] = [4, 5];
const WORDS = ["", "keep", "drop", "keep", "drop", ADD];
const BY_MODEL = "model";

// Fields are written unchanged, even one that a spreadsheet would take for a formula.
const quote = (text) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const formatLine = (fields) => `${fields.map((field) => quote(String(field))).join(",")}\n`;

// The fields of all decisions: the earlier ones, as far as they were not made again, and those of this page.
function listDecisions() {
  const records = [];
  for (const [place, row] of earlier.row.entries()) {
    const label = labels[earlier.label[place]];
    const { [place]: word } = earlier.decision;
    if (decisions.states[findCell(row, label)] > UNDECIDED) continue;
    if (word === ADD && decisions.read(keyOf(row, label)) !== ADDED) continue;
    const { [place]: confidence } = earlier.confidence;
    const by = earlier.byModel[place] ? BY_MODEL : "";
    records.push([earlier.id[place], row, label, word, confidence ?? "", by, earlier.drawn[place] || ""]);
  }
  decisions.states.forEach((state, cell) => {
    if (state === UNDECIDED) return;
    const { id, row } = itemOf(cell);
    const by = state >= ACCEPTED_KEPT ? BY_MODEL : "";
    records.push([id, row, labelOf(cell), WORDS[state], cells.confidence[cell], by, batch.drawn[cell] || ""]);
  });
  for (const [name, state] of decisions.added)
    if (state === ADDED) records.push([idOfAdded(name), ...splitKey(name), ADD, "", "", ""]);
  return records;
}

const stem = title.replace(/\.[A-Za-z0-9]{1,8}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_") || "review";
export const exportName = `${stem}_decisions.csv`;

function download(name, records) {
  const address = URL.createObjectURL(new Blob(records.map(formatLine), { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// Saves all decisions as a file for `skpml clean`, and returns their number.
export function downloadDecisions() {
  const records = listDecisions();
  const isUsed = (column) => column < WRITTEN_COUNT || records.some((record) => record[column] !== "");
  const isWritten = (_, column) => isUsed(column);
  download(
    exportName,
    [COLUMNS, ...records].map((fields) => fields.filter(isWritten)),
  );
  decisions.unsaved = false;
  return records.length;
}

// Saves some cells as a table, with their confidences.
export function downloadTable(some) {
  const records = some.map((cell) => {
    const { id, row } = itemOf(cell);
    const word = WORDS[decisions.states[cell]];
    return [id, row, labelOf(cell), cells.confidence[cell], cells.action[cell], word];
  });
  download(`${stem}_tags.csv`, [["id", "row", "label", "confidence", "suggested", "decision"], ...records]);
}

// Splits a CSV text into records, each with the line on which it begins; blank lines are skipped.
function parseCsv(text) {
  const records = [];
  const field = /("(?:[^"]|"")*"|[^",\r\n][^,\r\n]*|)(,|\r\n|\n|\r|$)/y;
  let [fields, line, begin] = [[], 1, 1];
  while (field.lastIndex < text.length || fields.length > 0) {
    const [all, raw, end] = field.exec(text) ?? [];
    if (all === undefined) throw new Error(`line ${begin}: a quotation mark is missing or in the wrong place`);
    fields.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    line += all.match(/\r\n|\n|\r/g)?.length ?? 0;
    if (end === ",") continue;
    if (fields.length > 1 || raw !== "") records.push({ line: begin, fields });
    [fields, begin] = [[], line];
  }
  return records;
}

// Returns the changes that a file asks for and the number of lines about other cells, or throws an error with the line.
export function parseDecisions(text) {
  const [{ fields: header } = { fields: [] }, ...records] = parseCsv(text);
  const missing = COLUMNS.slice(0, REQUIRED_COUNT).filter((name) => !header.includes(name));
  if (missing.length > 0)
    throw new Error(
      `line 1: the header lacks ${missing.join(", ")}; it must be ${COLUMNS.slice(0, WRITTEN_COUNT).join(",")}`,
    );
  const [id, row, label, decision, , by] = COLUMNS.map((name) => header.indexOf(name));
  const known = new Set(earlier.row.map((place, index) => keyOf(place, labels[earlier.label[index]])));
  const changes = [];
  let skipped = 0;
  for (const { line, fields } of records) {
    if (fields.length !== header.length)
      throw new Error(`line ${line}: ${plural(fields.length, "field")}, but the header has ${header.length}`);
    const word = WORDS.indexOf(fields[decision], 1);
    if (word < 0) throw new Error(`line ${line}: the decision is “${fields[decision]}”; it must be keep, drop or add`);
    const state = fields[by] === BY_MODEL && word !== ADDED ? word + ACCEPTED_KEPT - 1 : word;
    const name = keyOf(fields[row], fields[label]);
    const cell = word === ADDED ? findAddable(fields[row], fields[label]) : findCell(fields[row], fields[label]);
    if (cell !== undefined && findItem(fields[row]).id === fields[id]) changes.push([cell, state]);
    else if (!known.has(name)) skipped += 1;
  }
  return { changes, skipped };
}

// A tag of an item on the page, by `keyOf`, if the item does not have it.
export function findAddable(row, label) {
  const item = findItem(row);
  const place = labels.indexOf(label);
  return item === undefined || place < 0 || item.tags.includes(place) ? undefined : keyOf(row, label);
}
