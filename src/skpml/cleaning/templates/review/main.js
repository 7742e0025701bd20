// What the person does, tied to what the page shows.
const search = byId("search");
let current = -1;

// --- Moving about -------------------------------------------------------------------------------------------------

function goTo(cell) {
  current = cell;
  grid.choose(cell);
  showDetail(cell, goToTag);
}

// Another tag of the same item; its button is gone once it is the current one.
function goToTag(cell) {
  goTo(cell);
  grid.element.focus({ preventScroll: true });
}

// A cell chosen by hand: on a narrow screen its sheet opens.
function open(cell) {
  // First, because the sheet takes room from the list in which the row is to be seen.
  document.body.classList.add("sheet-open");
  goTo(cell);
}

function move(by) {
  const total = listing.order.length;
  if (total === 0) return;
  const place = current < 0 ? -1 : listing.places[current];
  const next = place < 0 ? 0 : Math.min(total - 1, Math.max(0, place + by));
  goTo(listing.order[next]);
}

// The next cell of the list without a decision, from the top again at the end.
function skip() {
  const { order } = listing, start = current < 0 ? -1 : listing.places[current];
  for (let step = 1; step <= order.length; step += 1) {
    const cell = order[(start + step) % order.length];
    if (decisions.marks[cell] === UNDECIDED && cell !== current) return goTo(cell);
  }
  announce(order.length === 0 ? "The list is empty." : "All other cells of this list are decided.");
}

function closeSheet() {
  if (!document.body.classList.contains("sheet-open")) return;
  document.body.classList.remove("sheet-open");
  grid.element.focus();
}

// --- Deciding -----------------------------------------------------------------------------------------------------

function decide(mark) {
  if (current < 0) return;
  const cell = current, place = listing.places[cell];
  const next = listing.order[place + 1] ?? listing.order[place - 1] ?? -1;
  const last = place === listing.order.length - 1;
  decisions.set([[cell, mark]]);
  announce(`${DECIDED_WORDS[mark]}: ${labelName(cell)}, ${itemOf(cell).id}. ${progressWords()}`);
  // The last cell stays current, unless its decision has taken it off the list.
  const target = last && listing.places[cell] >= 0 ? cell : next;
  goTo(target >= 0 && listing.places[target] >= 0 ? target : cell);
}

function undo() {
  const touched = decisions.undo();
  if (touched.length === 0) return announce("There is nothing to undo.");
  announce(touched.length === 1 ? `Undone: ${labelName(touched[0])}, ${itemOf(touched[0]).id}.` : `Undone: ${plural(touched.length, "decision")}.`);
  if (touched.length === 1) goTo(touched[0]);
}

function acceptSuggestions() {
  const changes = [], found = { keep: 0, drop: 0 };
  for (let cell = 0; cell < nCells; cell += 1) {
    const action = cells.action[cell];
    if (action === "ask" || decisions.marks[cell] !== UNDECIDED) continue;
    changes.push([cell, DECISIONS.indexOf(action)]);
    found[action] += 1;
  }
  if (changes.length === 0) return notify("No suggestion is left to accept: what is undecided is marked ask.");
  confirmFirst({
    question: `Accept ${plural(changes.length, "suggestion")}?`,
    explanation:
      `${plural(found.keep, "tag")} will be kept and ${count(found.drop)} dropped. ` +
      "Your own decisions stay as they are, and so does what is marked ask. This can be undone.",
    yes: "Accept",
    then: () => {
      decisions.set(changes);
      notify(`Accepted: ${count(found.keep)} kept, ${count(found.drop)} dropped. Undo takes it all back.`);
    },
  });
}

function forgetDecisions() {
  confirmFirst({
    question: "Forget all decisions?",
    explanation: `${plural(decisions.decided, "decision")} will be gone from this browser. This cannot be undone; export them first if you may need them.`,
    yes: "Forget them",
    then: () => {
      decisions.forget();
      notify("All decisions are forgotten.");
    },
  });
}

