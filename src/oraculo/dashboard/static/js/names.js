// What a reader calls a ticket: its task where the plan names tasks, with its number where it is an item of a map, else
// its queue and its number.
import { t } from "./text.js";

export function ticketName(store, position) {
  const undone = store.undone(position);
  if (undone !== null) return t("undoes", { what: ticketName(store, undone) });
  const item = store.item(position);
  if (item !== null) return `${ticketName(store, item[0])}[${item[1]}]`;
  return store.names ? store.names[position] : `${store.queues[position]} #${position + 1}`;
}
