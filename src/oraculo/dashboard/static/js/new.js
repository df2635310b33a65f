// The form over the editor: the text is the truth; the form shows it and writes it.
import { Dag } from "./dag.js";
import { el, icon } from "./dom.js";
import { t } from "./text.js";

const text = document.getElementById("text");
const body = document.querySelector("[data-form-body]");
const preview = document.getElementById("preview");
const card = document.querySelector("[data-form]");
const templates = JSON.parse(document.getElementById("templates").textContent);
let request = null;

document.querySelector("[data-templates]").hidden = false;

function write() {
  text.value = JSON.stringify(request, null, 2);
  htmx.trigger(text, "preview");
}

function set(owner, key, value) {
  if (value === undefined || value === "") delete owner[key];
  else owner[key] = value;
  write();
}

/** One labelled input; `path` is how the server names it when it finds a fault there. */
function field(label, path, value, change, attributes = {}) {
  const input = el(attributes.rows ? "textarea" : "input", { "data-path": path, spellcheck: "false", autocomplete: "off", ...attributes });
  input.value = value ?? "";
  input.addEventListener("input", () => change(input.value, input));
  const fault = el("span", { class: "fault", "data-fault": path, id: `fault-${path}` });
  input.setAttribute("aria-describedby", fault.id);
  return el("label", { class: `field${attributes.rows ? " full" : ""}` }, el("span", {}, label), input, fault);
}

const asNumber = (value) => (value.trim() === "" ? undefined : Number.isNaN(Number(value)) ? value : Number(value));

function parameters(owner, path) {
  const change = (value, input) => {
    const fault = input.nextSibling;
    try {
      owner.parametros = value.trim() ? JSON.parse(value) : {};
      fault.textContent = "";
      input.removeAttribute("aria-invalid");
      write();
    } catch {
      fault.textContent = t("form.not_json");
      input.setAttribute("aria-invalid", "true");
    }
  };
  return field(t("form.parameters"), `${path}.parametros`, JSON.stringify(owner.parametros ?? {}), change, { rows: 1, class: "code" });
}

function tasks(list, key, label, options) {
  return (request[list] ?? []).map((task, index) => {
    const path = `${list}.${index}`;
    const remove = el("button", { type: "button", class: "button small ghost", "aria-label": t("form.remove"), title: t("form.remove") }, icon("close"));
    remove.addEventListener("click", () => {
      request[list].splice(index, 1);
      write();
      show();
    });
    return el(
      "div", { class: "task" },
      field(label, `${path}.${key}`, task[key], (value) => set(task, key, value || ""), { list: options }),
      field(t("form.timeout"), `${path}.timeout_s`, task.timeout_s, (value) => set(task, "timeout_s", asNumber(value)), { inputmode: "decimal" }),
      field(t("form.attempts"), `${path}.max_tentativas`, task.max_tentativas, (value) => set(task, "max_tentativas", asNumber(value)), { inputmode: "numeric" }),
      remove,
      parameters(task, path),
    );
  });
}

function add(list, key, label) {
  const button = el("button", { type: "button", class: "button small" }, icon("plus"), el("span", {}, label));
  button.addEventListener("click", () => {
    (request[list] ??= []).push({ [key]: "", parametros: {} });
    write();
    show();
    body.querySelectorAll(`[data-path^="${list}."][data-path$=".${key}"]`).item((request[list].length - 1))?.focus();
  });
  return button;
}