async function importDecisions(file) {
  try {
    const { changes, strangers } = readDecisions(await file.text());
    const changed = decisions.set(changes);
    const rest = strangers > 0 ? ` ${plural(strangers, "line")} left out: not a cell of this page.` : "";
    notify(`${file.name}: ${plural(changes.length, "decision")} read, ${count(changed)} of them new here.${rest}`);
  } catch (error) {
    notify(`${file.name} was not read: ${error.message}.`, "bad");
  }
}

function exportDecisions() {
  if (decisions.decided === 0) return notify("There is no decision to export yet.");
  downloadDecisions();
  announce(`${plural(decisions.decided, "decision")} exported.`);
}

// --- Showing ------------------------------------------------------------------------------------------------------

const progressWords = () => `${count(decisions.decided)} of ${count(nCells)} decided`;

function showProgress() {
  const { counts } = decisions;
  byId("progress-words").textContent = progressWords();
  byId("progress-kept").textContent = `${count(counts[KEEP])} kept`;
  byId("progress-dropped").textContent = `${count(counts[DROP])} dropped`;
  for (const [id, mark] of [["bar-kept", KEEP], ["bar-dropped", DROP]])
    byId(id).style.width = `${nCells > 0 ? (100 * counts[mark]) / nCells : 0}%`;
  byId("undo").setAttribute("aria-disabled", String(decisions.steps.length === 0));
  byId("storage-note").hidden = !storage.refused;
}

function showList() {
  const top = listing.order[0] ?? -1;
  byId("no-match").hidden = listing.order.length > 0;
  byId("no-match-words").textContent = nCells === 0 ? "There is no doubtful tag to check." : "No cell matches.";
  byId("clear").hidden = byId("clear-filters").hidden = !listing.filtered;
  byId("shown").textContent = listing.filtered ? `${count(listing.order.length)} of ${count(nCells)}` : count(nCells);
  document.body.classList.toggle("filtered", listing.filtered);
  byId("filters-toggle").classList.toggle("active", listing.label >= 0 || listing.action !== "" || listing.state !== "");
  grid.rebuild();
  return top;
}

// Filters or sorting have changed: the list begins again, at the cell that was current where it is still listed.
function relist() {
  listing.label = Number(byId("filter-label").value);
  listing.action = byId("filter-action").value;
  listing.state = byId("filter-state").value;
  listing.sort = byId("sort").value;
  listing.search(search.value);
  listing.refresh();
  markChosenLabel();
  markSorting();
  grid.scroller.scrollTop = 0;
  const top = showList();
  goTo(current >= 0 && listing.places[current] >= 0 ? current : top);
}

// Which column the rows follow, for those who hear the table and as a mark for those who see it.
function markSorting() {
  const directions = { label: "ascending", id: "ascending", doubted: "ascending", believed: "descending" };
  for (const head of document.querySelectorAll("[data-sort]")) {
    const follows = head.dataset.sort === (listing.sort === "believed" ? "doubted" : listing.sort);
    const direction = follows ? directions[listing.sort] : undefined;
    if (direction) head.parentElement.setAttribute("aria-sort", direction);
    else head.parentElement.removeAttribute("aria-sort");
  }
}

function clearFilters() {
  search.value = "";
  byId("filter-label").value = "-1";
  byId("filter-action").value = byId("filter-state").value = "";
  relist();
  grid.element.focus();
}

function chooseLabel(place) {
  byId("filter-label").value = String(listing.label === place ? -1 : place);
  relist();
  document.body.classList.remove("overview-open");
  byId("overview-toggle").setAttribute("aria-expanded", "false");
}

decisions.listeners.push(() => {
  showProgress();
  if (listing.state !== "") {
    listing.refresh();
    showList();
  } else grid.redraw(Array.from(grid.rows.keys(), (place) => listing.order[place]));
  showDetail(current, goToTag);
});

// --- Keyboard -----------------------------------------------------------------------------------------------------

