// The decisions, one mark for each cell, and the steps that led to them.
const decisions = {
  marks: storage.load() || new Uint8Array(nCells),
  counts: [0, 0, 0],
  // Each step is a list of [cell, mark before].
  steps: [],
  unsaved: false,
  listeners: [],

  recount() {
    this.counts = [0, 0, 0];
    for (const mark of this.marks) this.counts[mark] += 1;
  },

  get decided() {
    return this.counts[KEEP] + this.counts[DROP];
  },

  // Sets many marks in one step; returns how many of them were changed.
  set(changes) {
    const step = [];
    for (const [cell, mark] of changes) {
      if (this.marks[cell] === mark) continue;
      step.push([cell, this.marks[cell]]);
      this.marks[cell] = mark;
    }
    if (step.length > 0) {
      this.steps.push(step);
      this.changed();
    }
    return step.length;
  },

  // Takes the last step back; returns the cells that it touched.
  undo() {
    const step = this.steps.pop();
    if (!step) return [];
    // Backwards: a step may have touched a cell twice.
    for (const [cell, before] of step.slice().reverse()) this.marks[cell] = before;
    this.changed();
    return step.map(([cell]) => cell);
  },

  forget() {
    this.marks = new Uint8Array(nCells);
    this.steps = [];
    this.changed();
    this.unsaved = false;
    storage.forget();
  },

  // Another window with this page has decided something.
  adopt(marks) {
    this.marks = marks;
    this.steps = [];
    this.tell();
  },

  changed() {
    this.unsaved = true;
    storage.save(this.marks);
    this.tell();
  },

  tell() {
    this.recount();
    for (const listener of this.listeners) listener();
  },
};
decisions.recount();
