// Times for people: in the zone that is in force, 24 hours, the zone's name beside it.

import { shortName, wall } from './zone.ts';

const two = (n: number): string => String(n).padStart(2, '0');

/** clockTime writes HH:MM:SS, with milliseconds when asked. */
export function clockTime(at: number, millis = false): string {
  const w = wall(at);
  const text = `${two(w.hour)}:${two(w.minute)}:${two(w.second)}`;
  return millis ? `${text}.${String(w.milli).padStart(3, '0')}` : text;
}

/** dateText writes YYYY-MM-DD. */
export function dateText(at: number): string {
  const w = wall(at);
  return `${w.year}-${two(w.month)}-${two(w.day)}`;
}

/** dateTime writes the date only when it is not today's. */
export function dateTime(at: number, now = Date.now()): string {
  return dateText(at) === dateText(now) ? clockTime(at) : `${dateText(at)} ${clockTime(at)}`;
}

/** zoneName is the short name of the zone that is in force: "CET", "UTC", "GMT+5:30". */
export function zoneName(at = Date.now()): string {
  return shortName(at);
}

/** spanText writes both ends of a span without saying the same day twice. */
export function spanText(from: number, to: number): string {
  const fine = to - from < 3_600_000;
  const clock = (at: number): string => (fine ? clockTime(at) : clockTime(at).slice(0, 5));
  if (dateText(from) === dateText(to)) {
    const day = dateText(from) === dateText(Date.now()) ? '' : `${dateText(from)} `;
    return `${day}${clock(from)} – ${clock(to)}`;
  }
  return `${dateText(from)} ${clock(from)} – ${dateText(to)} ${clock(to)}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** axisTimes labels the marks of a time axis; the date stands where the day changes. */
export function axisTimes(splits: number[], increment: number): string[] {
  let day = '';
  return splits.map((at, i) => {
    const w = wall(at);
    const today = `${w.day} ${MONTHS[w.month - 1]}`;
    const midnight = w.hour === 0 && w.minute === 0 && w.second === 0;
    const fresh = day !== '' && day !== today;
    day = today;
    if (increment >= 28 * 86_400_000) return w.month === 1 ? String(w.year) : MONTHS[w.month - 1];
    if (increment >= 86_400_000) return today;
    if (midnight && (fresh || i > 0)) return today;
    const clock = `${two(w.hour)}:${two(w.minute)}`;
    if (increment < 60_000) return `${clock}:${two(w.second)}`;
    return clock;
  });
}
