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

  show(count) {
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

  #soon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.#now();
    });
  }

  #now() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 6);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + 6);
    const rows = [];
    const held = this.spread.contains(document.activeElement) ? document.activeElement.dataset.index : null;
    for (let index = first; index < last; index++) {
      const row = this.draw(index);
      row.dataset.index = index;
      row.setAttribute("aria-setsize", this.count);
      row.setAttribute("aria-posinset", index + 1);
      row.style.top = `${index * this.height}px`;
      rows.push(row);
    }
    this.spread.replaceChildren(...rows);
    if (held !== null) rows.find((row) => row.dataset.index === held)?.focus({ preventScroll: true });
  }
}
