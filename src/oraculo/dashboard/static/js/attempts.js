// Tickets that failed or were tried again, one a line, their attempts beside each other.
import { el, icon } from "./dom.js";
import { ticketName } from "./names.js";
import { BACKOFF, STATUS } from "./run-state.js";
import { duration, number, t } from "./text.js";

const TICKETS_SHOWN = 200, ATTEMPTS_SHOWN = 12;
const BAD = new Set(["erro", "timeout"]);

export class Attempts {
  constructor(box, count, store, open) {
    this.box = box;
    this.count = count;
    this.store = store;
    this.open = open;
  }

  /** `visible`: the part of the page is in sight; else only the count is told. */
  show(state, visible) {
    const found = [];
    for (let p = 0; p < state.total; p++)
      if (state.attempt[p] > 1 || state.phase[p] === BACKOFF || BAD.has(STATUS[state.status[p]])) found.push(p);
    this.count.textContent = found.length ? number(found.length) : "";
    if (!visible || this.drawn === state.version) return;
    this.drawn = state.version;
    if (!found.length) return this.box.replaceChildren(el("p", { class: "note" }, t("attempts.none")));
    const shown = found.slice(0, TICKETS_SHOWN).map((p) => [p, this.store.attempts(p, state.version)]);
    const wide = Math.min(ATTEMPTS_SHOWN, Math.max(...shown.map(([, tries]) => tries.length)));
    const heads = [el("th", { scope: "col" }, t("col.ticket"))];
    for (let n = 1; n <= wide; n++) heads.push(el("th", { scope: "col" }, t("attempt", { n })));
    const rows = shown.map(([position, tries]) => {
      const name = el("button", { type: "button", class: "link", onclick: () => this.open(position) }, ticketName(this.store, position));
      const cells = tries.slice(-wide).map((one) => this.#cell(one));
      while (cells.length < wide) cells.push(el("td", {}));
      return el("tr", {}, el("th", { scope: "row" }, name), ...cells);
    });
    const table = el("table", { class: "table compare" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows));
    const more = found.length - shown.length;
    this.box.replaceChildren(table, ...(more ? [el("p", { class: "note" }, t("attempts.more", { n: number(more) }))] : []));
  }

  #cell(one) {
    const look = one.outcome ?? "em_execucao";
    const took = one.ended === null ? "…" : duration(one.ended - one.released);
    const head = el("span", { class: `status s-${look}` }, icon(look), el("span", {}, t(`status.${look}`)));
    return el("td", {}, head, " ", el("span", { class: "muted" }, `+${duration(one.released)} · ${took}`), one.error ? el("span", { class: "cell-error" }, one.error) : null);
  }
}
