// The journal as sentences, one a line.
import { el, icon } from "./dom.js";
import { ticketName } from "./names.js";
import { duration, number, t } from "./text.js";
import { VirtualList } from "./virtual.js";

const LOOK = { s: "em_execucao", d: "pendente", c: "em_execucao", k: "concluida", a: "nova_tentativa", l: "cancelada", g: "parcial", w: "pendente", q: "cancelada", n: "em_execucao", p: "pendente", u: "nova_tentativa" };

export class Journal {
  constructor(root, store, choose) {
    this.store = store;
    this.count = root.querySelector("[data-journal-count]");
    this.box = root.querySelector("[data-journal]");
    this.seq = 0;
    this.list = new VirtualList(this.box, 26, 384, (index) => this.#row(index, choose));
  }

  show(seq, follow) {
    this.seq = seq;
    if (this.list.count !== this.store.version) this.count.textContent = t("events", { n: number(this.store.version) });
    if (follow) this.list.reveal(seq - 1);
    this.list.show(this.store.version, (row, index) => this.#mark(row, index + 1)); // what happened stays as it is
  }

  #mark(row, seq) {
    row.classList.toggle("here", seq === this.seq);
    row.classList.toggle("after", seq > this.seq);
  }

  #row(index, choose) {
    const row = this.store.rows[index];
    const [seq, at, letter] = row;
    const look = letter === "f" ? row[5] : letter === "x" ? row[4] : letter === "e" ? row[3] : LOOK[letter];
    const say = sentence(this.store, row);
    const line = el(
      "button",
      { class: "jrow", type: "button", role: "listitem", onclick: () => choose(seq) },
      el("span", { class: "seq" }, number(seq)),
      el("span", { class: "at" }, `+${duration(at)}`),
      el("span", { class: `s-${look}` }, icon(look)),
      el("span", { class: "say", title: say }, say),
    );
    this.#mark(line, seq);
    return line;
  }
}

function tickets(store, ranges) {
  let count = 0;
  for (let at = 1; at < ranges.length; at += 2) count += ranges[at];
  return count === 1 ? ticketName(store, ranges[0]) : t("tickets", { n: number(count) });
}

export function sentence(store, row) {
  const letter = row[2];
  switch (letter) {
    case "s":
      return t("ev.s", { n: number(row[3]) });
    case "d":
      return t("ev.d", { what: tickets(store, row[3]), n: row[4] });
    case "c":
      return t("ev.c", { what: tickets(store, row[3]) });
    case "k":
      return t("ev.k", { what: ticketName(store, row[3]) });
    case "a":
      return t("ev.a", { what: ticketName(store, row[3]), n: row[4], cause: t(`cause.${row[5]}`), error: row[7] });
    case "f":
      return t("ev.f", { what: ticketName(store, row[3]), n: row[4], error: row[6] });
    case "l":
      return t("ev.l", { what: ticketName(store, row[3]), n: row[4] });
    case "x":
      return t("ev.x", { what: tickets(store, row[3]), status: t(`status.${row[4]}`), reason: row[5] });
    case "g":
      return t(row[4] ? "ev.g.yes" : "ev.g.no");
    case "q":
      return t("ev.q", { reason: row[3] });
    case "p":
      return t(`ev.p.${row[3]}`, { by: row[4], reason: row[5] });
    case "u":
      return t("ev.u", { n: number(row[3].length), reason: row[4] });
    case "e":
      return t("ev.e", { status: t(`status.${row[3]}`) });
    case "n":
      return t("ev.n", { n: row[4], phase: t(`phase.${row[5]}`), detail: row[6] });
    default:
      return t(`ev.${letter}`);
  }
}
