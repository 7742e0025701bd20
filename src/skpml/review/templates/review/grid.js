// The table. Only rows in sight, a few around them and the current one are in the document.
const OVERSCAN = 8;
const EXCERPT = 200;

const grid = {
  element: byId("grid"),
  scroller: byId("rows"),
  spacer: byId("spacer"),
  rows: new Map(),
  height: 44,
  current: -1,
  frame: 0,

  start(onChoose) {
    this.scroller.addEventListener("scroll", () => this.plan(), { passive: true });
    this.scroller.addEventListener("click", (event) => {
      const row = event.target.closest("[data-cell]");
      if (!row) return;
      // The grid, not the box that scrolls in it, tells which row is current.
      this.element.focus({ preventScroll: true });
      onChoose(Number(row.dataset.cell));
    });
    new ResizeObserver(() => this.rebuild()).observe(this.scroller);
  },

  // Lists what `listing` holds now.
  rebuild() {
    this.height = byId("row-probe").getBoundingClientRect().height || this.height;
    this.element.style.setProperty("--scrollbar", `${this.scroller.offsetWidth - this.scroller.clientWidth}px`);
    const total = listing.order.length;
    this.spacer.style.height = `${total * this.height}px`;
    this.element.setAttribute("aria-rowcount", String(total + 1));
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  },

  plan() {
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  },

  draw() {
    const total = listing.order.length;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / this.height) - OVERSCAN);
    const last = Math.min(total, Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / this.height) + OVERSCAN);
    const currentPlace = this.current < 0 ? -1 : listing.places[this.current];
    const wanted = (place) => (place >= first && place < last) || place === currentPlace;
    for (const [place, row] of this.rows) {
      if (wanted(place)) continue;
      row.remove();
      this.rows.delete(place);
    }
    const fresh = document.createDocumentFragment();
    for (let place = first; place < last; place += 1) this.ensure(place, fresh);
    if (currentPlace >= 0) this.ensure(currentPlace, fresh);
    this.spacer.append(fresh);
    if (currentPlace >= 0) this.element.setAttribute("aria-activedescendant", `row-${this.current}`);
    else this.element.removeAttribute("aria-activedescendant");
  },

  ensure(place, parent) {
    if (this.rows.has(place)) return;
    const row = this.makeRow(place);
    this.rows.set(place, row);
    parent.append(row);
  },

  makeRow(place) {
    const cell = listing.order[place], item = itemOf(cell), mark = decisions.marks[cell];
    const row = make(
      "div", {
        role: "row", id: `row-${cell}`, "data-cell": cell, "aria-rowindex": place + 2,
        "aria-selected": cell === this.current, class: `row ${DECIDED_WORDS[mark]}`,
      },
      make("span", { role: "gridcell", class: "mark" }, make("span", { "aria-hidden": "true" }, ["", "✓", "✕"][mark]),
        make("span", { class: "unseen" }, DECIDED_WORDS[mark])),
      make("span", { role: "gridcell", class: "tag-name", dir: "auto" }, labelName(cell)),
      make("span", { role: "gridcell", class: "item" }, make("bdi", { class: "id" }, String(item.id)),
        item.text === null ? null : make("bdi", { class: "excerpt" }, item.text.slice(0, EXCERPT))),
      make("span", { role: "gridcell", class: "confidence" }, confidenceBar(cell), probability(cells.confidence[cell])),
      make("span", { role: "gridcell", class: "suggestion" }, actionBadge(cell)),
    );
    row.style.transform = `translateY(${place * this.height}px)`;
    return row;
  },

  // Draws anew the rows of these cells, where they are in the document.
  redraw(changed) {
    for (const cell of changed) {
      const place = listing.places[cell];
      if (cell < 0 || !this.rows.has(place)) continue;
      const row = this.makeRow(place);
      this.rows.get(place).replaceWith(row);
      this.rows.set(place, row);
    }
  },

  choose(cell) {
    const before = this.current;
    this.current = cell;
    this.reveal();
    this.draw();
    this.redraw([before, cell]);
  },

  // Scrolls as little as is needed to see the current row.
  reveal() {
    const place = this.current < 0 ? -1 : listing.places[this.current];
    if (place < 0) return;
    const top = place * this.height, room = this.scroller.clientHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + this.height > this.scroller.scrollTop + room) this.scroller.scrollTop = top + this.height - room;
  },

  get pageSize() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1);
  },
};

function confidenceBar(cell) {
  const fill = make("span");
  fill.style.width = `${100 * cells.confidence[cell]}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, fill);
}
