// Filters of lists: dates in the reader's zone, statuses at a click, and views that this browser remembers.
import { el, icon } from "./dom.js";
import { t } from "./text.js";

const KEY = "oraculo.views", VIEWS_MAX = 30;
const form = document.querySelector("[data-filters]");
const bar = document.querySelector("[data-views]");

// -- dates --------------------------------------------------------------------------------------------------------------
const local = (at) => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

for (const input of form?.querySelectorAll("[data-instant]") ?? []) {
  const sent = el("input", { type: "hidden", name: input.name });
  const tell = () => {
    sent.value = input.value ? `${new Date(input.value).toISOString().slice(0, 16)}Z` : "";
    sent.disabled = !input.value;
  };
  if (input.value) input.value = local(new Date(`${input.value}Z`));
  input.removeAttribute("name");
  input.after(sent);
  input.addEventListener("change", tell);
  tell();
  const label = input.closest("label").querySelector("[data-zone]");
  label.textContent = label.textContent.replace("UTC", t("filter.local"));
}

// -- what is chosen is applied, and what is empty stays out of the address ------------------------------------------------
form?.addEventListener("submit", () => {
  for (const one of form.elements) if (one.name && !one.value) one.disabled = true;
});
form?.addEventListener("change", (event) => event.target.matches("[name=status], select") && form.requestSubmit());
addEventListener("pageshow", () => {
  for (const one of form?.elements ?? []) if (one.name && one.type !== "hidden") one.disabled = false;
});

// -- views ----------------------------------------------------------------------------------------------------------------
function saved() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.name === "string" && typeof one?.query === "string") : [];
  } catch {
    return [];
  }
}

function keep(views) {
  localStorage.setItem(KEY, JSON.stringify(views.slice(-VIEWS_MAX)));
  show();
}

function show() {
  for (const one of bar.querySelectorAll("[data-own]")) one.remove();
  const here = new URLSearchParams(location.search);
  here.delete("cursor");
  const query = here.toString();
  for (const { name, query: where } of saved()) {
    const current = where === query ? "true" : null;
    const forget = () => keep(saved().filter((one) => one.name !== name));
    bar.append(
      el("a", { class: "chip", "data-own": "", href: `/runs?${where}`, "aria-current": current }, name),
      el("button", { class: "button ghost small forget", type: "button", "data-own": "", "aria-label": t("views.forget", { name }), onclick: forget }, icon("close")),
    );
  }
  if (!query || saved().some((one) => one.query === query) || bar.querySelector(":scope > [aria-current]")) return;
  const start = el("button", { class: "button ghost small", type: "button", "data-own": "", onclick: () => start.replaceWith(ask(query)) }, icon("plus"), t("views.save"));
  bar.append(start);
}

function ask(query) {
  const name = el("input", { name: "name", maxlength: 60, required: true, "aria-label": t("views.name"), placeholder: t("views.name") });
  const form = el("form", { "data-own": "" }, name, el("button", { class: "button small" }, t("save")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keep([...saved().filter((one) => one.name !== name.value), { name: name.value, query }]);
  });
  setTimeout(() => name.focus());
  return form;
}
if (bar) show();
