// The page: details of a cell, filters, commands, and the keys that call them.

import { ACCEPTED_DROPPED, ACCEPTED_KEPT, ADDED, batch, batchCount, byId, cellCount, cells, DROPPED } from "./data.js";
import { clearAddition, listAdditions, makeAdded, readAddition } from "./additions.js";
import {
  earlier,
  findCell,
  formatConfidence,
  formatCount,
  isInBatch,
  isInMode,
  itemOf,
  items,
  KEPT,
  kept,
} from "./data.js";
import { labelOf, labels, make, plural, STATES, splitKey, UNDECIDED } from "./data.js";
import {
  decisions,
  downloadDecisions,
  downloadTable,
  exportName,
  idOfAdded,
  parseDecisions,
  storage,
} from "./decisions.js";
import { describeVotes, lookAt, showEvidence, showExamples, showPicture } from "./evidence.js";
import { list, MAX_ROWS } from "./list.js";
import { describeOutlook, describeSkipped, drawnCount } from "./task.js";

// For screen readers.
function announce(text) {
  byId("status").textContent = text;
}

// A message that stays until it is closed.
function notify(text, kind = "plain") {
  const close = make("button", { type: "button", "data-command": "closeNotice" }, "Close");
  byId("notices").replaceChildren(make("div", { class: `notice ${kind}` }, make("p", {}, text), close));
}

const menus = Array.from(document.querySelectorAll("details.menu"));
const search = byId("search");
const describeProgress = () =>
  `${formatCount(list.size - decisions.count(list.mode).undecided)} of ${formatCount(list.size)} ${list.inBatch ? "checked" : "decided"}`;

function showProgress() {
  const { undecided, kept, dropped } = decisions.count(list.mode);
  byId("progress-words").textContent = describeProgress();
  byId("progress-kept").textContent = `${formatCount(kept)} kept`;
  byId("progress-dropped").textContent = `${formatCount(dropped)} dropped`;
  const added = decisions.listAdded().length;
  byId("progress-added").hidden = added === 0;
  byId("progress-added").textContent = `${formatCount(added)} added`;
  byId("bar-kept").style.flexGrow = kept;
  byId("bar-dropped").style.flexGrow = dropped;
  byId("bar-undecided").style.flexGrow = undecided;
  byId("undo").setAttribute("aria-disabled", String(decisions.steps.length === 0));
  byId("storage-note").hidden = !storage.refused;
  byId("need").textContent = describeNeed();
  if (batchCount > 0) showTask();
}

// How many tags wait for a person, and what happens without one.
function describeNeed() {
  const [batched, asked, dropped] = ["", "ask", "drop"].map((action) => findOpen(action).length);
  const parts = batched > 0 ? [`${formatCount(batched)} to check next`] : [];
  if (asked > 0) parts.push(`${formatCount(asked)} ${asked === 1 ? "needs" : "need"} you`);
  if (dropped > 0) parts.push(`${formatCount(dropped)} will be dropped`);
  return parts.length > 0 ? `${parts.join(", ")}.` : "Nothing is left to decide.";
}

// The batch: how far it is and, at its end, what to do next.
function showTask() {
  const checked = batchCount - decisions.count("batch").undecided;
  const drawn = batch.drawn.filter((place, cell) => place > 0 && decisions.states[cell] !== UNDECIDED).length;
  const isDone = checked === batchCount;
  byId("batch-count").textContent = `${formatCount(checked)} of ${formatCount(batchCount)}`;
  byId("task-open").hidden = isDone;
  byId("task-done").hidden = !isDone;
  byId("task-drawn").textContent = `${formatCount(drawn)} of ${formatCount(drawnCount)}`;
  byId("task-useful").textContent = `${formatCount(checked - drawn)} of ${formatCount(batchCount - drawnCount)}`;
  byId("task-skipped").textContent = describeSkipped();
  byId("task-file").textContent = `--decisions ${exportName} --force`;
  byId("task-outlook").textContent = describeOutlook();
}

const MODE_NAMES = { batch: "Tags to check next", doubts: "Doubtful tags", all: "All tags" };

