// A page that asks for its storage before the browser has noted that the page is there gets one that is empty and keeps
// nothing; on a busy machine Chromium lets that happen. Whoever grants a lock has noted it. A browser that grants none,
// or takes too long, is trusted.
const LONGEST_WAIT = 3000;
const noticed = new Promise((resolve) => {
  setTimeout(resolve, LONGEST_WAIT);
  const granted = navigator.locks?.request("skpml-review", { mode: "shared" }, () => {});
  Promise.resolve(granted).then(resolve, resolve);
});
document.body.setAttribute("aria-busy", "true");
await noticed;

// What the browser keeps between visits: one letter for each cell, under the key of data and run.
const STORAGE_KEY = `skpml-review:${payload.key}`;
const LETTERS = ".kd";

// Tells these cells, in this order, from others: letters of other cells must never be taken for theirs.
const fingerprint = (() => {
  let hash = 0x811c9dc5;
  const mix = (number) => { hash = Math.imul(hash ^ number, 0x01000193) >>> 0; };
  for (const { name } of labels) for (const sign of `${name}\n`) mix(sign.codePointAt(0));
  for (let cell = 0; cell < nCells; cell += 1) {
    mix(itemOf(cell).row);
    mix(cells.label[cell]);
  }
  return `${nCells}-${hash.toString(16)}`;
})();

const storage = {
  refused: false,

  attempt(action) {
    try {
      return action(window.localStorage);
    } catch {
      this.refused = true;
      return null;
    }
  },

  // Marks of an earlier visit, or null.
  load() {
    const text = this.attempt((shelf) => {
      // Some browsers let a page read and refuse to write.
      shelf.setItem(`${STORAGE_KEY}?`, "");
      shelf.removeItem(`${STORAGE_KEY}?`);
      return shelf.getItem(STORAGE_KEY);
    });
    return this.decode(text);
  },

  decode(text) {
    const [stamp, letters] = (text || "").split(" ");
    if (stamp !== fingerprint || !letters || letters.length !== nCells) return null;
    return Uint8Array.from(letters, (letter) => Math.max(0, LETTERS.indexOf(letter)));
  },

  save(marks) {
    const letters = Array.from(marks, (mark) => LETTERS[mark]).join("");
    this.attempt((shelf) => shelf.setItem(STORAGE_KEY, `${fingerprint} ${letters}`));
  },

  forget() {
    this.attempt((shelf) => shelf.removeItem(STORAGE_KEY));
  },
};
