// Buttons and fields tied to what they do, and the first look.
const labelsByName = labels.map((_, place) => place);
labelsByName.sort((a, b) => readingOrder.compare(labels[a].name, labels[b].name));
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
grid.start(chooseCell);
showProgress();
relist();
document.body.removeAttribute("aria-busy");
