// The journal as sentences, one a line.
import { el, icon } from "./dom.js";
import { ticketName } from "./names.js";
import { duration, number, t } from "./text.js";
import { VirtualList } from "./virtual.js";

const LOOK = { s: "em_execucao", R: "em_execucao", j: "concluida", d: "pendente", c: "em_execucao", k: "concluida", a: "nova_tentativa", l: "cancelada", o: "erro", g: "porta", w: "pendente", y: "pendente", v: "em_execucao", q: "cancelada", z: "pendente", n: "em_execucao", p: "pendente", b: "em_execucao", i: "em_execucao", h: "em_execucao", u: "nova_tentativa" };

export class Journal {
  constructor(root, store, choose) {
    this.store = store;
    this.count = root.querySelector("[data-journal-count]");
    this.badge = root.querySelector('[data-tab-count="events"]');
    this.box = root.querySelector("[data-journal]");
    this.seq = 0;
    const tall = matchMedia("(max-width: 48rem)").matches; // on a phone a sentence has two lines
    this.box.classList.toggle("tall", tall);
    this.list = new VirtualList(this.box, tall ? 44 : 26, 384, (index) => this.#row(index, choose));
  }

  show(seq, follow) {
    this.seq = seq;
    if (this.list.count !== this.store.version) {
      this.count.textContent = t("events", { n: number(this.store.version) });
      this.badge.textContent = number(this.store.version);
    }
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
    const look = letter === "f" || letter === "t" ? row[5] : letter === "x" || letter === "m" ? row[4] : letter === "e" ? row[3] : LOOK[letter];
    const say = sentence(this.store, row);
    const line = el(
      "button",
      { class: "jrow", type: "button", onclick: () => choose(seq) },
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

/** Who caused it stands behind all else, as an object. */
function actorOf(row) {
  const last = row[row.length - 1];
  return last !== null && typeof last === "object" && !Array.isArray(last) ? last.ator : null;
}

export function sentence(store, row) {
  const actor = actorOf(row);
  return actor === null ? said(store, row) : `${said(store, row)} · ${actor}`;
}

function said(store, row) {
  const letter = row[2];
  switch (letter) {
    case "s":
      return t("ev.s", { n: number(row[3]) });
    case "d":
      return t("ev.d", { what: tickets(store, row[3]), n: row[4] });
    case "R":
      return t("ev.R", { n: number(row[3]) });
    case "j":
      return t("ev.j", { what: tickets(store, row[3]) });
    case "c":
      return t("ev.c", { what: tickets(store, row[3]) });
    case "k":
      return t("ev.k", { what: ticketName(store, row[3]) });
    case "C":
      return t("ev.C", { what: ticketName(store, row[3]), status: t(`status.${row[5]}`) });
    case "!":
      return t("ev.children", { what: tickets(store, row[3]) });
    case "a":
      return t("ev.a", { what: ticketName(store, row[3]), n: row[4], cause: t(`cause.${row[5]}`), error: row[7] });
    case "f":
      return t("ev.f", { what: ticketName(store, row[3]), n: row[4], error: row[6] });
    case "l":
    case "o":
    case "r":
      return t(`ev.${letter}`, { what: ticketName(store, row[3]), n: row[4] });
    case "W":
      return t("ev.W", { what: ticketName(store, row[3]), n: row[4], worker: row[8], cause: t(`cause.${row[5]}`) });
    case "x":
      return t("ev.x", { what: tickets(store, row[3]), status: t(`status.${row[4]}`), reason: row[5] });
    case "g":
      return t(row[4] ? "ev.g.yes" : "ev.g.no");
    case "y":
      return row[4] ? t("ev.y.output") : t("ev.y", { what: tickets(store, row[3]) });
    case "v":
      return t("ev.v", { n: number(row[3]) });
    case "b":
      if (typeof row[8] === "number") return t("ev.b.round", { what: ticketName(store, row[3]), n: number(row[8]) });
      return t("ev.b", { what: ticketName(store, row[3]), n: number(row[5]), total: number(row[6]) });
    case "m":
    case "L":
      return t(`ev.${letter}`, { what: ticketName(store, row[3]), status: t(`status.${row[4]}`), reason: row[5] });
    case "P":
      return t(`ev.P.${row[3]}`, { what: tickets(store, row[4]) });
    case "V":
      return t(row[5] ? "ev.V.refused" : row[6] ? "ev.V.said" : "ev.V", { point: t(`point.${row[3]}`), n: number(row[4]), refused: number(row[5]), said: row[6], version: row[7] });
    case "A":
      return t("ev.A", { what: ticketName(store, row[3]), n: row[4] });
    case "G":
      return t(row[8].length ? "ev.G" : "ev.G.alone", {
        what: ticketName(store, row[3]),
        n: row[4],
        worker: row[5],
        how: t(`method.${row[6]}`),
        score: row[7],
        others: row[8].map(([name, score, why]) => `${name} (${score}): ${t(`notchosen.${why}`)}`).join("; "),
      });
    case "z":
      return t(`ev.z.${row[3] ? "paused" : "resumed"}${row[4] ? ".because" : ""}`, { reason: row[4] });
    case "N":
      return t(`ev.N${row[4] ? ".because" : ""}`, { n: row[3], reason: row[4] });
    case "q":
      return t("ev.q", { reason: row[3] });
    case "i":
      return row[4] === null ? t("ev.i.kept", { name: row[3] }) : t("ev.i", { name: row[3], what: ticketName(store, row[4]) });
    case "h":
      return t("ev.h", { what: ticketName(store, row[3]) });
    case "t":
      return t(`ev.t.${row[4]}`, { what: ticketName(store, row[3]) });
    case "p":
      if (typeof row[6] === "number") return t(`ev.p.task.${row[3]}`, { what: ticketName(store, row[6]), by: row[4], reason: row[5] });
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
