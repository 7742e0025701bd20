// Comma-separated values as programs read them: no cell is changed, also not one that a spreadsheet takes for a formula.
const csvField = (value) => {
  const text = String(value);
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvLine = (fields) => `${fields.map(csvField).join(",")}\n`;

// The records of a text, each with the line on which it begins.
function parseCsv(text) {
  const records = [];
  let fields = [], field = "", line = 1, begin = 1, quoted = false, wasQuoted = false;
  const endField = () => { fields.push(field); field = ""; wasQuoted = false; };
  const endRecord = () => {
    const blank = fields.length === 0 && field === "" && !wasQuoted;
    endField();
    if (!blank) records.push({ line: begin, fields });
    fields = [];
    begin = line;
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    const isBreak = sign === "\n" || (sign === "\r" && text[at + 1] !== "\n");
    if (isBreak) line += 1;
    if (quoted) {
      if (sign !== '"') field += sign;
      else if (text[at + 1] === '"') { field += '"'; at += 1; }
      else quoted = false;
    } else if (sign === '"' && field === "" && !wasQuoted) quoted = wasQuoted = true;
    else if (sign === ",") endField();
    else if (isBreak) endRecord();
    else if (sign !== "\r") field += sign;
  }
  if (quoted) throw new Error(`line ${begin}: a quotation mark is opened and never closed`);
  if (field !== "" || wasQuoted || fields.length > 0) endRecord();
  return records;
}
