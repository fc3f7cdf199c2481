// The one time range of the page. It is either the last so-many milliseconds, which moves with the clock and is
// what "live" means, or a fixed span that is being looked at.

import { instant, wall } from './zone.ts';

export type Range =
  /** Chosen by the page: short while the store is young, an hour later on. */
  { kind: 'auto' } | { kind: 'last'; ms: number } | { kind: 'span'; from: number; to: number };

const UNITS: Record<string, number> = {
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  seconds: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
  w: 604_800_000,
  week: 604_800_000,
  weeks: 604_800_000,
  mo: 2_592_000_000,
  month: 2_592_000_000,
  months: 2_592_000_000,
  y: 31_536_000_000,
  year: 31_536_000_000,
  years: 31_536_000_000,
};

/** MIN_RANGE and MAX_RANGE bound what a person can ask for. */
export const MIN_RANGE = 5_000;
export const MAX_RANGE = 20 * UNITS.y;

/** Ranges offered in the picker. */
export const PRESETS = ['1m', '5m', '15m', '1h', '3h', '6h', '12h', '1d', '2d', '7d', '30d', '90d', '1y'];

/** parseDuration reads "90m", "1h30m", "2 days"; null when it is none. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim().toLowerCase();
  const part = /(\d+(?:\.\d+)?)\s*([a-z]+)\s*/gy;
  let total = 0;
  let end = 0;
  for (let match = part.exec(trimmed); match !== null; match = part.exec(trimmed)) {
    const unit = UNITS[match[2]];
    if (unit === undefined) return null;
    total += Number(match[1]) * unit;
    end = part.lastIndex;
  }
  return end > 0 && end === trimmed.length ? Math.round(total) : null;
}

/** durationCode writes milliseconds as the shortest code that parseDuration reads back: "90m", "1h". */
export function durationCode(ms: number): string {
  const steps: [string, number][] = [
    ['y', UNITS.y],
    ['d', UNITS.d],
    ['h', UNITS.h],
    ['m', UNITS.m],
    ['s', UNITS.s],
  ];
  for (const [name, length] of steps) {
    if (ms >= length && ms % length === 0) return `${ms / length}${name}`;
  }
  return `${Math.max(1, Math.round(ms / 1_000))}s`;
}

/** durationWords writes a length for a label: "1 h", "15 min", "30 days". */
export function durationWords(ms: number): string {
  if (ms < UNITS.m) return `${Math.round(ms / 1_000)} s`;
  if (ms < UNITS.h) return `${trimNumber(ms / UNITS.m)} min`;
  if (ms < UNITS.d) return `${trimNumber(ms / UNITS.h)} h`;
  if (ms < UNITS.y) return ms === UNITS.d ? '1 day' : `${trimNumber(ms / UNITS.d)} days`;
  return ms === UNITS.y ? '1 year' : `${trimNumber(ms / UNITS.y)} years`;
}