// Shows the batch, the other doubtful tags, or all but the batch.
function setMode(mode) {
  list.mode = mode;
  const { inBatch } = list;
  document.body.classList.toggle("in-batch", inBatch);
  byId("show-batch").hidden = batchCount === 0;
  byId("task").hidden = !inBatch;
  byId("tools").hidden = inBatch;
  for (const name of Object.keys(MODE_NAMES)) byId(`show-${name}`).setAttribute("aria-pressed", String(name === mode));
  for (const title of document.querySelectorAll(".head .of-doubts")) title.hidden = inBatch;
  for (const title of document.querySelectorAll(".head .of-batch")) title.hidden = !inBatch;
  list.grid.setAttribute("aria-label", MODE_NAMES[mode]);
  list.grid.setAttribute("aria-colcount", inBatch ? "4" : "5");
  showProgress();
  relist();
}

const KINDS = [
  "Most informative: your answer helps most to tell right tags from wrong ones.",
  "Random sample: your answer helps to count how many tags are wrong.",
];
function showDetail() {
  const cell = list.current;
  byId("detail-empty").hidden = cell >= 0;
  byId("detail-body").hidden = byId("verdict-buttons").hidden = cell < 0;
  if (cell < 0) return;
  const item = itemOf(cell);
  const state = decisions.states[cell];
  byId("detail-label").textContent = labelOf(cell);
  byId("detail-id").textContent = item.id;
  byId("detail-row").textContent = `row ${item.row}`;
  byId("detail-text").hidden = item.text === null;
  showEvidence(cell, item);
  showExamples(cell);
  // Before a person has checked a tag of the batch, nothing may suggest the answer.
  byId("facts").hidden = isInBatch(cell);
  byId("detail-kind").hidden = !isInBatch(cell);
  byId("detail-kind").textContent = KINDS[Number(batch.drawn[cell] > 0)];
  byId("detail-confidence").textContent = formatConfidence(cells.confidence[cell]);
  byId("detail-meter").style.width = `${100 * cells.confidence[cell]}%`;
  byId("detail-action").textContent = cells.action[cell];
  byId("detail-action").className = `action ${cells.action[cell]}`;
  byId("detail-reason").textContent = cells.reason[cell];
  byId("detail-reason").hidden = byId("reason-title").hidden = cells.reason[cell] === "";
  byId("detail-votes").textContent = describeVotes(cell);
  byId("detail-votes").hidden = byId("votes-title").hidden = byId("detail-votes").textContent === "";
  byId("detail-state").textContent = STATES[state] + (state >= ACCEPTED_KEPT ? ", as suggested" : "");
  byId("detail-state").className = `state ${STATES[state]}`;
  byId("keep").setAttribute("aria-pressed", String(state === KEPT));
  byId("drop").setAttribute("aria-pressed", String(state === DROPPED));
  byId("detail-tags").replaceChildren(
    ...item.tags.map((label) => makeTag(item, labels[label])),
    ...decisions.listAdded(item.row).map((name) => makeAdded(name, "added, remove")),
  );
  showImage(item);
}

function makeTag(item, label) {
  const cell = findCell(item.row, label);
  const state = STATES[decisions.states[cell]] ?? "not doubtful";
  const open = isInMode(cell, "doubts") ? "undecided" : "not doubtful";
  const words = state === "undecided" ? `${formatConfidence(cells.confidence[cell])}, ${open}` : state;
  const isHere = cell !== undefined && isInBatch(cell) === list.inBatch;
  const shown = list.inBatch || (cell !== undefined && !isHere) ? describeHidden(cell) : words;
  const parts = [make("bdi", {}, label), make("small", {}, shown)];
  const look = { class: `tag ${isHere ? state : ""}`, ...(cell === list.current && { "aria-current": "true" }) };
  const isButton = isHere && cell !== list.current;
  const attributes = isButton ? { type: "button", "data-cell": cell } : {};
  return make("li", look, make(isButton ? "button" : "span", attributes, ...parts));
}

// Adds the tag of the field to the item. Focus stays in the field, for the next one.
function addTag() {
  const cell = readAddition(itemOf(list.current));
  if (cell === undefined) return;
  decisions.apply([[cell, ADDED]]);
  announce(`added: ${splitKey(cell)[1]}, ${idOfAdded(cell)}`);
}

function removeAdded(name) {
  decisions.apply([[name, UNDECIDED]]);
  announce(`removed: ${splitKey(name)[1]}, ${idOfAdded(name)}`);
  if (byId("additions").open) listAdditions();
  else list.grid.focus({ preventScroll: true });
}

// What may be said about a tag while the batch is checked, and about tags of the batch: whether it is asked about, too.
function describeHidden(cell) {
  if (cell === undefined || !isInBatch(cell)) return "";
  const state = decisions.states[cell];
  return state === UNDECIDED ? "to check" : STATES[state];
}

