// A plan that waits for somebody to agree: who, why, yes or no. What became of it comes back through the journal.
import { toast } from "./dom.js";
import { t } from "./text.js";

export class Approval {
  constructor(box) {
    this.box = box;
    this.said = box.querySelector("[data-said]");
    this.form = box.querySelector("form");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#decide(event.submitter.value);
    });
  }

  show(state, now) {
    this.box.hidden = state.approval === null;
    if (this.box.hidden) return;
    this.said.textContent = t(`ev.p.${state.approval}`, { by: state.approver, reason: state.approvalReason });
    this.form.hidden = state.approval !== "asked" || state.endedAt !== null || !now;
  }

  async #decide(what) {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": document.querySelector("meta[name=csrf]").content };
    const body = JSON.stringify({ por: this.form.elements.por.value, motivo: this.form.elements.motivo.value });
    const answer = await fetch(`${this.form.dataset.api}/${what}`, { method: "POST", headers, body }).catch(() => null);
    if (answer?.ok) return;
    const problem = await answer?.json().catch(() => null);
    toast(t("request_failed", { why: problem?.detail ?? answer?.statusText ?? t("link.lost") }));
  }
}
