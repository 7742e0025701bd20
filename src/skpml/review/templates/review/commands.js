// What the person does with the tags: deciding one, deciding many, taking back, carrying elsewhere.
function decide(mark) {
  if (current < 0) return;
  const cell = current, place = listing.places[cell];
  const next = listing.order[place + 1] ?? listing.order[place - 1] ?? -1;
  const last = place === listing.order.length - 1;
  decisions.set([[cell, mark]]);
  announce(`${DECIDED_WORDS[mark]}: ${labelName(cell)}, ${itemOf(cell).id}. ${progressWords()}`);
  // The last cell stays current, unless its decision has taken it off the list.
  const target = last && listing.places[cell] >= 0 ? cell : next;
  goTo(target >= 0 && listing.places[target] >= 0 ? target : cell);
}

function undo() {
  const touched = decisions.undo();
  if (touched.length === 0) return announce("There is nothing to undo.");
  announce(touched.length === 1 ? `Undone: ${labelName(touched[0])}, ${itemOf(touched[0]).id}.` : `Undone: ${plural(touched.length, "decision")}.`);
  if (touched.length === 1) goTo(touched[0]);
}

function acceptSuggestions() {
  const changes = [], found = { keep: 0, drop: 0 };
  for (let cell = 0; cell < nCells; cell += 1) {
    const action = cells.action[cell];
    if (action === "ask" || decisions.marks[cell] !== UNDECIDED) continue;
    changes.push([cell, DECISIONS.indexOf(action)]);
    found[action] += 1;
  }
  if (changes.length === 0) return notify("No suggestion is left to accept: what is undecided is marked ask.");
  confirmFirst({
    question: `Accept ${plural(changes.length, "suggestion")}?`,
    explanation:
      `${plural(found.keep, "tag")} will be kept and ${count(found.drop)} dropped. ` +
      "Your own decisions stay as they are, and so does what is marked ask. This can be undone.",
    yes: "Accept",
    then: () => {
      decisions.set(changes);
      notify(`Accepted: ${count(found.keep)} kept, ${count(found.drop)} dropped. Undo takes it all back.`);
    },
  });
}

function forgetDecisions() {
  confirmFirst({
    question: "Forget all decisions?",
    explanation: `${plural(decisions.decided, "decision")} will be gone from this browser. This cannot be undone; export them first if you may need them.`,
    yes: "Forget them",
    then: () => {
      decisions.forget();
      notify("All decisions are forgotten.");
    },
  });
}

async function importDecisions(file) {
  try {
    const { changes, strangers } = readDecisions(await file.text());
    const changed = decisions.set(changes);
    const rest = strangers > 0 ? ` ${plural(strangers, "line")} left out: not listed on this page.` : "";
    notify(`${file.name}: ${plural(changes.length, "decision")} read, ${count(changed)} of them new here.${rest}`);
  } catch (error) {
    notify(`${file.name} was not read: ${error.message}.`, "bad");
  }
}

function exportDecisions() {
  if (decisions.decided === 0) return notify("There is no decision to export yet.");
  downloadDecisions();
  const exported = `${plural(decisions.decided, "decision")} exported.`;
  let left = 0;
  for (let cell = 0; cell < nCells; cell += 1) left += cells.action[cell] === "drop" && decisions.marks[cell] === UNDECIDED;
  if (left === 0) return announce(exported);
  // Whoever looks only at what is marked ask would get the sure mistakes back without a word.
  notify(`${exported} ${plural(left, "tag")} with the suggestion drop and no decision will stay: accept the suggestions (More) and export again to drop them too.`);
}
