// Parts of a page of which one is shown; which one stands in the address.
export class Tabs {
  /** `shown(name)` is called when a part comes into sight. */
  constructor(list, shown) {
    this.tabs = [...list.querySelectorAll("[role=tab]")];
    this.shown = shown;
    list.addEventListener("click", (event) => {
      const tab = event.target.closest("[role=tab]");
      if (tab) this.show(tab.dataset.tab);
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.stopPropagation();
      const here = this.tabs.findIndex((tab) => tab.dataset.tab === this.now);
      const next = this.tabs[(here + step + this.tabs.length) % this.tabs.length];
      this.show(next.dataset.tab);
      next.focus();
    });
    this.now = this.tabs[0].dataset.tab;
  }

  show(name) {
    if (!this.tabs.some((tab) => tab.dataset.tab === name)) return;
    this.now = name;
    for (const tab of this.tabs) {
      const chosen = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    this.shown(name);
  }
}

const SETTLED_MS = 200; // browsers refuse more than a few changes of the address a second
let pending = null;

/** Puts values into the address without a step in the history, a moment later; null takes one out. */
export function remember(values) {
  if (pending) return void Object.assign(pending, values);
  pending = { ...values };
  setTimeout(() => {
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(pending)) {
      if (value === null || value === "") address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    pending = null;
    if (address.href !== location.href) history.replaceState(history.state, "", address);
  }, SETTLED_MS);
}
