// What a reader calls a ticket: its task where the plan names tasks, else its queue and its number.
import { t } from "./text.js";

export function ticketName(store, position) {
  const undone = store.undone(position);
  if (undone !== null) return t("undoes", { what: ticketName(store, undone) });
  return store.names ? store.names[position] : `${store.queues[position]} #${position + 1}`;
}
