(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Sorting: better values first, then worse ones first, then the order of the suite. Cells without a value come last.
  const sortValue = (row, column) => {
    const text = row.cells[column].textContent.trim();
    if (column === 0) return text;
    const value = parseFloat(text.replace(/^< /, "").replace(/,/g, "").replace("−", "-"));
    return Number.isNaN(value) ? null : value;
  };
  const names = new Intl.Collator("en", { numeric: true });
  const compare = (a, b) => (typeof a === "string" || typeof b === "string" ? names.compare(a, b) : a - b);

  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    const original = Array.from(body.rows);
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const first = (column > 0 && table.dataset.first) || "ascending";
      const second = first === "ascending" ? "descending" : "ascending";
      head.querySelector("button").addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const next = now === first ? second : now === second ? "none" : first;
        for (const other of heads) other.removeAttribute("aria-sort");
        let rows = original.slice();
        if (next !== "none") {
          head.setAttribute("aria-sort", next);
          const sign = next === "ascending" ? 1 : -1;
          const keyed = rows.map((row) => [sortValue(row, column), row]);
          keyed.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
          rows = keyed.map(([, row]) => row);
        }
        body.append(...rows);
      });
    });
  }

  // Filters only hide: marks, ranks and tests are those of the whole suite.
  const text = document.getElementById("filter-text");
  const reset = document.getElementById("filter-reset");
  const status = document.getElementById("filter-status");
  const boxes = all(".choices input[type=checkbox]");
  const apply = () => {
    const needle = text.value.trim().toLowerCase();
    const off = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const element of all("tbody tr[data-name], figure[data-name]"))
      element.classList.toggle("hidden-name", off.has(element.dataset.name));
    for (const table of all("table.sortable"))
      for (const [column, head] of all("thead th", table).entries())
        for (const row of table.rows) row.cells[column].classList.toggle("hidden-column", off.has(head.dataset.name));
    let shown = 0,
      rows = 0;
    for (const row of all("table.sortable tbody tr")) {
      row.classList.toggle("hidden-text", needle !== "" && !row.cells[0].textContent.toLowerCase().includes(needle));
      rows += 1;
      if (!/hidden-/.test(row.className)) shown += 1;
    }
    const active = needle !== "" || off.size > 0;
    reset.hidden = !active;
    status.textContent = active ? `${shown} of ${rows} rows shown; ranks and marks are those of all rows` : "";
  };
  text.addEventListener("input", apply);
  for (const box of boxes) box.addEventListener("change", apply);
  reset.addEventListener("click", () => {
    text.value = "";
    for (const box of boxes) box.checked = true;
    apply();
    text.focus();
  });
  const menus = all(".tools details");
  document.addEventListener("click", (event) => {
    for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of menus)
      if (menu.open) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
  });
  document.querySelector(".tools").hidden = false;
  // A browser that reloads a page may keep what was typed.
  apply();
})();
