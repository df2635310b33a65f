// The size of a picture that may be larger than its box: fitted, whole, or anything between. The box scrolls.
import { el, svg } from "./dom.js";
import { number, t } from "./text.js";

const SMALLEST = 0.05, LARGEST = 3, STEP = 1.25, READABLE = 0.6;
const MAP_WIDTH = 180, MAP_HEIGHT = 90;
const modes = new WeakMap(); // by the element that holds the box, which outlives what is drawn anew

export class Zoom {
  /** `mode` is how it begins: "fit", "readable", or a number. A picture that takes the place of another keeps what was
   * chosen. `nodes` are drawn into a small map of the whole, where that does not fit. */
  constructor(box, picture, mode, nodes) {
    this.box = box;
    this.picture = picture;
    this.width = Number(picture.getAttribute("width"));
    this.height = Number(picture.getAttribute("height"));
    this.holder = box.parentElement;
    this.mode = modes.get(this.holder) ?? mode;
    this.told = el("output", { class: "muted", "aria-live": "polite" });
    const button = (key, sign, go) => el("button", { type: "button", class: "button small", title: t(key), "aria-label": t(key), onclick: go }, sign);
    const bar = el(
      "div", { class: "zoom", role: "group", "aria-label": t("zoom") },
      button("zoom.out", "−", () => this.to(this.scale / STEP)),
      button("zoom.in", "+", () => this.to(this.scale * STEP)),
      button("zoom.fit", t("zoom.fit"), () => this.to("fit")),
      button("zoom.whole", t("zoom.whole"), () => this.to(1)),
      this.told,
    );
    if (box.previousElementSibling?.classList.contains("zoom")) box.previousElementSibling.remove();
    box.before(bar);
    this.#map(nodes);
    if (!box.dataset.zooms) {
      box.dataset.zooms = "";
      box.addEventListener("wheel", (event) => box.zoom.#wheel(event), { passive: false });
      box.addEventListener("keydown", (event) => box.zoom.#key(event));
      box.addEventListener("scroll", () => box.zoom.#frame(), { passive: true });
      new ResizeObserver(() => (typeof box.zoom.mode === "string" ? box.zoom.#apply() : box.zoom.#frame())).observe(box);
    }
    box.zoom = this;
    this.#apply();
  }

  to(mode) {
    this.mode = typeof mode === "string" ? mode : Math.min(LARGEST, Math.max(SMALLEST, mode));
    modes.set(this.holder, this.mode);
    this.#apply();
  }

  #apply() {
    const room = Math.min((this.box.clientWidth || this.width) / this.width, 544 / this.height);
    const least = this.mode === "readable" ? READABLE : SMALLEST;
    this.scale = typeof this.mode === "string" ? Math.max(least, Math.min(1, room)) : this.mode;
    this.picture.setAttribute("width", Math.floor(this.width * this.scale));
    this.picture.setAttribute("height", Math.floor(this.height * this.scale));
    this.told.textContent = `${number(Math.round(this.scale * 100))}%`;
    this.#frame();
  }

  /** A map of the whole, with a frame around the part in sight; a press on it goes there. */
  #map(nodes) {
    this.small = Math.min(MAP_WIDTH / this.width, MAP_HEIGHT / this.height);
    this.marks = new Map(nodes.map((node) => [node, svg("rect", { class: "f-pendente", x: node.x, y: node.y, width: node.w, height: node.h })]));
    this.view = svg("rect", { class: "map-view" });
    const size = { width: this.width * this.small, height: this.height * this.small, viewBox: `0 0 ${this.width} ${this.height}` };
    this.map = svg("svg", { class: "minimap", "aria-hidden": "true", ...size }, ...this.marks.values(), this.view);
    const go = (event) => {
      const { left, top } = this.map.getBoundingClientRect();
      const at = this.scale / this.small;
      this.box.scrollLeft = (event.clientX - left) * at - this.box.clientWidth / 2;
      this.box.scrollTop = (event.clientY - top) * at - this.box.clientHeight / 2;
    };
    this.map.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.map.setPointerCapture(event.pointerId);
      go(event);
    });
    this.map.addEventListener("pointermove", (event) => event.buttons && go(event));
    for (const old of this.holder.querySelectorAll(":scope > .minimap")) old.remove();
    this.box.after(this.map);
  }

  paint(node, status) {
    this.marks.get(node)?.setAttribute("class", `f-${status}`);
  }

  #frame() {
    const { box, scale } = this;
    const [wide, high] = [box.clientWidth, box.clientHeight];
    const whole = !wide || (this.width * scale <= wide + 2 && this.height * scale <= high + 2);
    this.map.toggleAttribute("hidden", whole);
    if (whole) return;
    const frame = { x: box.scrollLeft / scale, y: box.scrollTop / scale, width: Math.min(wide / scale, this.width), height: Math.min(high / scale, this.height) };
    for (const [name, value] of Object.entries(frame)) this.view.setAttribute(name, value);
  }

  /** What is under the pointer stays there. */
  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = this.box.getBoundingClientRect();
    const [x, y, before] = [event.clientX - left, event.clientY - top, this.scale];
    this.to(this.scale * (event.deltaY < 0 ? STEP : 1 / STEP));
    const grown = this.scale / before;
    this.box.scrollLeft = (this.box.scrollLeft + x) * grown - x;
    this.box.scrollTop = (this.box.scrollTop + y) * grown - y;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = { "+": this.scale * STEP, "=": this.scale * STEP, "-": this.scale / STEP, 0: "fit", 1: 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.to(to);
  }
}
