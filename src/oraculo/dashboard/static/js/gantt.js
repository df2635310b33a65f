// One line a ticket: when each attempt was published, how long it ran, how it ended, and what it waited for between.
import { el, icon, svg } from "./dom.js";
import { ticketName } from "./names.js";
import { BACKOFF, CLOSED, each, STATUS } from "./run-state.js";
import { duration, number, t } from "./text.js";
import { VirtualList } from "./virtual.js";

const ROW = 30, MOST = 416, WIDE = 1000, AXIS_LABEL = 64;
const [ERRO, TIMEOUT, CANCELADA] = ["erro", "timeout", "cancelada"].map((name) => STATUS.indexOf(name));
const TESTS = {
  all: () => true,
  failed: (state, p) => state.status[p] === ERRO || state.status[p] === TIMEOUT,
  open: (state, p) => state.phase[p] !== CLOSED,
  retried: (state, p) => state.attempt[p] > 1 || state.phase[p] === BACKOFF,
};

export class Gantt {
  constructor(root, store, open, told) {
    this.store = store;
    this.open = open;
    this.told = told;
    this.filter = "all";
    this.node = null;
    this.axis = root.querySelector("[data-gantt-axis]");
    this.chips = [...root.querySelectorAll("[data-filter]")];
    this.box = root.querySelector("[data-gantt]");
    this.list = new VirtualList(this.box, ROW, MOST, (index) => this.#row(this.rows[index]));
    new ResizeObserver(() => this.#measure()).observe(this.list.spread);
    this.note = el("p", { class: "note", hidden: true }, t("none_here"));
    this.box.after(this.note);
    for (const chip of this.chips)
      chip.addEventListener("click", () => this.choose(chip.dataset.filter));
  }

  choose(filter) {
    this.filter = filter;
    this.told(filter);
    this.again();
  }

  only(node) {
    this.node = node;
    this.again();
  }

  again() {
    if (this.state) this.show(this.state, this.now);
  }

  show(state, now) {
    this.state = state;
    this.now = now;
    this.end = Math.max(1, state.endedAt ?? now);
    const counts = { all: 0, failed: 0, open: 0, retried: 0 };
    const chosen = TESTS[this.filter];
    let troubled = false; // some row has something to say
    this.rows = [];
    each(this.node?.members ?? [0, state.total], (position) => {
      if (position >= state.total) return;
      counts.all += 1;
      if (TESTS.failed(state, position)) counts.failed += 1;
      if (TESTS.open(state, position)) counts.open += 1;
      if (TESTS.retried(state, position)) counts.retried += 1;
      if (!chosen(state, position)) return;
      this.rows.push(position);
      troubled ||= TESTS.failed(state, position) || TESTS.retried(state, position) || state.status[position] === CANCELADA;
    });
    for (const chip of this.chips) {
      chip.setAttribute("aria-pressed", String(chip.dataset.filter === this.filter));
      chip.querySelector("[data-count]").textContent = number(counts[chip.dataset.filter]);
    }
    this.note.hidden = this.rows.length > 0;
    const rough = this.end / 5; // round steps of time, five or so
    const unit = 10 ** Math.floor(Math.log10(rough));
    this.step = [1, 2, 5, 10].map((n) => n * unit).find((step) => step >= rough);
    this.box.style.setProperty("--step", `${(100 * this.step) / this.end}%`);
    const changed = this.box.classList.contains("troubled") !== troubled;
    this.box.classList.toggle("troubled", troubled);
    this.list.show(this.rows.length);
    if (changed) this.#measure();
    else this.#scale();
  }

  /** The axis stands above the lanes, wherever those are; that changes with the width of the page alone. */
  #measure() {
    const lane = this.list.spread.querySelector("svg.lane");
    this.lane = lane && lane.getBoundingClientRect();
    if (!lane) return;
    this.left = this.lane.left - this.axis.getBoundingClientRect().left;
    this.#scale();
  }

  #scale() {
    if (!this.lane) return;
    const { left, lane: { width } } = this;
    const marks = [];
    const every = Math.max(1, Math.ceil((AXIS_LABEL * this.end) / (this.step * width))); // no label over another
    for (let at = 0; at <= this.end; at += this.step * every)
      marks.push(svg("text", { x: left + (width * at) / this.end + 2, y: 14 }, duration(at)));
    this.axis.replaceChildren(svg("svg", {}, ...marks));
  }

  #row(position) {
    const { store, state } = this;
    const attempts = store.attempts(position, state.version);
    const look = state.phase[position] === BACKOFF ? "nova_tentativa" : STATUS[state.status[position]];
    const name = ticketName(store, position);
    const lane = svg("svg", { class: "lane", viewBox: `0 0 ${WIDE} 28`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const x = (at) => (WIDE * at) / this.end;
    let error = "";
    for (const one of attempts) {
      const until = one.ended ?? this.now;
      const sent = one.sent ?? until;
      if (sent > one.released) lane.append(svg("rect", { class: "owed", x: x(one.released), y: 10, width: Math.max(1, x(sent) - x(one.released)), height: 8, "vector-effect": "non-scaling-stroke" }));
      const began = one.began ?? sent; // where nobody told, time in the queue and with the worker are one bar
      if (began > sent) lane.append(svg("rect", { class: "queued", x: x(sent), y: 9, width: Math.max(1, x(began) - x(sent)), height: 10, "vector-effect": "non-scaling-stroke" }));
      if (one.sent !== null || one.ended !== null)
        lane.append(svg("rect", { class: one.held ? "held" : `f-${one.outcome ?? "em_execucao"}${one.began === undefined && one.n ? " untold" : ""}`, x: x(began), y: 7, width: Math.max(3, x(until) - x(began)), height: 14, rx: 2 }));
      if (one.retry) lane.append(svg("line", { class: "wait", x1: x(one.ended), x2: x(Math.min(one.retry, this.end)), y1: 14, y2: 14, "vector-effect": "non-scaling-stroke" }));
      error = one.outcome === "concluida" ? "" : one.error || error;
    }
    const last = attempts[attempts.length - 1];
    const took = attempts.length ? duration((last.ended ?? this.now) - attempts[0].released) : "";
    const label = el("span", {}, el("span", { class: `s-${look}` }, icon(look)), el("span", { class: "label", title: name }, name), el("span", { class: "hidden" }, t(`status.${look}`)));
    if (state.attempt[position] > 1) label.append(el("span", { class: "tag" }, `×${state.attempt[position]}`));
    const why = el("span", { class: last?.outcome === "ignorada" ? "lane-error skipped" : "lane-error", title: error || null }, error);
    return el("button", { class: "grow", type: "button", onclick: () => this.open(position) }, label, lane, why, el("span", { class: "took" }, took));
  }
}