const letters = {
  k: () => decide(KEEP),
  d: () => decide(DROP),
  u: undo,
  j: () => move(1),
  "/": () => { search.focus(); search.select(); },
  "?": () => byId("help").showModal(),
};
const moves = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  PageDown: () => move(grid.pageSize),
  PageUp: () => move(-grid.pageSize),
  Home: () => move(-nCells),
  End: () => move(nCells),
  " ": skip,
  Enter: skip,
};

// The list follows what is typed with a little delay; nobody decides on a list that is about to change.
let typing = 0;
function searchNow() {
  clearTimeout(typing);
  typing = 0;
  relist();
}
function leaveSearch() {
  if (typing) searchNow();
  grid.element.focus();
}

function escape(target) {
  if (closeMenus()) return;
  if (target === search) return leaveSearch();
  if (document.body.classList.contains("overview-open")) return byId("overview-toggle").click();
  closeSheet();
}

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  // A dialog has keys of its own.
  if (document.querySelector("dialog[open]")) return;
  if (key === "Escape") return escape(target);
  const types = target.matches("input, select, textarea");
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && key.toLowerCase() === "z" && !types) {
    event.preventDefault();
    return undo();
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target === search && (key === "Enter" || key === "ArrowDown")) {
    event.preventDefault();
    return leaveSearch();
  }
  if (types) return;
  // Blank, arrows and their like belong to the list; elsewhere they press buttons and scroll.
  const inList = target === document.body || target === grid.element || grid.scroller.contains(target);
  const action = (inList && moves[key]) || (oneKey.checked && letters[key.toLowerCase()]);
  if (!action || event.repeat && (key === "k" || key === "d")) return;
  event.preventDefault();
  action();
});

// --- Start --------------------------------------------------------------------------------------------------------

const labelsByName = labels.map((_, place) => place);
labelsByName.sort((a, b) => new Intl.Collator("en", { numeric: true }).compare(labels[a].name, labels[b].name));
byId("filter-label").append(...labelsByName.map((place) => make("option", { value: place }, labels[place].name)));

search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(searchNow, 120);
});
for (const id of ["filter-label", "filter-action", "filter-state", "sort"]) byId(id).addEventListener("change", relist);
for (const head of document.querySelectorAll("[data-sort]"))
  head.addEventListener("click", () => {
    const turned = head.dataset.sort === "doubted" && listing.sort === "doubted";
    byId("sort").value = turned ? "believed" : head.dataset.sort;
    relist();
  });

function toggle(id, name) {
  byId(id).addEventListener("click", () => {
    const isOpen = document.body.classList.toggle(name);
    byId(id).setAttribute("aria-expanded", String(isOpen));
  });
}
toggle("overview-toggle", "overview-open");
toggle("filters-toggle", "filters-open");

const presses = {
  keep: () => decide(KEEP), drop: () => decide(DROP), skip, undo,
  "close-sheet": closeSheet, clear: clearFilters, "clear-filters": clearFilters,
  export: exportDecisions, accept: acceptSuggestions, forget: forgetDecisions,
  import: () => byId("import-file").click(), "show-help": () => byId("help").showModal(),
};
for (const [id, action] of Object.entries(presses)) byId(id).addEventListener("click", action);
byId("import-file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (file) await importDecisions(file);
  // The same file may be chosen again.
  event.target.value = "";
});
window.addEventListener("storage", (event) => {
  const marks = event.key === STORAGE_KEY ? storage.decode(event.newValue) ?? new Uint8Array(nCells) : null;
  if (marks) decisions.adopt(marks);
});
window.addEventListener("beforeunload", (event) => {
  if (storage.refused && decisions.unsaved && decisions.decided > 0) event.preventDefault();
});

const oneKey = byId("one-key");
oneKey.checked = storage.attempt((shelf) => shelf.getItem("skpml-review-one-key")) !== "off";
oneKey.addEventListener("change", () =>
  storage.attempt((shelf) => shelf.setItem("skpml-review-one-key", oneKey.checked ? "on" : "off")));

drawOverview(chooseLabel);
grid.start(open);
showProgress();
relist();
document.body.classList.add("ready");
