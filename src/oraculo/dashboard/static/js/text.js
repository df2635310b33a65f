// What scripts say, and how they show numbers and times: in the language of the page, in the zone of the reader.
const texts = JSON.parse(document.getElementById("texts").textContent);
export const language = document.documentElement.lang;
const numbers = new Intl.NumberFormat(language);
const tenths = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
const day = new Intl.DateTimeFormat(language, { day: "2-digit", month: "short", year: "numeric" });
const minutes = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayMonth = new Intl.DateTimeFormat(language, { day: "2-digit", month: "short" });
const shortDay = new Intl.DateTimeFormat(language, { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" });

export function t(key, values = {}) {
  if (String(values.n) === "1" && `${key}.one` in texts) key += ".one";
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

export const number = (value) => numbers.format(value);

export function duration(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${tenths.format(s)} s`;
  const parts = s < 3600 ? [s / 60, "min", s % 60, "s"] : s < 86400 ? [s / 3600, "h", (s % 3600) / 60, "min"] : [s / 86400, "d", (s % 86400) / 3600, "h"];
  const [more, unit, less, small] = parts;
  return `${Math.floor(more)} ${unit}${Math.floor(less) ? ` ${Math.floor(less)} ${small}` : ""}`;
}

function coarse(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

export function relative(at, now = Date.now()) {
  const past = now - at;
  if (Math.abs(past) < 2000) return t("just");
  return past > 0 ? t("ago", { time: coarse(past) }) : t("in", { time: coarse(-past) });
}

export const time = (at) => clock.format(at);
export const absolute = (at) => `${day.format(at)} ${clock.format(at)}`;
/** An instant on an axis as long as `span`: no more of it than tells marks apart. */
export function moment(at, span) {
  if (span <= 600_000) return seconds.format(at);
  if (span >= 4 * 86_400_000) return dayMonth.format(at);
  return (span <= 43_200_000 ? minutes : shortDay).format(at);
}
