// What a stored value says. Values come as text, because a JSON number would round large counters.

import type { Item, Reading, Value } from '../api/types.ts';
import { formatValue } from '../format/number.ts';

/** numberOf is an item's last value as a number, null when there is none. */
export function numberOf(item: Item): number | null {
  return item.last === null ? null : toNumber(item.last.value);
}

export function toNumber(value: Value): number | null {
  if (value.t !== 'float' && value.t !== 'unsigned') return null;
  return parseNumber(value.v);
}

/** parseNumber reads Go's spelling of numbers, where infinity is "+Inf". */
export function parseNumber(text: string): number | null {
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  const n = Number(text);
  return text.trim() === '' || Number.isNaN(n) ? null : n;
}

/**
 * rate is the change per second between two counter readings, exact even above 2^53. Null when time stood still or
 * the counter went back, because what was counted in between is not known.
 */
export function rate(from: { at: number; v: string }, to: { at: number; v: string }): number | null {
  const seconds = (to.at - from.at) / 1000;
  if (seconds <= 0) return null;
  const difference = isWhole(from.v) && isWhole(to.v) ? Number(BigInt(to.v) - BigInt(from.v)) : Number(to.v) - Number(from.v);
  return difference < 0 || Number.isNaN(difference) ? null : difference / seconds;
}

function isWhole(text: string): boolean {
  return /^\d{1,20}$/.test(text);
}

/** readingText is a stored value with its unit, as a trigger sees it: a counter stays a count. */
export function readingText(units: string, value: Value): string {
  const number = toNumber(value);
  const text = number === null ? value.v : formatValue(number, units, 6);
  return value.mapped === undefined || value.mapped === '' ? text : `${value.mapped} (${text})`;
}

export function isCounter(item: { labels: Record<string, string> | null }): boolean {
  return item.labels?.type === 'counter';
}

/** How an item's newest value is shown in a table. exact is the stored text. */
export interface Shown {
  text: string;
  exact: string;
  number: number | null;
}

/** shownValue writes the newest value of an item; a counter is shown as its rate, as everywhere on the page. */
export function shownValue(item: Item, units: string, last: Reading | null = item.last, previous: Reading | null = item.previous): Shown {
  if (last === null) return { text: '–', exact: 'no value yet', number: null };
  const number = toNumber(last.value);
  if (last.value.mapped !== undefined) return { text: last.value.mapped, exact: last.value.v, number };
  if (number === null) return { text: last.value.t === 'binary' ? 'binary' : last.value.v, exact: last.value.v, number: null };
  if (isCounter(item)) {
    const perSecond = previous === null ? null : rate({ at: previous.at, v: previous.value.v }, { at: last.at, v: last.value.v });
    return { text: formatValue(perSecond, units), exact: last.value.v, number: perSecond };
  }
  return { text: formatValue(number, units), exact: last.value.v, number };
}

/** isState tells whether an item's values are names of states: numbers with a value map, or short texts. */
export function isState(item: Item): boolean {
  return item.value_type === 'char' || item.last?.value.mapped !== undefined;
}
