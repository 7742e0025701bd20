// Where the person is in the list.
let current = -1;

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
function chooseCell(cell) {
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
  announce(order.length === 0 ? "The list is empty." : "All other tags of this list are decided.");
}

function closeSheet() {
  if (!document.body.classList.contains("sheet-open")) return;
  document.body.classList.remove("sheet-open");
  grid.element.focus();
}
