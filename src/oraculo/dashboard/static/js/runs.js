// Lists: how many are selected, and rows that change without moving.
import { el, icon } from "./dom.js";
import { duration, number, t } from "./text.js";
import "./views.js";

const boxes = () => [...document.querySelectorAll('[data-row] input[name="id"]')];
const told = document.querySelector("[data-selected]");

function count() {
  const selected = boxes().filter((box) => box.checked).length;
  if (told) told.textContent = selected ? told.dataset.text.replace("#", number(selected)) : "";
}
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) for (const box of boxes()) box.checked = event.target.checked;
  count();
});
count();

const FINAL = new Set(["concluida", "parcial", "erro", "timeout", "cancelada"]);

function settle(row, one) {
  const status = `${one.status}${one.paused ? " paused" : ""}`;
  if (row.dataset.status !== status) {
    row.dataset.status = status;
    const shown = el("span", { class: `status s-${one.status}` }, icon(one.status), el("span", {}, t(`status.${one.status}`)));
    const paused = one.paused ? [" ", el("span", { class: "tag" }, t("status.paused"))] : [];
    row.querySelector('[data-cell="status"]').replaceChildren(shown, ...paused);
  }
  const done = el("span", {}, `${number(one.total - one.open)}/${number(one.total)}`);
  const failed = one.failed ? [" ", el("span", { class: "s-erro" }, t("failed", { n: number(one.failed) }))] : [];
  row.querySelector('[data-cell="tickets"]').replaceChildren(done, ...failed);
  row.querySelector('[data-cell="took"]').textContent = duration((one.end ?? Date.now()) - one.start);
  if (FINAL.has(one.status)) delete row.dataset.open;
}

async function look() {
  const open = [...document.querySelectorAll("[data-row][data-open]")];
  if (!open.length || document.hidden) return;
  const query = new URLSearchParams(open.map((row) => ["id", row.dataset.id]));
  const answer = await fetch(`/ui/runs/live?${query}`).catch(() => null);
  if (!answer?.ok) return;
  const found = new Map((await answer.json()).map((one) => [one.id, one]));
  for (const row of open) if (found.has(row.dataset.id)) settle(row, found.get(row.dataset.id));
}
if (document.querySelector("[data-row][data-id]")) {
  look();
  setInterval(look, 1500);
}
