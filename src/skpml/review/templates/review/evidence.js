// What speaks for and against a tag: similar items, and words of the text.

import { batchCount, byId, cells, evidence, examples, formatConfidence, isInBatch, items, labels } from "./data.js";
import { make, makePicture, plural, splitKey, votes } from "./data.js";
import { decisions } from "./decisions.js";

// Similar items and telling words of a cell, if the page has them. Cells of the batch have none, which would suggest an
// answer.
function findEvidence(cell) {
  const place = cell - batchCount;
  const read = (column) => evidence[column][place] ?? [];
  return {
    withTag: read("with"),
    withoutTag: read("without"),
    supporting: read("supporting"),
    opposing: read("opposing"),
  };
}

// The image of an item in a box, or its path if there is no image to show.
export function showPicture(box, item, wrap = (picture) => picture) {
  const path = make("code", { dir: "auto" }, item.image ?? "");
  const missing = make("small", {}, "There is no such image next to the page.");
  const picture = makePicture(item, () => box.replaceChildren(path, missing));
  box.replaceChildren(picture === null ? path : wrap(picture));
}

// As Python finds words: at least two letters, digits or underscores.
const WORD = /[\p{L}\p{N}_]{2,}/gu;

// Fills an element with a text whose telling words are marked.
function markWords(element, text, supporting, opposing) {
  const kinds = new Map([...supporting.map((word) => [word, "for"]), ...opposing.map((word) => [word, "against"])]);
  const parts = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const kind = kinds.get(word.toLowerCase());
    if (kind === undefined) continue;
    parts.push(text.slice(end, index), make("mark", { class: kind }, word));
    end = index + word.length;
  }
  element.replaceChildren(...parts, text.slice(end));
}

// A button that shows an item at full size, with words below it.
function makeSimilar(place, ...below) {
  const item = items[place];
  const name = item.text === null ? item.id : item.text;
  const words = make("span", {}, name);
  const picture = makePicture(item, () => picture.replaceWith(words), { loading: "lazy" });
  const kind = picture === null ? "words" : "picture";
  const attributes = { type: "button", class: kind, "data-item": place, title: item.id, dir: "auto" };
  return make("li", {}, make("button", attributes, picture ?? words, ...below));
}

// Shows the evidence about a cell, or none.
export function showEvidence(cell, item) {
  const { withTag, withoutTag, supporting, opposing } = findEvidence(cell);
  byId("evidence").hidden = withTag.length + withoutTag.length === 0;
  for (const [name, places] of [
    ["similar-with", withTag],
    ["similar-without", withoutTag],
  ]) {
    byId(name).replaceChildren(...places.map((place) => makeSimilar(place)));
    byId(`${name}-none`).hidden = places.length > 0;
  }
  for (const [name, words] of [
    ["words-for", supporting],
    ["words-against", opposing],
  ]) {
    byId(name).textContent = words.join(", ");
    byId(name).hidden = byId(`${name}-title`).hidden = words.length === 0;
  }
  markWords(byId("detail-text"), item.text ?? "", supporting, opposing);
}

// Shows the items with the tag of a cell that have the highest and the lowest confidence, if the person asks for them.
export function showExamples(cell) {
  const [best = [], worst = []] = examples[cells.label[cell]] ?? [];
  byId("examples").hidden = isInBatch(cell) || best.length === 0;
  if (byId("examples").hidden || !byId("examples").open) return;
  for (const [name, some] of [
    ["examples-best", best],
    ["examples-worst", worst],
  ]) {
    const makeExample = ([place, sure]) => makeSimilar(place, make("small", {}, formatConfidence(sure)));
    byId(name).replaceChildren(...some.map(makeExample));
  }
}

// Who gave the tag of a cell, and who saw the item without giving it; nothing about the batch.
export function describeVotes(cell) {
  const place = cell - batchCount;
  if (votes === null || place < 0) return "";
  const [yes, no] = [votes.yes[place], votes.no[place]];
  if (votes.annotators === null) return `${yes} of ${plural(yes + no, "annotator")} gave it.`;
  const listNames = (some) => some.map((number) => votes.annotators[number]).join(", ");
  const parts = [`${yes.length} of ${plural(yes.length + no.length, "annotator")} gave it`];
  if (yes.length > 0) parts.push(`: ${listNames(yes)}`);
  if (no.length > 0) parts.push(`; not ${listNames(no)}`);
  return `${parts.join("")}.`;
}

// Shows an item at full size.
export function lookAt(item) {
  byId("look-id").textContent = item.id;
  byId("look-picture").hidden = item.image === null;
  if (item.image !== null) showPicture(byId("look-picture"), item);
  byId("look-text").textContent = item.text ?? "";
  byId("look-text").hidden = item.text === null;
  const added = decisions.listAdded(item.row).map((name) => `${splitKey(name)[1]} (added)`);
  byId("look-tags").textContent = [...item.tags.map((label) => labels[label]), ...added].join(", ") || "none";
  byId("look").showModal();
}
