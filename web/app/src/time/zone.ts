// In which time zone times are written and read: the browser's, or one that was chosen. Charts, tables and what is typed all go through here.

import { Cell } from '../state/cell.ts';

const KEY = 'tidemark.zone';
const QUARTER = 900_000;
const MAX_OFFSETS = 5_000;

/** valid reports whether the browser knows a zone by this name. */
function valid(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en-GB', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function stored(): string {
  try {
    const name = localStorage.getItem(KEY) ?? '';
    return name !== '' && valid(name) ? name : '';
  } catch {
    return ''; // Storage may be forbidden, and there is none in tests.
  }
}

/** zone is the name of the chosen zone, such as Europe/Riga; empty for the browser's own. */
export const zone = new Cell<string>(stored());

export function setZone(name: string): void {
  if (name !== '' && !valid(name)) return;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  zone.set(name);
}

/** zoneNames are the zones that can be chosen. */
export function zoneNames(): string[] {
  const all = typeof Intl.supportedValuesOf === 'function' ? Intl.supportedValuesOf('timeZone') : [];
  const chosen = zone.value; // browsers list some zones under an older name only
  return ['UTC', ...(chosen === '' || chosen === 'UTC' || all.includes(chosen) ? [] : [chosen]), ...all.filter((name) => name !== 'UTC')];
}

/** Wall is what a clock on the wall and a calendar show. month is 1 to 12. */
export interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  milli: number;
}

let format: { name: string; parts: Intl.DateTimeFormat } | null = null;
const offsets = new Map<string, number>();

// offsetAt is by how many milliseconds a zone's clocks are ahead of UTC. Zones change theirs at quarters of an hour.
function offsetAt(at: number, name: string): number {
  const quarter = Math.floor(at / QUARTER);
  const key = `${name} ${quarter}`;
  const known = offsets.get(key);
  if (known !== undefined) return known;
  if (format?.name !== name) {
    format = { name, parts: new Intl.DateTimeFormat('en-US', { timeZone: name, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' }) };
  }
  const start = quarter * QUARTER;
  const read: Record<string, number> = {};
  for (const { type, value } of format.parts.formatToParts(start)) read[type] = Number(value);
  const ahead = Date.UTC(read.year, read.month - 1, read.day, read.hour, read.minute, read.second) - start;
  if (offsets.size >= MAX_OFFSETS) offsets.clear();
  offsets.set(key, ahead);
  return ahead;
}

/** wall is what clocks show at an instant, in the zone that is in force or in another. */
export function wall(at: number, name = zone.value): Wall {
  if (name === '') {
    const d = new Date(at);
    return { year: d.getFullYear(), month: d.getMonth() + 1, day: d.getDate(), hour: d.getHours(), minute: d.getMinutes(), second: d.getSeconds(), milli: d.getMilliseconds() };
  }
  const d = new Date(at + offsetAt(at, name));
  return { year: d.getUTCFullYear(), month: d.getUTCMonth() + 1, day: d.getUTCDate(), hour: d.getUTCHours(), minute: d.getUTCMinutes(), second: d.getUTCSeconds(), milli: d.getUTCMilliseconds() };
}

/** instant is when clocks show this; days beyond the end of a month go on into the next. A time that clocks skip is the one after it. */
export function instant(w: Pick<Wall, 'year' | 'month' | 'day'> & Partial<Wall>, name = zone.value): number {
  const { year, month, day, hour = 0, minute = 0, second = 0, milli = 0 } = w;
  if (name === '') return new Date(year, month - 1, day, hour, minute, second, milli).getTime();
  const utc = Date.UTC(year, month - 1, day, hour, minute, second, milli);
  const first = utc - offsetAt(utc, name);
  const second_ = utc - offsetAt(first, name);
  // Where clocks are put forward both guesses may miss; the later one is after the gap.
  return offsetAt(second_, name) === utc - second_ ? second_ : Math.max(first, second_);
}

/** shownDate is a Date whose local fields are what clocks of the zone show: what uPlot divides its axis by. */
export function shownDate(at: number): Date {
  if (zone.value === '') return new Date(at);
  const w = wall(at);
  return new Date(w.year, w.month - 1, w.day, w.hour, w.minute, w.second, w.milli);
}

/** aheadOf is by how many milliseconds clocks are ahead of UTC at an instant. */
export function aheadOfUTC(at: number): number {
  return zone.value === '' ? -new Date(at).getTimezoneOffset() * 60_000 : offsetAt(at, zone.value);
}

/** shortName is the short name of the zone: "CET", "UTC", "GMT+5:30". */
export function shortName(at: number, name = zone.value): string {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short', ...(name === '' ? {} : { timeZone: name }) }).formatToParts(new Date(at));
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? 'local time';
}
