// The picture of a plan. Where everything goes was decided on the server; here it is drawn and coloured.
import { svg } from "./dom.js";
import { BACKOFF, each, STATUS, WAITING } from "./run-state.js";
import { number, t } from "./text.js";
import { Zoom } from "./zoom.js";

const LETTERS = 27;
const WORST = ["erro", "timeout", "nova_tentativa", "em_execucao", "pendente", "cancelada", "ignorada", "concluida"];

const cut = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

function edge(from, to) {
  const [x1, y1, x2, y2] = [from.x + from.w, from.y + from.h / 2, to.x, to.y + to.h / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return svg("path", { class: to.kind === "desfaz" ? "edge undo" : "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
}

function name(node) {
  if (node.gate !== null) return t(`gate.${node.label}`, { needed: number(node.needed), inputs: number(node.inputs) });
  if (node.queues > 1) return t("queues", { n: number(node.queues) });
  return node.kind === "desfaz" ? t("undoes", { what: node.label }) : node.label;
}

export class Dag {
  /** `size` is how large it begins: "fit", "readable" (fitted, but never too small to read), or a number. */
  constructor(box, drawing, choose, size = "fit") {
    const { width, height, nodes, edges } = drawing;
    const picture = svg("svg", { class: "dag", width, height, viewBox: `0 0 ${width} ${height}`, role: "group" });
    this.parts = nodes.map((node) => ({ node, ...this.#draw(node, choose) }));
    this.edges = edges.map(([from, to]) => ({ to: nodes[to], path: edge(nodes[from], nodes[to]) }));
    picture.append(...this.edges.map((one) => one.path), ...this.parts.map((part) => part.group));
    box.replaceChildren(picture);
    this.zoom = new Zoom(box, picture, size, nodes);
  }

  #draw(node, choose) {
    const { x, y, w, h } = node;
    const group = svg("g", { class: `node ${node.kind}`, transform: `translate(${x} ${y})` });
    const title = svg("title", {}, name(node));
    group.append(title);
    if (node.gate !== null) {
      const sub = svg("text", { class: "sub", x: w / 2, y: h / 2 + 15 });
      const label = svg("text", { x: w / 2, y: h / 2 + 1 }, t(`gate.name.${node.label}`));
      group.append(svg("rect", { class: "box", width: w, height: h, rx: h / 2 }), label, sub);
      const chooses = node.label === "quorum" || node.label === "primeiro";
      sub.textContent = chooses ? name(node) : node.inputs > 1 ? number(node.inputs) : "";
      return { group, sub, title };
    }
    const many = node.count > 1;
    if (many) group.append(svg("rect", { class: "back", x: 5, y: 5, width: w, height: h, rx: 9 }));
    const mark = svg("svg", { class: "mark icon", x: 12, y: 13, width: 16, height: 16, viewBox: "0 0 16 16" }, svg("use", { href: "#i-pendente" }));
    const sub = svg("text", { class: "sub", x: 36, y: 43 });
    group.append(svg("rect", { class: "box", width: w, height: h, rx: 9 }), mark, svg("text", { x: 36, y: 25 }, cut(name(node))), sub);
    const bars = STATUS.map((status) => svg("rect", { class: `f-${status}`, x: 12, y: h - 10, height: 4, width: 0 }));
    group.append(svg("rect", { class: "track", x: 12, y: h - 10, width: w - 24, height: 4, rx: 2 }), ...bars);
    if (choose) {
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      const go = () => choose(node);
      group.addEventListener("click", go);
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          go();
        }
      });
    }
    return { group, sub, title, mark, bars };
  }

  /** Without a state: the plan alone. */
  show(state) {
    this.#grow(state);
    for (const part of this.parts) {
      if (part.later) continue;
      if (part.node.gate !== null) this.#gate(part, state);
      else this.#node(part, state);
    }
  }

  /** What undoes others is there from the moment on at which it was decided. Gates among them go with what they hold. */
  #grow(state) {
    if (!state || this.total === state.total) return;
    this.total = state.total;
    const later = new Set();
    for (const part of this.parts) {
      part.later = part.node.gate === null ? part.node.members[0] >= state.total : part.node.from >= state.total;
      part.group.classList.toggle("later", part.later);
      if (part.later) later.add(part.node);
    }
    for (const one of this.edges) one.path.classList.toggle("later", later.has(one.to));
  }

  choose(node) {
    for (const part of this.parts) part.group.classList.toggle("chosen", part.node === node);
  }

  #gate(part, state) {
    const passed = state?.gates.get(part.node.gate);
    const word = passed === undefined ? "" : passed ? t("passed") : t("blocked");
    part.group.classList.toggle("n-concluida", passed === true);
    part.group.classList.toggle("n-erro", passed === false);
    part.title.textContent = `${t("gate", { mode: name(part.node) })} ${word}`;
  }

  #node(part, state) {
    const { node } = part;
    const counts = new Array(STATUS.length).fill(0);
    const folded = (node.kind === "mapa" || node.kind === "repete") && node.count > 1; // and behind it its items or rounds
    let retrying = 0, attempts = 0, started = 0, seen = 0;
    if (state)
      each(node.members, (position) => {
        if (position >= state.total || (folded && position === node.members[0])) return;
        seen += 1;
        counts[state.status[position]] += 1;
        if (state.phase[position] === BACKOFF) retrying += 1;
        if (state.phase[position] !== WAITING) started += 1;
        if (state.attempt[position] > attempts) attempts = state.attempt[position];
      });
    const own = folded && state ? STATUS[state.status[node.members[0]]] : null;
    const found = own ?? WORST.find((status) => (status === "nova_tentativa" ? retrying : counts[STATUS.indexOf(status)])) ?? "pendente";
    if (part.look !== found) {
      part.group.classList.remove(`n-${part.look}`);
      part.group.classList.add(`n-${found}`);
      part.mark.setAttribute("class", `mark icon s-${found}`);
      part.mark.firstChild.setAttribute("href", `#i-${found}`);
      part.look = found;
      this.zoom.paint(part.node, found);
    }
    const text = !state
      ? node.count > 1 && !folded ? t("tickets", { n: number(node.count) }) : ""
      : node.count > 1 && seen
        ? STATUS.map((status, code) => (counts[code] ? `${number(counts[code])} ${t(`status.${status}`)}` : "")).filter(Boolean).join(" · ")
        : t(node.kind === "espera" && found === "em_execucao" ? "waits" : `status.${found}`) + (attempts > 1 ? ` · ${t("attempt", { n: attempts })}` : "");
    part.sub.textContent = text.length > 34 ? `${text.slice(0, 33)}…` : text;
    part.title.textContent = `${name(node)}: ${text}`;
    let x = 12;
    const whole = node.w - 24;
    part.bars.forEach((bar, code) => {
      const width = started || code ? (whole * counts[code]) / (seen || 1) : 0;
      bar.setAttribute("x", x);
      bar.setAttribute("width", code ? width : 0);
      if (code) x += width;
    });
  }
}
