// The page of one run: reads its journal, follows it, and shows it as it is or as it was.
import { Approval } from "./approval.js";
import { Attempts } from "./attempts.js";
import { Dag } from "./dag.js";
import { el, icon, prose, toast } from "./dom.js";
import { Gantt } from "./gantt.js";
import { Journal } from "./journal.js";
import { Outcome } from "./outcome.js";
import { RunStore, STATUS } from "./run-state.js";
import { remember, Tabs } from "./tabs.js";
import { duration, number, t, time } from "./text.js";
import { why } from "./why.js";

const root = document.querySelector("[data-run]");
const find = (name) => root.querySelector(`[data-${name}]`);
const slider = find("slider");
const panel = document.getElementById("ticket");
const REPLAY_MS = 4000; // a whole replay takes about this long

const asked = new URLSearchParams(location.search); // the link by which the reader came
const tabs = new Tabs(find("tabs"), (name) => {
  remember({ tab: name === "picture" ? null : name });
  if (name === "why") htmx.trigger(document.body, "why");
  if (store) draw(name === "events");
});

let store, dag, gantt, journal, attempted, outcome, consumers;
const approval = new Approval(find("approval"));
let skew = 0; // the server's clock minus ours
let past = null; // the event that is shown; null: the newest
let playing = 0, drawn = 0, ended = false;

const now = () => Date.now() + skew - store.start;
const seen = () => past ?? store.version;

function draw(follow = false) {
  const state = store.seek(seen());
  const at = past === null ? (state.endedAt ?? now()) : state.at;
  dag.show(state);
  gantt.show(state, at);
  journal.show(seen(), follow);
  outcome.show(state, at);
  attempted.show(state, tabs.now === "attempts");
  const status = STATUS[state.run];
  find("status").replaceChildren(el("span", { class: `status s-${status}` }, icon(status), el("span", {}, t(`status.${status}`))));
  for (const one of root.querySelectorAll("[data-when-paused]")) one.hidden = ended || state.paused === null;
  for (const one of root.querySelectorAll("[data-when-going]")) one.hidden = ended || state.paused !== null;
  find("progress").textContent = `${number(state.total - state.open)}/${number(state.total)}`;
  slider.max = store.version;
  slider.value = seen();
  const text = t("at", { n: number(seen()), total: number(store.version), time: time(store.start + state.at) });
  find("at").textContent = text;
  slider.setAttribute("aria-valuetext", text);
  root.querySelector(".replay").classList.toggle("past", past !== null);
  find("live").hidden = past === null;
  root.dataset.version = seen();
  approval.show(state, past === null);
  askWaits();
  tick();
  drawn = performance.now();
}

/** The forms of what the run waits for, when that has changed. */
let waits = "";
function askWaits() {
  if (past !== null) return;
  const held = store.held();
  if (held !== waits) htmx.trigger(document.body, "waits");
  waits = held;
}

/** What changes with the clock alone. */
function tick() {
  const { state } = store;
  const at = past === null ? (state.endedAt ?? now()) : state.at;
  find("took").textContent = duration(at);
  const said = why(store, state, at, past === null ? consumers : null);
  find("why").hidden = !said?.text;
  find("why").replaceChildren(...prose(said?.text ?? ""));
  find("why").classList.toggle("warn", Boolean(said?.warn));
}

let waiting;
function soon() {
  waiting ??= requestAnimationFrame(() => {
    waiting = undefined;
    draw();
  });
}

function look(seq, follow = true) {
  past = seq >= store.version ? null : Math.max(1, seq);
  draw(follow);
  link();
  if (!playing) remember({ at: past });
}

function link(state = link.state) {
  link.state = state;
  const shown = past !== null ? "past" : state;
  find("link").className = `link-state ${shown}`;
  find("link").textContent = t(`link.${shown}`);
}

// -- live ---------------------------------------------------------------------------------------------------------------
function take(rows) {
  const before = store.version;
  const total = store.total;
  if (!store.add(rows)) return false;
  if (store.version > before) soon();
  if (store.total > total) redraw();
  return true;
}

/** The plan has grown. */
async function redraw() {
  const { drawing } = await read(store.version, "&drawing");
  dag = new Dag(find("dag"), drawing, choose, "readable");
  soon();
}

function follow() {
  const source = new EventSource(`${root.dataset.stream}?after=${store.version}`);
  const again = () => {
    source.close();
    setTimeout(follow, 1000);
  };
  source.addEventListener("open", () => link("live"));
  source.addEventListener("rows", (event) => take(JSON.parse(event.data)) || again());
  source.addEventListener("fim", () => {
    source.close();
    finish();
    htmx.trigger(document.body, "documents");
  });
  source.addEventListener("error", () => {
    link("lost");
    if (source.readyState === EventSource.CLOSED) again();
  });
}

function finish() {
  ended = true;
  link("ended");
  for (const one of root.querySelectorAll("[data-when-final]")) one.hidden = false;
  for (const one of root.querySelectorAll("[data-when-open]")) one.hidden = true;
}

