// What every page has: times, copying, dialogs, keys, and the token of the session on every request.
import { el, toast } from "./dom.js";
import { openPalette } from "./palette.js";
import { absolute, moment, relative, t, time } from "./text.js";

// -- times ------------------------------------------------------------------------------------------------------------
function showTimes(root = document) {
  for (const one of root.querySelectorAll("time[data-when]")) {
    const at = Date.parse(one.dateTime);
    one.textContent = relative(at);
    one.title = absolute(at);
    if (one.closest(".why-decisions")) one.textContent = time(at);
    if (one.closest(".facts, .run-facts")) one.textContent = `${absolute(at)} · ${relative(at)}`;
  }
  for (const one of root.querySelectorAll("time[data-axis]")) one.textContent = moment(Number(one.dateTime), Number(one.dataset.span));
}
// Where the names of pages do not all fit, the one that is open is in sight.
const here = document.querySelector(".nav [aria-current]");
if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 48;

showTimes();
setInterval(() => document.hidden || showTimes(), 5000);

// -- htmx -------------------------------------------------------------------------------------------------------------
const body = document.body;
body.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = document.querySelector("meta[name=csrf]").content;
});
body.addEventListener("htmx:beforeRequest", (event) => {
  const polled = /every/.test(event.detail.elt.getAttribute("hx-trigger") ?? "");
  if (polled && document.hidden) event.preventDefault();
});
body.addEventListener("htmx:afterSwap", (event) => {
  showTimes(event.detail.target);
  const dialog = document.getElementById("dialog");
  if (event.detail.target.id === "dialog-body" && !dialog.open) dialog.showModal();
});
body.addEventListener("htmx:responseError", (event) => {
  let why = event.detail.xhr.statusText;
  try {
    why = JSON.parse(event.detail.xhr.responseText).detail;
  } catch {
    // not a problem document
  }
  if (event.detail.requestConfig.verb !== "get") toast(t("request_failed", { why }));
});

body.addEventListener("htmx:sendError", (event) => {
  const polled = /every|documents/.test(event.detail.elt.getAttribute("hx-trigger") ?? "");
  if (!polled) toast(t("not_sent"));
  heartbeat();
});

// -- connection ---------------------------------------------------------------------------------------------------------
const BEAT_MS = 2500, ANSWER_MS = 2000; // a lost connection is seen within their sum
let lostAt = null;

function connected(yes) {
  if (yes === (lostAt === null)) return;
  lostAt = yes ? null : Date.now();
  const banner = document.getElementById("offline");
  banner.hidden = yes;
  banner.querySelector("span").textContent = yes ? "" : t("offline", { time: time(lostAt) });
  document.documentElement.toggleAttribute("data-offline", !yes);
}

async function heartbeat() {
  if (document.hidden) return;
  try {
    connected((await fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) })).status < 500);
  } catch {
    connected(false);
  }
}
setInterval(heartbeat, BEAT_MS);
document.addEventListener("visibilitychange", heartbeat);

// -- clicks -----------------------------------------------------------------------------------------------------------
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "hidden" });
    area.value = text;
    body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(t("copied"));
}

body.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  if (at("[data-copy]")) copy(at("[data-copy]").dataset.copy);
  else if (at("[data-help]")) document.getElementById("help").showModal();
  else if (at("[data-palette]")) openPalette();
  else if (at("[data-dismiss]")) at(".flash").remove();
  else if (at("dialog [data-cancel]")) {
    event.preventDefault();
    at("dialog").close();
  }
});

// -- keys -------------------------------------------------------------------------------------------------------------
const PLACES = { o: "/", r: "/runs", d: "/dead-letters", w: "/workers", n: "/new" };
let going = 0;

function move(step) {
  const rows = [...document.querySelectorAll("[data-rows] [data-row]")];
  if (!rows.length) return;
  const here = rows.findIndex((row) => row.classList.contains("here"));
  rows[here]?.classList.remove("here");
  const row = rows[Math.min(rows.length - 1, Math.max(0, here + step))];
  row.classList.add("here");
  row.querySelector("[data-open-row]").focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    return openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input:not([type=checkbox], [type=range]), textarea, select")) return;
  const key = event.key;
  if (Date.now() - going < 1500 && key in PLACES) {
    going = 0;
    location.assign(PLACES[key]);
  } else if (key === "/") {
    event.preventDefault();
    document.getElementById("search")?.focus();
  } else if (key === "?") document.getElementById("help").showModal();
  else if (key === "j") move(1);
  else if (key === "k") move(-1);
  else if (key === "n") location.assign("/new");
  else if (key === "g") going = Date.now();
  else if (key === "x") document.querySelector("tr.here input[type=checkbox]")?.click();
});

// Everything that keys and clicks need is there.
document.documentElement.dataset.ready = "";
