// Everything by keyboard.
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

function stepBack(target) {
  if (closeMenus()) return;
  if (target === search) return leaveSearch();
  if (document.body.classList.contains("overview-open")) return byId("overview-toggle").click();
  closeSheet();
}

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  // A dialog has keys of its own.
  if (document.querySelector("dialog[open]")) return;
  if (key === "Escape") return stepBack(target);
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
