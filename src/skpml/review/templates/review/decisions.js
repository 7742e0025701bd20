// The decisions: undo, storage in the browser, and exchange as a CSV file.

import { ACCEPTED_KEPT, batch, cellCount, cells, earlier, findCell, itemOf } from "./data.js";
import { key, labelOf, labels, MODES, make, plural, STATES, title, UNDECIDED } from "./data.js";

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

export const decisions = {
  states: decode(storage.get(STORAGE_KEY)),
  // Each step is a list of [cell, state before].
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
    return this.states.reduce((count, state) => count + (state !== UNDECIDED), 0);
  },

  // Applies a list of [cell, state] as one step, the last one of a cell, and returns how many cells changed.
  apply(changes) {
    const open = [...new Map(changes)].filter(([cell, state]) => this.states[cell] !== state);
    if (open.length > 0) this.steps.push(open.map(([cell]) => [cell, this.states[cell]]));
    this.write(open);
    return open.length;
  },

  // Reverts the last step and returns the cells that it changed.
  undo() {
    const step = this.steps.pop() ?? [];
    this.write(step);
    return step.map(([cell]) => cell);
  },

  write(changes) {
    for (const [cell, state] of changes) this.states[cell] = state;
    this.unsaved = true;
    storage.set(STORAGE_KEY, Array.from(this.states, (state) => LETTERS[state]).join(""));
    this.onchange();
  },
};
// Some browsers allow reading but not writing; this finds out.
decisions.write([]);

// The same page in another window has changed something.
window.addEventListener("storage", (event) => {
  if (event.key !== STORAGE_KEY) return;
  decisions.states = decode(event.newValue);
  decisions.steps = [];
  decisions.onchange();
});
window.addEventListener("beforeunload", (event) => {
  if (storage.refused && decisions.unsaved && decisions.decided > 0) event.preventDefault();
});

// The last two are written only if a line has a value there.
const COLUMNS = ["id", "row", "label", "decision", "confidence", "by", "drawn"];
const [REQUIRED_COUNT, WRITTEN_COUNT] = [4, 5];
const WORDS = ["", "keep", "drop", "keep", "drop"];
const BY_MODEL = "model";

// Fields are written unchanged, even one that a spreadsheet would take for a formula.
const quote = (text) => (/[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const formatLine = (fields) => `${fields.map((field) => quote(String(field))).join(",")}\n`;

// The fields of all decisions: the earlier ones, as far as they were not made again, and those of this page.
function listDecisions() {
  const records = [];
  for (const [place, row] of earlier.row.entries()) {
    const label = labels[earlier.label[place]];
    if (decisions.states[findCell(row, label)] > UNDECIDED) continue;
    const { [place]: confidence } = earlier.confidence;
    const by = earlier.byModel[place] ? BY_MODEL : "";
    const word = WORDS[earlier.keep[place] ? 1 : 2];
    records.push([earlier.id[place], row, label, word, confidence ?? "", by, earlier.drawn[place] || ""]);
  }
  decisions.states.forEach((state, cell) => {
    if (state === UNDECIDED) return;
    const { id, row } = itemOf(cell);
    const by = state >= ACCEPTED_KEPT ? BY_MODEL : "";
    records.push([id, row, labelOf(cell), WORDS[state], cells.confidence[cell], by, batch.drawn[cell] || ""]);
  });
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
  const known = new Set(earlier.row.map((place, index) => `${place} ${labels[earlier.label[index]]}`));
  const changes = [];
  let skipped = 0;
  for (const { line, fields } of records) {
    if (fields.length !== header.length)
      throw new Error(`line ${line}: ${plural(fields.length, "field")}, but the header has ${header.length}`);
    const word = WORDS.indexOf(fields[decision], 1);
    if (word < 0) throw new Error(`line ${line}: the decision is “${fields[decision]}”; it must be keep or drop`);
    const state = fields[by] === BY_MODEL ? word + ACCEPTED_KEPT - 1 : word;
    const cell = findCell(fields[row], fields[label]);
    if (cell !== undefined && itemOf(cell).id === fields[id]) changes.push([cell, state]);
    else if (!known.has(`${fields[row]} ${fields[label]}`)) skipped += 1;
  }
  return { changes, skipped };
}
