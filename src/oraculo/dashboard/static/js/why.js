// One sentence that says what a run waits for.
import { BACKOFF, HELD, JUDGED, OWED, RUNNING, WAITING } from "./run-state.js";
import { ticketName } from "./names.js";
import { duration, number, t, time } from "./text.js";

const MOST = 3;

function named(queues) {
  const names = [...queues].sort();
  if (names.length <= MOST) return names.join(", ");
  return t("why.and_more", { names: names.slice(0, MOST).join(", "), n: number(names.length - MOST) });
}

/** { text, warn } or null when it has ended. `now` counts from the start of the run; `consumers` may be unknown. */
export function why(store, state, now, consumers) {
  if (state.endedAt !== null) return null;
  if (state.paused !== null) {
    const { at, reason, actor } = state.paused;
    const since = { by: actor ?? "", since: time(store.start + at), reason };
    return { text: t(`why.paused${actor ? ".by" : ""}${reason ? ".because" : ""}`, since), warn: true };
  }
  const found = [OWED, RUNNING, BACKOFF, WAITING, HELD, JUDGED].map(() => ({ count: 0, queues: new Set(), due: Infinity, first: -1 }));
  const [owed, running, backoff, waiting, held, judged] = found;
  const of = { [OWED]: owed, [RUNNING]: running, [BACKOFF]: backoff, [WAITING]: waiting, [HELD]: held, [JUDGED]: judged };
  for (let p = 0; p < state.total; p++) {
    const one = of[state.phase[p]];
    if (!one) continue;
    one.count += 1;
    one.queues.add(one === held ? ticketName(store, p) : store.queues[p]);
    if ((one === running || one === backoff) && state.due[p] < one.due) {
      one.due = state.due[p];
      one.first = p;
    }
  }
  const parts = [];
  if (running.count) {
    const left = running.due - now;
    parts.push(t(left > 0 ? "why.running" : "why.overdue", { names: named(running.queues), n: number(running.count), left: duration(left) }));
  }
  if (backoff.count) {
    const row = store.rows[state.failure[backoff.first]];
    const cause = row ? row[7] || t(`cause.${row[5]}`) : "";
    parts.push(t("why.backoff", { names: named(backoff.queues), n: number(backoff.count), left: duration(backoff.due - now), cause }));
  }
  if (owed.count) parts.push(t("why.owed", { names: named(owed.queues), n: number(owed.count) }));
  if (held.count) parts.push(t("why.held", { names: named(held.queues) }));
  if (judged.count) parts.push(t("why.judged", { names: named(judged.queues), n: number(judged.count) }));
  if (waiting.count && parts.length) parts.push(t("why.gate", { n: number(waiting.count) }));
  if (state.approval === "asked") parts.push(t("why.approval"));
  const said = parts.length ? [t("why", { parts: parts.join("; ") })] : [];
  const alone = consumers ? [...running.queues, ...owed.queues].filter((queue) => consumers[queue] === 0) : [];
  if (alone.length) said.push(t("why.nobody", { names: named(new Set(alone)) }));
  if (said.length && store.deadline !== null) said.push(t("why.deadline", { left: duration(store.deadline + state.moved - now) }));
  return { text: said.join(" "), warn: alone.length > 0 };
}
