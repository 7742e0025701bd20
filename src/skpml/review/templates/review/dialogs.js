// Messages, questions and menus.
function announce(text) {
  byId("status").textContent = text;
}

// A message that stays until it is closed.
function notify(text, kind = "plain") {
  const notice = make("div", { class: `notice ${kind}` }, make("p", {}, text));
  notice.append(make("button", { type: "button", onclick: () => notice.remove() }, "Close"));
  byId("notices").replaceChildren(notice);
}

// Asks before something large is done. The answer goes to `then` only if it is yes.
function confirmFirst({ question, explanation, yes, then }) {
  const dialog = byId("confirm");
  byId("confirm-question").textContent = question;
  byId("confirm-explanation").textContent = explanation;
  byId("confirm-yes").textContent = yes;
  dialog.querySelector("form").onsubmit = (event) => { if (event.submitter.value === "yes") then(); };
  dialog.showModal();
}

const menus = Array.from(document.querySelectorAll("details.menu"));
for (const menu of menus) {
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  // Before the command itself runs, so that a dialog gives the focus back to the menu and not to a hidden entry.
  for (const button of menu.querySelectorAll("button")) button.addEventListener("click", closeMenus);
}

// Closes an open menu; says whether there was one.
function closeMenus() {
  const open = menus.find((menu) => menu.open);
  if (!open) return false;
  open.open = false;
  open.querySelector("summary").focus();
  return true;
}
