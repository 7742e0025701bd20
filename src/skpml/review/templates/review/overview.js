// What was estimated of the whole file and of each label.
function drawOverview(chooseLabel) {
  const { overview } = payload;
  const share = overview.candidates > 0 ? (100 * overview.wrong) / overview.candidates : 0;
  byId("sentence").textContent =
    `About ${estimate(overview.wrong)} of ${plural(overview.candidates, "tag")} are wrong ` +
    `(${estimate(overview.low)} to ${estimate(overview.high)}). ` +
    `${plural(nCells, "doubtful tag")} ${nCells === 1 ? "is" : "are"} listed here.`;
  const figures = [
    [estimate(overview.wrong), `wrong tags, estimated; between ${estimate(overview.low)} and ${estimate(overview.high)}`],
    [`${tenths.format(share)} %`, `of ${plural(overview.candidates, "tag")} on ${plural(overview.rows, "row")}`],
  ];
  byId("figures").append(...figures.map(([value, words]) => make("div", {}, make("dt", {}, words), make("dd", {}, value))));
  for (const [name, value] of payload.settings) byId("settings").append(make("dt", {}, name), make("dd", {}, value));
  const perLabel = new Array(labels.length).fill(0);
  for (const label of cells.label) perLabel[label] += 1;
  const largest = Math.max(1, ...labels.map((label) => Math.max(label.candidates, label.high)));
  const byWrong = labels.map((_, place) => place).sort((a, b) => labels[b].wrong - labels[a].wrong);
  byId("labels").append(...byWrong.map((place) => labelEntry(place, perLabel[place], largest, chooseLabel)));
}

function labelEntry(place, listed, largest, chooseLabel) {
  const label = labels[place];
  const bar = (kind, from, to) => {
    const part = make("span", { class: kind });
    part.style.left = `${(100 * from) / largest}%`;
    part.style.width = `${(100 * Math.max(0, to - from)) / largest}%`;
    return part;
  };
  const plot = make(
    "span", { class: "plot", "aria-hidden": "true" },
    bar("all", 0, label.candidates), bar("wrong", 0, label.wrong), bar("interval", label.low, label.high),
  );
  const words =
    `about ${estimate(label.wrong)} of ${count(label.candidates)} wrong (${estimate(label.low)} to ${estimate(label.high)})`;
  const partner = label.partner === null ? null : make(
    "span", { class: "soft" }, "where wrong, more often than usual true instead: ", make("bdi", {}, label.partner),
  );
  return make(
    "li", {},
    make(
      "button", { type: "button", class: "label", "aria-pressed": "false", "data-label": place, onclick: () => chooseLabel(place) },
      make("span", { class: "name" }, make("bdi", {}, label.name), make("span", { class: "soft" }, `${count(listed)} listed`)),
      plot, make("span", { class: "words" }, words), partner,
    ),
  );
}

function markChosenLabel() {
  for (const button of document.querySelectorAll("#labels button"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.label) === listing.label));
}
