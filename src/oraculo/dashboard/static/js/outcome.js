// Below the title: how the run ended and what went wrong first, as of the moment that is shown.
import { el, icon } from "./dom.js";
import { ticketName } from "./names.js";
import { STATUS } from "./run-state.js";
import { duration, number, t } from "./text.js";

const BAD = new Set(["erro", "timeout"]);

/** The first row that says that a ticket failed for good, looked for once: rows are only ever added. */
class FirstFailure {
  constructor(store) {
    this.store = store;
    this.read = 0;
    this.found = null;
    this.closed = null;
  }

  /** [position, error, event number] after `seq` events, or null. */
  at(seq) {
    const { rows } = this.store;
    for (; this.read < rows.length && !this.found; this.read++) {
      const row = rows[this.read];
      if (row[2] === "f") this.found = [row[3], row[6], row[0]];
      else if (row[2] === "x" && BAD.has(row[4])) this.closed ??= [row[3][0], row[5], row[0]];
    }
    const first = this.found ?? this.closed;
    return first && first[2] <= seq ? first : this.closed && this.closed[2] <= seq ? this.closed : null;
  }
}

export class Outcome {
  constructor(box, store, open, filter) {
    this.box = box;
    this.open = open;
    this.filter = filter;
    this.first = new FirstFailure(store);
    this.store = store;
  }

  show(state, at) {
    let failed = 0;
    for (let position = 0; position < state.total; position++) if (BAD.has(STATUS[state.status[position]])) failed += 1;
    const first = failed ? this.first.at(state.version) : null;
    const key = `${state.endedAt} ${failed} ${first?.[2]} ${state.endedAt === null ? "" : state.run}`;
    if (key === this.key) return;
    this.key = key;
    const ended = state.endedAt !== null;
    this.box.hidden = !ended && !failed;
    const status = ended ? STATUS[state.run] : failed ? "erro" : "em_execucao";
    this.box.className = `outcome s-${status}`;
    const said = ended ? [el("strong", {}, t("outcome.ended", { status: t(`status.${status}`), took: duration(at) }))] : [];
    if (failed) said.push(el("span", {}, t("outcome.failed", { n: number(failed), total: number(state.total) })));
    const lines = [el("div", { class: "outcome-line" }, icon(status), ...said)];
    if (first) {
      const [position, error] = first;
      lines.push(
        el("div", { class: "outcome-line" },
          el("span", { class: "muted" }, t("outcome.first")),
          el("button", { type: "button", class: "link", onclick: () => this.open(position) }, ticketName(this.store, position)),
          el("span", { class: "outcome-error" }, error),
          failed > 1 ? el("button", { type: "button", class: "button small", onclick: () => this.filter("failed") }, t("outcome.all", { n: number(failed) })) : null),
      );
    }
    this.box.replaceChildren(...lines);
  }
}
