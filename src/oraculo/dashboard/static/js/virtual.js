// A long list of which only the part in sight is in the page.
import { el } from "./dom.js";

export class VirtualList {
  constructor(box, height, draw) {
    this.box = box;
    this.height = height;
    this.draw = draw;
    this.count = 0;
    this.spread = el("div", { class: "spread" });
    box.replaceChildren(this.spread);
    box.addEventListener("scroll", () => this.#soon(), { passive: true });
    new ResizeObserver(() => this.#soon()).observe(box);
  }

  /** Everything may have changed: what is in sight is drawn anew. */
  show(count) {
    this.drawn = new Map();
    if (count !== this.count || !this.spread.style.height) {
      this.count = count;
      this.spread.style.height = `${count * this.height}px`;
    }
    this.#now();
  }

  reveal(index) {
    const top = index * this.height;
    if (top < this.box.scrollTop || top + this.height > this.box.scrollTop + this.box.clientHeight)
      this.box.scrollTop = Math.max(0, top - this.box.clientHeight / 2);
  }

  #place(index) {
    const row = this.draw(index);
    row.dataset.index = index;
    row.setAttribute("aria-setsize", this.count);
    row.setAttribute("aria-posinset", index + 1);
    row.style.top = `${index * this.height}px`;
    return row;
  }

  #soon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.#now();
    });
  }

  #now() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 4);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + 4);
    const rows = [];
    const held = this.spread.contains(document.activeElement) ? document.activeElement.dataset.index : null;
    const kept = new Map();
    for (let index = first; index < last; index++) {
      const row = this.drawn?.get(index) ?? this.#place(index);
      kept.set(index, row);
      rows.push(row);
    }
    this.drawn = kept;
    this.spread.replaceChildren(...rows);
    if (held !== null) rows.find((row) => row.dataset.index === held)?.focus({ preventScroll: true });
  }
}
