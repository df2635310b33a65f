// What scripts say, and how they show numbers and times: in the language of the page, in the zone of the reader.
const texts = JSON.parse(document.getElementById("texts").textContent);
export const language = document.documentElement.lang;
const numbers = new Intl.NumberFormat(language);
const tenths = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });
const day = new Intl.DateTimeFormat(language, { day: "2-digit", month: "short", year: "numeric" });
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
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
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
export const moment = (at) => shortDay.format(at);
