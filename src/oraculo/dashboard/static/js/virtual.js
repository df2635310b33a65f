// A long list of which only the part in sight is in the page.
import { el } from "./dom.js";

const MORE = 4; // rows beyond what is in sight, above and below

export class VirtualList {
  /** `most`: pixels that the box may be high. Nothing here asks the browser where things are, which would make it lay out
   * the page at once: the box is as high as we say, and says itself where it was scrolled to. */
  constructor(box, height, most, draw) {
    this.box = box;
    this.height = height;
    this.most = most;
    this.draw = draw;
    this.count = 0;
    this.top = 0;
    this.tall = 0;
    this.drawn = new Map();
    this.spread = el("div", { class: "spread" });
    box.replaceChildren(this.spread);
    box.addEventListener("scroll", () => this.#soon(), { passive: true });
  }

  /** Everything may have changed: what is in sight is drawn anew, or, with `change`, told to change. */
  show(count, change = null) {
    if (count !== this.count) {
      this.count = count;
      this.tall = Math.min(count * this.height + 1, this.most);
      this.box.style.height = `${this.tall}px`;
      this.spread.style.height = `${count * this.height}px`;
      this.top = Math.min(this.top, Math.max(0, count * this.height - this.tall));
    }
    const held = this.spread.contains(document.activeElement) ? document.activeElement.parentElement.dataset.index : null;
    if (change) for (const [index, row] of this.drawn) change(row.firstChild, index);
    else {
      this.spread.replaceChildren();
      this.drawn.clear();
    }
    this.#now();
    if (held !== null) this.drawn.get(Number(held))?.firstChild.focus({ preventScroll: true });
  }

  reveal(index) {
    const at = index * this.height;
    if (at >= this.top && at + this.height <= this.top + this.tall) return;
    this.top = Math.max(0, Math.min(at - this.tall / 2, this.count * this.height - this.tall));
    this.scrolling ??= requestAnimationFrame(() => {
      this.scrolling = undefined;
      this.box.scrollTop = this.top;
    });
  }

  #place(index) {
    const row = el("div", { class: "vrow", role: "listitem" }, this.draw(index));
    row.dataset.index = index;
    row.setAttribute("aria-setsize", this.count);
    row.setAttribute("aria-posinset", index + 1);
    row.style.top = `${index * this.height}px`;
    return row;
  }

  #soon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      if (this.scrolling) return; // to where it was told to go
      this.top = this.box.scrollTop;
      this.#now();
    });
  }

  /** Only what came into sight is put in, in its order, and only what left is taken out. */
  #now() {
    const first = Math.max(0, Math.floor(this.top / this.height) - MORE);
    const last = Math.min(this.count, Math.ceil((this.top + this.tall) / this.height) + MORE);
    for (const [index, row] of this.drawn)
      if (index < first || index >= last) {
        row.remove();
        this.drawn.delete(index);
      }
    let next = this.spread.firstChild;
    for (let index = first; index < last; index++) {
      const known = this.drawn.get(index);
      if (known) next = known.nextSibling;
      else {
        const row = this.#place(index);
        this.drawn.set(index, row);
        this.spread.insertBefore(row, next);
      }
    }
  }
}
