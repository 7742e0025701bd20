// All that is known of one cell.
function showDetail(cell, goTo) {
  const empty = cell < 0;
  byId("detail-empty").hidden = !empty;
  byId("detail-body").hidden = empty;
  byId("verdict-buttons").hidden = empty;
  if (empty) return;
  const item = itemOf(cell), mark = decisions.marks[cell];
  byId("detail-label").textContent = labelName(cell);
  byId("detail-id").textContent = item.id;
  byId("detail-row").textContent = `row ${item.row}`;
  byId("detail-text").textContent = item.text ?? "";
  byId("detail-text").hidden = item.text === null;
  byId("detail-confidence").textContent = probability(cells.confidence[cell]);
  byId("detail-meter").style.width = `${100 * cells.confidence[cell]}%`;
  byId("detail-action").replaceChildren(actionBadge(cell));
  byId("detail-reason").textContent = cells.reason[cell];
  byId("detail-state").textContent = DECIDED_WORDS[mark];
  byId("detail-state").className = `state ${DECIDED_WORDS[mark]}`;
  byId("keep").setAttribute("aria-pressed", String(mark === KEEP));
  byId("drop").setAttribute("aria-pressed", String(mark === DROP));
  byId("detail-tags").replaceChildren(...item.tags.map((label) => tagEntry(item, label, cell, goTo)));
  showImage(item);
}

const ACTION_SIGNS = { keep: "✓", drop: "✕", ask: "?" };
function actionBadge(cell) {
  const action = cells.action[cell];
  return make("span", { class: `action ${action}` }, make("span", { "aria-hidden": "true" }, ACTION_SIGNS[action]), ` ${ACTION_WORDS[action]}`);
}

function tagEntry(item, label, current, goTo) {
  const cell = findCell(item.row, labels[label].name);
  const name = make("bdi", {}, labels[label].name);
  if (cell === undefined) return make("li", { class: "tag" }, make("span", {}, name, make("small", {}, "not in doubt")));
  const mark = decisions.marks[cell];
  const state = mark === UNDECIDED ? `${probability(cells.confidence[cell])}, undecided` : DECIDED_WORDS[mark];
  const look = `tag ${DECIDED_WORDS[mark]}`, words = [name, make("small", {}, state)];
  if (cell === current) return make("li", { class: `${look} current`, "aria-current": "true" }, make("span", {}, ...words));
  return make("li", { class: look }, make("button", { type: "button", onclick: () => goTo(cell) }, ...words));
}

// Only a path beside the page is shown as a picture: an address elsewhere would be a request to a stranger.
function relativeAddress(path) {
  if (/^[A-Za-z][A-Za-z0-9+.-]*:|^[\\/]/.test(path)) return null;
  try {
    return path.split(/[\\/]/).map(encodeURIComponent).join("/");
  } catch {
    return null;
  }
}

let shownImage = null;
function showImage(item) {
  const box = byId("detail-image");
  box.hidden = item.image === null;
  if (shownImage === item.image) return;
  shownImage = item.image;
  const path = make("code", { dir: "auto" }, item.image ?? "");
  const address = item.image === null ? null : relativeAddress(item.image);
  if (address === null) {
    box.replaceChildren(path);
    return;
  }
  const picture = make("img", { alt: `Image of ${item.id}`, decoding: "async" });
  picture.addEventListener("error", () => {
    if (picture.isConnected) box.replaceChildren(path, make("small", {}, "This image is not beside the page."));
  });
  box.replaceChildren(picture);
  picture.src = address;
}