// -- one ticket -----------------------------------------------------------------------------------------------------------
async function openTicket(position) {
  panel.hidden = false;
  const failed = store.failures(position, seen()).slice(-20);
  await htmx.ajax("GET", `${root.dataset.tickets}/${position}?at=${failed.join(",")}`, "#ticket-body");
  remember({ ticket: panel.querySelector("[data-ticket-id]")?.dataset.ticketId ?? null });
  panel.querySelector("[data-close-panel]")?.focus();
}

function attempts(box) {
  const position = Number(box.dataset.ticketAttempts);
  const rows = store.attempts(position, seen()).map((one, index, all) => {
    const before = all[index - 1];
    const reason = one.n === 0 ? one.error : before ? t("because", { n: before.n, cause: `${t(`cause.${before.cause}`)}. ${before.error}` }) : t("first");
    const took = one.ended === null ? "…" : duration(one.ended - (one.sent ?? one.released));
    const outcome = one.outcome ? t(`status.${one.outcome}`) : t("status.em_execucao");
    return el(
      "tr", {},
      el("td", {}, one.n || "—"),
      el("td", {}, reason),
      el("td", {}, `+${duration(one.released)}`),
      el("td", {}, took),
      el("td", { class: `s-${one.outcome ?? "em_execucao"}` }, outcome),
    );
  });
  const heads = ["attempt", "why", "sent", "took", "outcome"].map((name) => el("th", { scope: "col" }, t(`col.${name}`)));
  box.replaceChildren(el("table", { class: "attempts" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
}

document.body.addEventListener("htmx:afterSwap", (event) => {
  for (const box of event.detail.target.querySelectorAll("[data-ticket-attempts]")) attempts(box);
});
function closePanel() {
  panel.hidden = true;
  remember({ ticket: null });
}
panel.addEventListener("click", (event) => event.target.closest("[data-close-panel]") && closePanel());

// -- replay ----------------------------------------------------------------------------------------------------------------
function stop() {
  clearInterval(playing);
  playing = 0;
  find("play").replaceChildren(icon("play"));
  remember({ at: past });
}

function play() {
  if (playing) return stop();
  if (past === null) look(1);
  const step = Math.max(1, Math.round(store.version / (REPLAY_MS / 50)));
  const pause = Math.max(50, Math.min(400, REPLAY_MS / store.version));
  find("play").replaceChildren(icon("pause"));
  playing = setInterval(() => {
    if (past === null) stop();
    else look(past + step);
  }, pause);
}

slider.addEventListener("input", () => look(Number(slider.value)));
find("play").addEventListener("click", play);
find("live").addEventListener("click", () => {
  stop();
  look(Infinity);
});
for (const button of root.querySelectorAll("[data-step]")) button.addEventListener("click", () => look(seen() + Number(button.dataset.step)));
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog, [role=button], button, summary, a") || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowLeft") look(seen() - 1);
  else if (event.key === "ArrowRight") look(seen() + 1);
  else if (event.key === " ") {
    event.preventDefault();
    play();
  }
});
document.addEventListener("keydown", (event) => event.key === "Escape" && !panel.hidden && closePanel());
root.querySelector("[data-copy-link]").addEventListener("click", () => {
  navigator.clipboard?.writeText(location.href).then(() => toast(t("copied")));
});

// -- begin -------------------------------------------------------------------------------------------------------------------
async function read(after, more = "") {
  for (;;) {
    const answer = await fetch(`${root.dataset.data}?after=${after}${more}`).catch(() => null);
    if (answer?.ok) return answer.json();
    link("lost");
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

let chosen = null;
function choose(node) {
  chosen = chosen === node ? null : node;
  if (node.count === 1) openTicket(node.members[0]);
  dag.choose(node.count === 1 ? null : chosen);
  gantt.only(node.count === 1 ? null : chosen);
}

async function begin() {
  const first = await read(0);
  skew = first.now - Date.now();
  consumers = first.consumers;
  store = new RunStore(first);
  dag = new Dag(find("dag"), first.drawing, choose, "readable");
  gantt = new Gantt(root, store, openTicket, (filter) => remember({ filter: filter === "all" ? null : filter }));
  gantt.filter = root.querySelector(`[data-filter="${CSS.escape(asked.get("filter") ?? "all")}"]`)?.dataset.filter ?? "all";
  attempted = new Attempts(find("attempts"), root.querySelector('[data-tab-count="attempts"]'), store, openTicket);
  outcome = new Outcome(find("outcome"), store, openTicket, (filter) => {
    tabs.show("picture");
    gantt.choose(filter);
    gantt.box.scrollIntoView({ block: "center" });
  });
  journal = new Journal(root, store, (seq) => look(seq, false));
  if (asked.has("tab")) tabs.show(asked.get("tab"));
  draw();
  root.dataset.ready = "";
  let more = first.more;
  while (more) {
    const page = await read(store.version);
    take(page.events);
    more = page.more;
  }
  htmx.trigger(document.body, "documents");
  if (Number(asked.get("at")) > 0) look(Number(asked.get("at")));
  if (root.dataset.ticket) openTicket(root.dataset.ticket);
  if (store.seek(store.version).endedAt === null) follow();
  else finish();
  setInterval(() => {
    if (document.hidden || ended || past !== null) return;
    if (performance.now() - drawn > 900) gantt.show(store.state, now());
    tick();
  }, 500);
}
begin();
