// What the page shows of the decisions and of the list.
const search = byId("search");

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
  byId("no-match-words").textContent = nCells === 0 ? "There is no doubtful tag to check." : "No tag matches.";
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