let shownImage = null;
function showImage(item) {
  byId("detail-image").hidden = item.image === null;
  if (item.image === shownImage) return;
  shownImage = item.image;
  showPicture(byId("detail-image"), item, (picture) =>
    make("button", { type: "button", "data-command": "zoom", title: "Enlarge (z)" }, picture),
  );
}

function goTo(cell) {
  if (cell >= 0 && !isInMode(cell, list.mode)) setMode(["batch", "doubts", "all"].find((mode) => isInMode(cell, mode)));
  if (cell !== list.current) clearAddition();
  list.choose(cell);
  showDetail();
}

// Reads all filters and lists again; the current cell stays if it is still listed.
function relist() {
  for (const name of ["action", "state", "search", "sort"]) list.filters[name] = byId(name).value;
  list.filters.label = Number(byId("label").value);
  list.refresh();
  showMatches();
  for (const button of document.querySelectorAll("#labels button"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.label) === list.filters.label));
  list.grid.scrollTo(0, 0);
  goTo(list.shown.includes(list.current) ? list.current : (list.shown[0] ?? -1));
}

function showMatches() {
  const { filtered } = list;
  const count = list.matches.length;
  byId("no-match").hidden = count > 0 || list.size === 0;
  byId("empty").hidden = list.size > 0;
  byId("clear").hidden = byId("clear-filters").hidden = !filtered;
  byId("shown").textContent = `${formatCount(count)} of ${formatCount(list.size)}`;
  const limits = [];
  if (count > MAX_ROWS)
    limits.push(`The list ends after ${formatCount(MAX_ROWS)} tags. Use the filters to see the others.`);
  if (list.mode === "all" && kept.listed < kept.all)
    limits.push(
      `The page holds ${formatCount(kept.listed)} of ${formatCount(kept.all)} kept tags, of all confidences.`,
    );
  byId("cap").hidden = limits.length === 0;
  byId("cap").textContent = limits.join(" ");
  showBulk();
  document.body.classList.toggle("filtered", filtered);
}

// Decides about the current cell, together with other changes, and goes on.
function decide(state, others = []) {
  const cell = list.current;
  if (cell < 0) return;
  // After the last row, that row stays, or the one before it follows if a filter hides it now.
  const place = list.shown.indexOf(cell);
  const targets = [list.shown[place + 1], cell, list.shown[place - 1]];
  decisions.apply([[cell, state], ...others]);
  const more = others.map(([name]) => `, ${splitKey(name)[1]} added`).join("");
  announce(`${STATES[state]}: ${labelOf(cell)}${more}, ${itemOf(cell).id}. ${describeProgress()}`);
  goTo(targets.find((target) => list.shown.includes(target)) ?? cell);
}

// A cell of the item of a row: the current one if it is, else the first; -1 if the list can show none.
function findCellOf(row) {
  const isOf = (cell) => cell >= 0 && String(itemOf(cell).row) === row;
  return isOf(list.current) ? list.current : cells.item.findIndex((_, cell) => isOf(cell));
}

// Undecided cells with a suggestion, of all or of some; cells of the batch have none.
function findOpen(action, some = cells.item.keys()) {
  return Array.from(some).filter((cell) => decisions.states[cell] === UNDECIDED && cells.action[cell] === action);
}

// What can be done with all cells that match the filters: only those without a decision change.
const findListed = () => list.matches.filter((cell) => decisions.states[cell] === UNDECIDED);
const findSuggested = () => ["keep", "drop"].map((action) => findOpen(action, list.matches));
function showBulk() {
  const open = findListed().length;
  const [keeping, dropping] = findSuggested().map((found) => found.length);
  byId("bulk-accept").textContent = `Accept ${plural(keeping + dropping, "suggestion")}`;
  byId("bulk-keep").textContent = `Keep ${formatCount(open)} undecided`;
  byId("bulk-drop").textContent = `Drop ${formatCount(open)} undecided`;
  byId("bulk-export").textContent = `Export ${plural(list.matches.length, "tag")} with confidences`;
}

function decideListed(state) {
  const changed = decisions.apply(findListed().map((cell) => [cell, state]));
  notify(`${plural(changed, "tag")} ${STATES[state]}. Undo reverts this.`);
}