function whole() {
  const mode = el("select", { "data-path": "fan_in.modo" }, ...["todos", "quorum", "primeiro"].map((name) => el("option", { value: name }, t(`form.${name}`))));
  mode.value = request.fan_in?.modo ?? "todos";
  mode.addEventListener("change", () => {
    request.fan_in = mode.value === "quorum" ? { modo: "quorum", minimo: 1 } : { modo: mode.value };
    write();
    show();
  });
  const notify = (key) => (value) => {
    const kept = { ...request.notificar };
    if (value) kept[key] = value;
    else delete kept[key];
    set(request, "notificar", Object.keys(kept).length ? kept : undefined);
  };
  const parts = [
    field(t("form.total"), "timeout_s", request.timeout_s, (value) => set(request, "timeout_s", asNumber(value)), { inputmode: "decimal" }),
    el("label", { class: "field" }, el("span", {}, t("form.fan_in")), mode, el("span", { class: "fault", "data-fault": "fan_in.modo" })),
  ];
  if (mode.value === "quorum") parts.push(field(t("form.quorum"), "fan_in.minimo", request.fan_in.minimo, (value) => set(request.fan_in, "minimo", asNumber(value)), { inputmode: "numeric" }));
  parts.push(
    field(t("form.id"), "correlation_id", request.correlation_id, (value) => set(request, "correlation_id", value)),
    field(t("form.webhook"), "notificar.webhook", request.notificar?.webhook, notify("webhook")),
    field(t("form.queue"), "notificar.fila", request.notificar?.fila, notify("fila")),
  );
  return el("div", { class: "pair" }, ...parts);
}

const isList = (value) => value === undefined || (Array.isArray(value) && value.every((one) => one && typeof one === "object" && !Array.isArray(one)));

const PLAN_WORDS = ["tarefas", "tasks", "tipo", "type", "collects", "executes"];

/** The form knows requests of two stages in Portuguese words; of all else the text alone is the editor. */
function show() {
  const isText = request === null && !text.value.trimStart().startsWith("{");
  card.hidden = isText || PLAN_WORDS.some((word) => request && word in request);
  if (card.hidden) return faults();
  if (!request || typeof request !== "object" || Array.isArray(request) || !isList(request.coletas) || !isList(request.execucoes)) {
    body.replaceChildren(el("p", { class: "muted" }, t("form.unreadable")));
    return;
  }
  body.replaceChildren(
    el("h3", {}, t("form.collect")), ...tasks("coletas", "fonte", t("form.source"), "sources"), add("coletas", "fonte", t("form.add_collect")),
    el("h3", {}, t("form.execute")), ...tasks("execucoes", "executador", t("form.executor"), "executors"), add("execucoes", "executador", t("form.add_execute")),
    el("h3", {}, t("form.whole")), whole(),
  );
  faults();
}

function read() {
  try {
    request = JSON.parse(text.value);
  } catch {
    request = null;
  }
  show();
}

/** What the server found is said again beside the field it is about. */
function faults() {
  const found = new Map([...preview.querySelectorAll("[data-field]")].map((one) => [one.dataset.field, one.textContent.replace(one.dataset.field, "").trim()]));
  for (const place of body.querySelectorAll("[data-fault]")) {
    const text = found.get(place.dataset.fault) ?? "";
    const input = place.previousSibling;
    if (input.hasAttribute("aria-invalid") && place.textContent === t("form.not_json")) continue;
    place.textContent = text;
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
  document.querySelector("[data-send]").disabled = found.size > 0;
}

function picture() {
  const box = preview.querySelector("[data-drawing]");
  if (box) new Dag(box, JSON.parse(box.dataset.drawing), null).show(null);
  faults();
}

/** Put the caret where a fault is. */
function jump(line, column) {
  const lines = text.value.split("\n");
  const at = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
  text.focus();
  text.setSelectionRange(at, at + 1);
  text.scrollTop = (text.scrollHeight / lines.length) * Math.max(0, line - 4);
}

text.addEventListener("input", read);
preview.addEventListener("click", (event) => {
  const place = event.target.closest("[data-line]");
  if (place) jump(Number(place.dataset.line), Number(place.dataset.column));
});
document.querySelector("[data-template]").addEventListener("change", (event) => {
  if (!event.target.value) return;
  text.value = templates[event.target.value];
  read();
  htmx.trigger(text, "preview");
});
document.body.addEventListener("htmx:afterSwap", (event) => event.detail.target === preview && picture());
document.querySelector("[data-task-type]")?.addEventListener("change", (event) => {
  if (!event.target.value) return;
  request = { tipo: event.target.value, parametros: {} };
  write();
  show();
});
read();
picture();