function trimNumber(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/**
 * parseRange reads what a person types into the picker: "2h", "last 3 days", "today", "yesterday",
 * "yesterday 9:00 .. 11:30", "2026-03-01..03-02", "9:00..10:00", "2026-03-01 09:00". now is in milliseconds.
 * It returns a sentence about what was expected when the text is no range.
 */
export function parseRange(text: string, now: number): Range | string {
  const trimmed = text.trim().toLowerCase().replace(/^last\s+/, '');
  if (trimmed === '') return 'Type a length such as 2h, or a span such as yesterday 9:00 .. 11:00.';
  const length = parseDuration(/^[a-z]+$/.test(trimmed) && UNITS[trimmed] ? `1${trimmed}` : trimmed);
  if (length !== null) return bounded({ kind: 'last', ms: length });
  const ends = trimmed.split(/\s*(?:\.\.|—|–|\s-\s|\sto\s)\s*/);
  if (ends.length > 2) return 'A span has two ends: from .. to.';
  const from = parseInstant(ends[0], now, null);
  if (from === null) return `"${ends[0]}" is no time. Expected 2h, 9:00, yesterday, 2026-03-01 or 2026-03-01 09:00.`;
  if (ends.length === 1) return bounded({ kind: 'span', from: from.at, to: Math.min(from.at + from.width, Math.max(now, from.at + 1)) });
  const to = ends[1] === 'now' ? { at: now, width: 0 } : parseInstant(ends[1], now, from.at);
  if (to === null) return `"${ends[1]}" is no time. Expected 11:00, now, 03-02 or 2026-03-02 11:00.`;
  return bounded({ kind: 'span', from: from.at, to: to.at + (to.wholeDay ? to.width : 0) });
}

function bounded(range: Range): Range | string {
  if (range.kind === 'auto') return range;
  const length = range.kind === 'last' ? range.ms : range.to - range.from;
  if (length <= 0) return 'The end is not after the start.';
  if (length < MIN_RANGE) return 'The shortest range is 5 s.';
  if (length > MAX_RANGE) return 'The longest range is 20 years.';
  return range;
}

interface Instant {
  at: number;
  /** How much time the text names: a day, or an hour after a clock time. */
  width: number;
  wholeDay?: boolean;
}

// parseInstant reads a date, a clock time or both. What is missing is taken from base (the other end), else today.
function parseInstant(text: string, now: number, base: number | null): Instant | null {
  const match = /^(?:(today|yesterday)|(?:(\d{4})-)?(\d{1,2})-(\d{1,2}))?(?:[t\s]*(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/.exec(text.trim());
  if (match === null || text.trim() === '') return null;
  const [, word, year, month, day, hour, minute, second] = match;
  let { year: y, month: mo, day: d } = wall(word === undefined ? (base ?? now) : now);
  if (word === 'yesterday') d--;
  if (month !== undefined) {
    if (Number(month) < 1 || Number(month) > 12 || Number(day) < 1 || Number(day) > 31) return null;
    if (year !== undefined) y = Number(year);
    mo = Number(month);
    d = Number(day);
    if (wall(instant({ year: y, month: mo, day: d, hour: 12 })).month !== mo) return null;
  }
  if (hour === undefined) {
    const at = instant({ year: y, month: mo, day: d });
    return { at, width: instant({ year: y, month: mo, day: d + 1 }) - at, wholeDay: true };
  }
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second ?? 0) > 59) return null;
  return { at: instant({ year: y, month: mo, day: d, hour: Number(hour), minute: Number(minute), second: Number(second ?? 0) }), width: UNITS.h };
}

/** rangeFromParams reads last=… or from=…&to=… of a URL; anything odd is the automatic range. */
export function rangeFromParams(params: URLSearchParams): Range {
  const last = params.get('last');
  if (last !== null) {
    const ms = parseDuration(last);
    if (ms !== null && ms >= MIN_RANGE && ms <= MAX_RANGE) return { kind: 'last', ms };
  }
  const from = instantOf(params.get('from'));
  const to = instantOf(params.get('to'));
  if (from !== null && to !== null && to > from && to - from <= MAX_RANGE) return { kind: 'span', from, to };
  return { kind: 'auto' };
}

function instantOf(text: string | null): number | null {
  if (text === null || text === '') return null;
  const ms = /^\d+$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isFinite(ms) ? ms : null;
}

/** rangeToParams writes a range into params, so that a copied address shows the same picture. */
export function rangeToParams(range: Range, params: URLSearchParams): void {
  params.delete('last');
  params.delete('from');
  params.delete('to');
  if (range.kind === 'last') params.set('last', durationCode(range.ms));
  if (range.kind === 'span') {
    params.set('from', new Date(range.from).toISOString());
    params.set('to', new Date(range.to).toISOString());
  }
}

const AUTO_STEPS = [60_000, 120_000, 300_000, 900_000, 1_800_000, 3_600_000];

/** autoLength picks the length of the automatic range for a store whose oldest value is age milliseconds old. */
export function autoLength(age: number | null): number {
  if (age === null) return AUTO_STEPS[AUTO_STEPS.length - 1];
  return AUTO_STEPS.find((step) => age <= step * 1.05) ?? AUTO_STEPS[AUTO_STEPS.length - 1];
}

/** shifted moves a range by a fraction of its length; a moved range is a fixed span. */
export function shifted(window: { from: number; to: number }, fraction: number): Range {
  const by = Math.round((window.to - window.from) * fraction);
  return { kind: 'span', from: window.from + by, to: window.to + by };
}

/** scaled makes a range longer or shorter around its middle. */
export function scaled(window: { from: number; to: number }, factor: number): Range {
  const middle = (window.from + window.to) / 2;
  const half = Math.min(MAX_RANGE, Math.max(MIN_RANGE, (window.to - window.from) * factor)) / 2;
  return { kind: 'span', from: Math.round(middle - half), to: Math.round(middle + half) };
}