const isOpen = (panel) => document.body.classList.contains(`${panel}-open`);
function setOpen(panel, open) {
  document.body.classList.toggle(`${panel}-open`, open);
  byId(`${panel}-toggle`)?.setAttribute("aria-expanded", String(open));
}

// A button calls the command in its attribute data-command; `letterKeys` and `listKeys` call them by key.
const commands = {
  keep: () => decide(KEPT),
  drop: () => decide(DROPPED),
  next: () => goTo(list.neighbor(1)),
  previous: () => goTo(list.neighbor(-1)),
  toggleExamples() {
    if (list.current < 0) return;
    byId("examples").open = !byId("examples").open;
    showExamples(list.current);
  },
  zoom: () => list.current >= 0 && lookAt(itemOf(list.current)),
  // Goes to the next undecided cell; after the last row, continues at the first.
  skip() {
    const place = list.shown.indexOf(list.current);
    const others = [...list.shown.slice(place + 1), ...list.shown.slice(0, Math.max(0, place))];
    const next = others.find((cell) => decisions.states[cell] === UNDECIDED);
    if (next === undefined) announce("No other tag of the list is undecided.");
    else goTo(next);
  },

  undo() {
    const changed = decisions.undo();
    if (changed.length === 0) return announce("There is nothing to undo.");
    const ofList = changed.filter((cell) => typeof cell === "number");
    if (ofList.length > 1 || changed.length - ofList.length > 1)
      return notify(`Undone: ${plural(changed.length, "decision")}.`);
    const names = changed.map((cell) => (typeof cell === "number" ? labelOf(cell) : splitKey(cell)[1]));
    // An added tag has no row in the list, but its item may have one.
    const [cell = findCellOf(splitKey(changed[0])[0])] = ofList;
    announce(`Undone: ${names.join(", ")}.`);
    if (cell >= 0) goTo(cell);
  },

  // Drops the tag in question and adds that of the field.
  replaceTag() {
    const cell = readAddition(itemOf(list.current));
    if (cell === undefined) return byId("add-tag").focus();
    decide(DROPPED, [[cell, ADDED]]);
    list.grid.focus({ preventScroll: true });
  },
  typeTag() {
    if (list.current < 0) return;
    setOpen("sheet", true);
    byId("add-tag").focus();
    byId("add-form").scrollIntoView({ block: "nearest" });
  },
  showAdditions() {
    listAdditions();
    byId("additions").showModal();
  },

  acceptSuggestions() {
    const [keep, drop] = findSuggested();
    decisions.apply([...keep.map((cell) => [cell, ACCEPTED_KEPT]), ...drop.map((cell) => [cell, ACCEPTED_DROPPED])]);
    notify(`Accepted: ${formatCount(keep.length)} kept, ${formatCount(drop.length)} dropped. Undo reverts this.`);
  },
  keepListed: () => decideListed(KEPT),
  dropListed: () => decideListed(DROPPED),
  exportListed: () => downloadTable(list.matches),

  deleteDecisions() {
    notify(`${plural(decisions.clear(), "decision")} deleted. Undo restores them until you close the page.`);
  },

  exportDecisions() {
    if (decisions.decided + earlier.row.length === 0) return notify("There is no decision to export yet.");
    const exported = `${plural(downloadDecisions(), "decision")} exported.`;
    const open = findOpen("drop").length;
    if (open === 0) return announce(exported);
    // Otherwise a person who decides only tags marked ask would get the others back without notice.
    notify(`${exported} ${plural(open, "suggested drop")} left undecided will stay. Accept suggestions to drop them.`);
  },

  importDecisions: () => byId("import-file").click(),
  showHelp: () => byId("help").showModal(),
  closeNotice: () => byId("notices").replaceChildren(),
  search() {
    if (list.inBatch) announce("The search is for doubtful tags.");
    else search.focus();
  },
  showBatch: () => setMode("batch"),
  showDoubts: () => setMode("doubts"),
  showAll: () => setMode("all"),
  clearFilters() {
    for (const field of document.querySelectorAll("#filters select")) field.selectedIndex = 0;
    search.value = "";
    relist();
    list.grid.focus();
  },

  toggleOverview: () => setOpen("overview", !isOpen("overview")),
  toggleFilters: () => setOpen("filters", !isOpen("filters")),
  closeSheet() {
    setOpen("sheet", false);
    list.grid.focus();
  },
};

