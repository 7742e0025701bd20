// The data of the page. Nothing in here is ever parsed as HTML: elements get text nodes only.
const payload = JSON.parse(document.getElementById("payload").textContent);
const { labels, items, cells } = payload;
const nCells = cells.item.length;

const UNDECIDED = 0, KEEP = 1, DROP = 2;
const DECISIONS = ["undecided", "keep", "drop"];
const DECIDED_WORDS = ["undecided", "kept", "dropped"];
const ACTION_WORDS = { keep: "keep", drop: "drop", ask: "ask" };

const itemOf = (cell) => items[cells.item[cell]];
const labelName = (cell) => labels[cells.label[cell]].name;

// From row and label to the cell; a row's number has no blank, so the first blank ends it.
const cellAt = new Map();
for (let cell = 0; cell < nCells; cell += 1) cellAt.set(`${itemOf(cell).row} ${labelName(cell)}`, cell);
const findCell = (row, label) => cellAt.get(`${row} ${label}`);

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// As people read: img_9 before img_10.
const readingOrder = new Intl.Collator("en", { numeric: true });
const wholeNumbers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const count = (number) => wholeNumbers.format(number);
const estimate = (number) => (number < 10 ? tenths : wholeNumbers).format(number);
const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
// A confidence that is not quite 0 or 1 is not shown as if it were.
const probability = (value) => (value > 0 && value < 0.005 ? "<0.01" : value < 1 && value > 0.995 ? ">0.99" : value.toFixed(2));
