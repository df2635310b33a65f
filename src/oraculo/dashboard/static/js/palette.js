// Everything by its name: pages, what this page can do, and runs by how their id begins. Ctrl-K or ⌘-K opens it.
import { el } from "./dom.js";
import { t } from "./text.js";

const FOUND_MAX = 8, ASK_AFTER_MS = 150;
const dialog = document.getElementById("palette");
const input = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
let shown = [], at = 0, asked = 0, timer;

/** [what is said, what it does] of all that can be chosen here. */
function commands() {
  const pages = [...document.querySelectorAll(".nav a, .foot a")].map((link) => [link.textContent.trim(), () => location.assign(link.href)]);
  const deeds = [...document.querySelectorAll(".run-actions button, .run-actions a.button, [role=tab], [data-help], .preferences button")]
    .filter((one) => !one.closest("[hidden]") && !one.closest("details:not([open])"))
    .map((one) => [(one.getAttribute("aria-label") ?? one.title ?? "").trim() || one.textContent.trim(), () => one.click()]);
  return [...pages, ...deeds];
}

function draw() {
  list.replaceChildren(
    ...shown.map(([name, , note], index) =>
      el("li", { role: "option", id: `choice-${index}`, "aria-selected": String(index === at), onclick: () => choose(index) }, el("span", {}, name), note ? el("span", { class: "muted" }, note) : null)),
  );
  input.setAttribute("aria-activedescendant", shown.length ? `choice-${at}` : "");
  list.children[at]?.scrollIntoView({ block: "nearest" });
}

function choose(index) {
  const chosen = shown[index];
  dialog.close();
  chosen?.[1]();
}

async function runs(text, number) {
  const answer = await fetch(`/api/v1/orchestrations?limit=${FOUND_MAX}&texto=${encodeURIComponent(text)}`).catch(() => null);
  if (!answer?.ok || number !== asked) return;
  const { orchestrations } = await answer.json();
  shown = [...shown, ...orchestrations.map((one) => [one.correlation_id, () => location.assign(`/runs/${encodeURIComponent(one.correlation_id)}`), t(`status.${one.status}`)])];
  draw();
}

function look() {
  const text = input.value.trim(), number = ++asked;
  const words = text.toLowerCase().split(/\s+/);
  shown = commands().filter(([name]) => words.every((word) => name.toLowerCase().includes(word)));
  if (text) shown.push([t("palette.find", { text }), () => location.assign(`/runs?texto=${encodeURIComponent(text)}`)]);
  at = 0;
  draw();
  clearTimeout(timer);
  if (text) timer = setTimeout(() => runs(text, number), ASK_AFTER_MS);
}

export function openPalette() {
  if (!dialog || dialog.open) return;
  input.value = "";
  dialog.showModal();
  look();
}

if (dialog) {
  input.addEventListener("input", look);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) {
      event.preventDefault();
      at = (at + step + shown.length) % shown.length;
      draw();
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(at);
    }
  });
}