async function importFile(event) {
  const [file] = event.target.files;
  try {
    const { changes, skipped } = parseDecisions(await file.text());
    const changed = decisions.apply(changes);
    const rest = skipped > 0 ? ` ${plural(skipped, "line")} skipped: not listed on this page.` : "";
    notify(`${file.name}: ${plural(changes.length, "decision")} read, ${formatCount(changed)} of them new.${rest}`);
  } catch (error) {
    notify(`${file.name} was not read: ${error.message}.`, "bad");
  }
  // The same file can be chosen again.
  event.target.value = "";
}

// j and k move and x rejects, as elsewhere; y answers the question.
const letterKeys = {
  y: "keep",
  x: "drop",
  u: "undo",
  j: "next",
  k: "previous",
  a: "typeTag",
  e: "toggleExamples",
  z: "zoom",
  "/": "search",
  "?": "showHelp",
};
// These work in the list; elsewhere they press buttons and scroll.
const listKeys = { " ": "skip", Enter: "skip" };
const listSteps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -cellCount, End: cellCount };

// Escape closes what is open, the topmost first.
function stepBack(target) {
  const menu = menus.find(({ open }) => open);
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else if (target === byId("add-tag")) {
    clearAddition();
    list.grid.focus({ preventScroll: true });
  } else if (target === search) list.grid.focus();
  else if (isOpen("overview")) setOpen("overview", false);
  else if (isOpen("sheet")) commands.closeSheet();
}

function findKeyCommand({ target, key, ctrlKey, metaKey, altKey, shiftKey, repeat }) {
  if (byId("look").open && key.toLowerCase() === "z") return () => byId("look").close();
  if (document.querySelector("dialog[open]")) return undefined;
  if (key === "Escape") return () => stepBack(target);
  if (target === search && (key === "Enter" || key === "ArrowDown")) return () => list.grid.focus();
  if (target === byId("add-tag") && key === "Enter" && shiftKey) return commands.replaceTag;
  if (target.matches("input, select")) return undefined;
  const letter = key.toLowerCase();
  if ((ctrlKey || metaKey) && !altKey && !shiftKey && letter === "z") return commands.undo;
  if (ctrlKey || metaKey || altKey) return undefined;
  const inList = target === document.body || list.grid.contains(target);
  if (inList && key in listSteps) return () => goTo(list.neighbor(listSteps[key]));
  if (inList && key in listKeys) return commands[listKeys[key]];
  const command = letterKeys[letter];
  // A key held down must not decide on rows that nobody has read.
  const ignored = !byId("one-key").checked || (repeat && ["keep", "drop"].includes(command));
  return ignored ? undefined : commands[command];
}

document.addEventListener("keydown", (event) => {
  const command = findKeyCommand(event);
  if (!command) return;
  event.preventDefault();
  command();
});

document.addEventListener("click", ({ target }) => {
  const button = target.closest("button, [role=row]");
  const { command, label, cell, item, added } = button?.dataset ?? {};
  // First, so that a dialog gives the focus back to the menu and not to a hidden entry.
  for (const menu of menus) {
    if (menu.open && menu.contains(button)) stepBack(target);
    else if (!menu.contains(target)) menu.open = false;
  }
  if (command) commands[command]();
  if (item) lookAt(items[item]);
  if (added) removeAdded(added);
  if (label) {
    byId("label").value = Number(label) === list.filters.label && !list.inBatch ? "-1" : label;
    setMode(list.inBatch ? "doubts" : list.mode);
    setOpen("overview", false);
  }
  if (cell) {
    list.grid.focus({ preventScroll: true });
    // First, because on a phone the sheet covers a part of the list.
    setOpen("sheet", true);
    goTo(Number(cell));
  }
});
for (const field of document.querySelectorAll("#filters select")) field.addEventListener("change", relist);
search.addEventListener("input", relist);
byId("import-file").addEventListener("change", importFile);
byId("examples").addEventListener("toggle", () => list.current >= 0 && showExamples(list.current));
byId("label-names").append(...labels.map((label) => make("option", { value: label })));
byId("add-form").addEventListener("submit", (event) => {
  event.preventDefault();
  addTag();
});
byId("one-key").checked = storage.get("skpml-review-one-key") !== "off";
byId("one-key").onchange = ({ target }) => storage.set("skpml-review-one-key", target.checked ? "on" : "off");
decisions.onchange = () => {
  showProgress();
  list.redraw();
  showMatches();
  showDetail();
};

setMode(list.mode);
document.body.removeAttribute("aria-busy");
