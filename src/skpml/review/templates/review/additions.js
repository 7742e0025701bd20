// Tags that a person adds to an item: the field for their names, and the list of all of them.

import { ADDED, byId, formatCount, labels, make, splitKey } from "./data.js";
import { decisions, findAddable, idOfAdded } from "./decisions.js";
import { fold } from "./list.js";

// An added tag is a button that removes it.
export function makeAdded(name, ...words) {
  const parts = [make("bdi", {}, splitKey(name)[1]), make("small", {}, ...words)];
  return make("li", { class: "tag added" }, make("button", { type: "button", "data-added": name }, ...parts));
}

// All added tags, also those of items that are not on the page.
export function listAdditions() {
  const makeLine = (name) => makeAdded(name, make("bdi", {}, idOfAdded(name)), `, row ${splitKey(name)[0]}: remove`);
  byId("additions-list").replaceChildren(...decisions.listAdded().map(makeLine));
}

// The labels that a person may mean: the one of this name, else those whose names hold it.
function findLabels(text) {
  const name = fold(text.trim());
  const same = labels.filter((label) => fold(label) === name);
  const exact = same.filter((label) => label === text.trim());
  if (same.length > 0) return exact.length > 0 ? exact : same;
  return name === "" ? [] : labels.filter((label) => fold(label).includes(name));
}

// The tag of the field, by `keyOf`, or nothing and a message if it cannot be added to the item.
export function readAddition(item) {
  const [field, problem] = [byId("add-tag"), byId("add-problem")];
  const found = findLabels(field.value);
  const cell = found.length === 1 ? findAddable(item.row, found[0]) : undefined;
  if (found.length === 0)
    problem.textContent = field.value.trim() === "" ? "Type the name of a tag." : "There is no such tag in the file.";
  else if (found.length > 1)
    problem.textContent = `Which of ${formatCount(found.length)}? ${found.slice(0, 5).join(", ")}`;
  else if (cell === undefined || decisions.read(cell) === ADDED) problem.textContent = "The item has this tag already.";
  else problem.textContent = "";
  field.setAttribute("aria-invalid", String(problem.textContent !== ""));
  byId("add-form").scrollIntoView({ block: "nearest" });
  if (problem.textContent !== "") return undefined;
  field.value = "";
  return cell;
}

// Empties the field: its text was for another item, or the person gave up.
export function clearAddition() {
  byId("add-tag").value = byId("add-problem").textContent = "";
  byId("add-tag").setAttribute("aria-invalid", "false");
}
