// Which cells are listed, and in which order.
const STATES = {
  undecided: (mark) => mark === UNDECIDED,
  decided: (mark) => mark !== UNDECIDED,
  kept: (mark) => mark === KEEP,
  dropped: (mark) => mark === DROP,
};

const listing = {
  label: -1,
  action: "",
  state: "",
  words: [],
  sort: "usefulness",
  // The cells listed, in order, and the place of each cell in it (-1: not listed).
  order: new Uint32Array(0),
  places: new Int32Array(nCells),

  refresh() {
    const found = sortedCells(this.sort).filter((cell) => this.admits(cell));
    this.order = found;
    this.places.fill(-1);
    for (let place = 0; place < found.length; place += 1) this.places[found[place]] = place;
  },

  admits(cell) {
    return (
      (this.label < 0 || cells.label[cell] === this.label) &&
      (this.action === "" || cells.action[cell] === this.action) &&
      (this.state === "" || STATES[this.state](decisions.marks[cell])) &&
      this.words.every((word) => searchable(cell).includes(word) || labelTexts[cells.label[cell]].includes(word))
    );
  },

  get filtered() {
    return this.label >= 0 || this.action !== "" || this.state !== "" || this.words.length > 0;
  },

  search(text) {
    this.words = folded(text).split(/\s+/).filter(Boolean);
  },
};

const folded = (text) => text.normalize("NFC").toLowerCase();
const labelTexts = labels.map((label) => folded(label.name));
const itemTexts = new Array(items.length);
function searchable(cell) {
  const place = cells.item[cell];
  itemTexts[place] ??= folded(`${items[place].id}\n${items[place].text ?? ""}`);
  return itemTexts[place];
}

// Each order is worked out once: names are compared as people read them, which is slow for many of them.
const orders = { usefulness: Uint32Array.from({ length: nCells }, (_, cell) => cell) };
function sortedCells(name) {
  orders[name] ??= orders.usefulness.slice().sort(comparisons[name]());
  return orders[name];
}
const comparisons = {
  doubted: () => (a, b) => cells.confidence[a] - cells.confidence[b],
  believed: () => (a, b) => cells.confidence[b] - cells.confidence[a],
  label: () => {
    const ranks = ranksOf(labels.map((label) => label.name));
    return (a, b) => ranks[cells.label[a]] - ranks[cells.label[b]];
  },
  id: () => {
    const ranks = ranksOf(items.map((item) => String(item.id)));
    return (a, b) => ranks[cells.item[a]] - ranks[cells.item[b]] || items[cells.item[a]].row - items[cells.item[b]].row;
  },
};
function ranksOf(names) {
  const sorted = names.map((_, place) => place).sort((a, b) => readingOrder.compare(names[a], names[b]));
  const ranks = new Uint32Array(names.length);
  sorted.forEach((place, rank) => {
    const previous = sorted[rank - 1];
    const equal = rank > 0 && readingOrder.compare(names[previous], names[place]) === 0;
    ranks[place] = equal ? ranks[previous] : rank;
  });
  return ranks;
}
