// Start × duration: one point a run, its status by colour and shape.
import { duration, moment, number, t } from "./text.js";

const STATUS = ["pendente", "em_execucao", "concluida", "parcial", "erro", "timeout", "cancelada"];
const COLOUR = { pendente: "--wait", em_execucao: "--run", concluida: "--ok", parcial: "--part", erro: "--bad", timeout: "--late", cancelada: "--off" };
const DRAWN_LAST = ["cancelada", "concluida", "pendente", "em_execucao", "parcial", "timeout", "erro"];
const LEFT = 58, BOTTOM = 22, TOP = 8, RIGHT = 14;
const TICKS = [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 360_000_000];

const box = document.querySelector("[data-scatter]");
const canvas = box.querySelector("canvas");
const tip = box.querySelector(".tip");
const note = document.getElementById("scatter-note");
const pen = canvas.getContext("2d");
let data = null;
let places = [];

const SHAPES = {
  pendente: (x, y, r) => pen.arc(x, y, r * 0.8, 0, 7),
  em_execucao: (x, y, r) => polygon(x, y, r, [[-0.8, -1], [1.1, 0], [-0.8, 1]]),
  concluida: (x, y, r) => pen.arc(x, y, r * 0.85, 0, 7),
  parcial: (x, y, r) => pen.arc(x, y, r, Math.PI / 2, (3 * Math.PI) / 2),
  erro: (x, y, r) => polygon(x, y, r * 1.1, [[-1, -1], [1, -1], [1, 1], [-1, 1]]),
  timeout: (x, y, r) => polygon(x, y, r * 1.2, [[-1, -1], [1, -1], [-1, 1], [1, 1]]),
  cancelada: (x, y, r) => polygon(x, y, r * 1.1, [[0, -1], [1, 0], [0, 1], [-1, 0]]),
};

function polygon(x, y, r, points) {
  points.forEach(([dx, dy], index) => (index ? pen.lineTo(x + dx * r, y + dy * r) : pen.moveTo(x + dx * r, y + dy * r)));
  pen.closePath();
}

function draw() {
  if (!data) return;
  const style = getComputedStyle(box);
  const colour = (name) => style.getPropertyValue(name).trim();
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [box.clientWidth, box.clientHeight];
  canvas.width = width * scale;
  canvas.height = height * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = `11px ${style.fontFamily}`;
  const most = Math.max(100, ...data.took), least = Math.max(1, Math.min(...data.took, most / 10));
  const low = Math.log10(least) - 0.1, high = Math.log10(most) + 0.1;
  const x = (at) => LEFT + ((width - LEFT - RIGHT) * (at - data.since)) / (data.now - data.since);
  const y = (took) => height - BOTTOM - ((height - BOTTOM - TOP) * (Math.log10(Math.max(1, took)) - low)) / (high - low);
  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--muted");
  pen.textAlign = "right";
  for (const tick of TICKS) {
    if (Math.log10(tick) < low || Math.log10(tick) > high) continue;
    pen.beginPath();
    pen.moveTo(LEFT, y(tick));
    pen.lineTo(width - RIGHT, y(tick));
    pen.stroke();
    pen.fillText(duration(tick), LEFT - 6, y(tick) + 4);
  }
  const marks = Math.max(1, Math.min(6, Math.floor(width / 200)));
  for (let n = 0; n <= marks; n++) {
    const at = data.since + ((data.now - data.since) * n) / marks;
    pen.textAlign = n === 0 ? "left" : n === marks ? "right" : "center";
    pen.fillText(moment(at, data.now - data.since), x(at), height - 5);
  }
  if (!data.ids.length) {
    pen.textAlign = "center";
    pen.fillText(t("no_points"), width / 2, height / 2);
  }
  places = data.ids.map((id, n) => ({ id, n, x: x(data.start[n]), y: y(data.took[n]), status: STATUS[data.status[n]] }));
  const radius = places.length > 1500 ? 2.6 : 4;
  for (const status of DRAWN_LAST) {
    pen.fillStyle = pen.strokeStyle = colour(COLOUR[status]);
    pen.globalAlpha = status === "concluida" && places.length > 300 ? 0.6 : 0.9;
    for (const place of places) {
      if (place.status !== status) continue;
      pen.beginPath();
      SHAPES[status](place.x, place.y, radius);
      if (status === "pendente") pen.stroke();
      else pen.fill();
    }
  }
  pen.globalAlpha = 1;
  note.textContent = data.more ? t("points_more", { n: number(data.ids.length) }) : t("points", { n: number(data.ids.length) });
}

function near(event) {
  const { left, top } = canvas.getBoundingClientRect();
  const [px, py] = [event.clientX - left, event.clientY - top];
  let best = null, distance = 14 ** 2;
  for (const place of places) {
    const d = (place.x - px) ** 2 + (place.y - py) ** 2;
    if (d < distance) [best, distance] = [place, d];
  }
  return best;
}

canvas.addEventListener("mousemove", (event) => {
  const place = near(event);
  tip.hidden = !place;
  if (!place) return;
  tip.textContent = `${place.id} · ${t(`status.${place.status}`)} · ${duration(data.took[place.n])}`;
  tip.style.left = `${Math.min(place.x + 10, box.clientWidth - 240)}px`;
  tip.style.top = `${Math.max(0, place.y - 34)}px`;
});
canvas.addEventListener("mouseleave", () => (tip.hidden = true));
canvas.addEventListener("click", (event) => {
  const place = near(event);
  if (place) location.assign(`/runs/${encodeURIComponent(place.id)}`);
});

async function look() {
  if (document.hidden) return;
  const answer = await fetch(`/ui/overview/points${box.dataset.query}`).catch(() => null);
  if (!answer?.ok) return;
  data = await answer.json();
  draw();
  box.dataset.ready = "";
}
new ResizeObserver(draw).observe(box);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
look();
setInterval(look, 5000);
