// Decisions as a file: written for `skpml clean apply`, read to go on in another browser.
const COLUMNS = ["id", "row", "label", "decision", "confidence"];

function decisionsAsCsv() {
  const lines = [csvLine(COLUMNS)];
  for (let cell = 0; cell < nCells; cell += 1) {
    const mark = decisions.marks[cell];
    if (mark === UNDECIDED) continue;
    const item = itemOf(cell);
    lines.push(csvLine([item.id, item.row, labelName(cell), DECISIONS[mark], cells.confidence[cell]]));
  }
  return lines.join("");
}

function downloadDecisions() {
  const stem = payload.title.replace(/\.[A-Za-z0-9]{1,8}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_") || "review";
  const address = URL.createObjectURL(new Blob([decisionsAsCsv()], { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: `${stem}_decisions.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  decisions.unsaved = false;
}

// The changes that a file asks for; an error names the line, and then nothing of the file is taken.
function readDecisions(text) {
  const records = parseCsv(text);
  const header = records.length > 0 ? records[0].fields : [];
  const missing = COLUMNS.slice(0, 4).filter((name) => !header.includes(name));
  if (missing.length > 0)
    throw new Error(`line 1: the header lacks ${missing.join(", ")}; it must be ${COLUMNS.join(",")}`);
  const [id, row, label, decision] = COLUMNS.map((name) => header.indexOf(name));
  const changes = [];
  let strangers = 0;
  for (const { line, fields } of records.slice(1)) {
    if (fields.length !== header.length)
      throw new Error(`line ${line}: ${plural(fields.length, "field")} where the header has ${header.length}`);
    const mark = DECISIONS.indexOf(fields[decision], 1);
    if (mark < 0) throw new Error(`line ${line}: the decision is “${fields[decision]}”; it must be keep or drop`);
    const cell = findCell(fields[row], fields[label]);
    if (cell === undefined || String(itemOf(cell).id) !== fields[id]) strangers += 1;
    else changes.push([cell, mark]);
  }
  return { changes, strangers };
}
