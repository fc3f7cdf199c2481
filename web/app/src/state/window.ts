// The time window that all charts show: the range of the address, brought down to two instants.

import { Cell } from './cell.ts';
import { overview, serverNow } from './live.ts';
import { route, setRange } from './route.ts';
import { autoLength, type Range, rangeFromParams, scaled, shifted } from '../time/range.ts';

export interface TimeWindow {
  from: number;
  to: number;
  /** Whether the window moves with the clock. */
  live: boolean;
}

/** currentRange is what the address says. */
export function currentRange(): Range {
  return rangeFromParams(route.value.params);
}

/** rangeLength is the length in milliseconds that a range has now. */
export function rangeLength(range: Range): number {
  if (range.kind === 'last') return range.ms;
  if (range.kind === 'span') return range.to - range.from;
  const oldest = overview.value?.store.from ?? null;
  return autoLength(oldest === null ? null : serverNow() - oldest);
}

/** windowNow brings the range of the address down to two instants. */
export function windowNow(): TimeWindow {
  const range = currentRange();
  if (range.kind === 'span') return { from: range.from, to: range.to, live: false };
  const to = serverNow();
  return { from: to - rangeLength(range), to, live: true };
}

/** Changes when the charts must be read again because another range was chosen or the automatic one grew. */
export const windowKey = new Cell(keyNow());

function keyNow(): string {
  const range = currentRange();
  return range.kind === 'span' ? `${range.from}-${range.to}` : `last-${rangeLength(range)}`;
}

/** watchWindow keeps windowKey true. */
export function watchWindow(): void {
  const update = (): void => windowKey.set(keyNow());
  route.subscribe(update);
  overview.subscribe(update);
}

// Ranges that were zoomed away from, newest last.
const before: Range[] = [];
const MAX_ZOOMS = 50;

/** zoomTo shows a span on all charts and remembers where it came from. */
export function zoomTo(from: number, to: number): void {
  before.push(currentRange());
  if (before.length > MAX_ZOOMS) before.shift();
  setRange({ kind: 'span', from: Math.round(from), to: Math.round(to) });
}

/** zoomBack goes back to the range before the last zoom; without one it shows twice as much. */
export function zoomBack(): void {
  const range = before.pop();
  if (range !== undefined) setRange(range);
  else if (currentRange().kind === 'span') setRange(scaled(windowNow(), 2));
}

/** moveWindow moves by a part of the range; moving to the present follows it again. */
export function moveWindow(fraction: number): void {
  const range = shifted(windowNow(), fraction);
  if (range.kind === 'span' && range.to >= serverNow()) setLive(true);
  else setRange(range);
}

/** scaleWindow makes the range longer or shorter. */
export function scaleWindow(factor: number): void {
  setRange(scaled(windowNow(), factor));
}

let lastFollowed: Range = { kind: 'auto' };

/** setLive follows the clock again with the range that was followed last, or holds the present picture. */
export function setLive(on: boolean): void {
  const range = currentRange();
  if (on) {
    before.length = 0;
    setRange(lastFollowed);
  } else if (range.kind !== 'span') {
    const { from, to } = windowNow();
    setRange({ kind: 'span', from: Math.round(from), to: Math.round(to) });
  }
}

/** chooseRange is the picker's choice; it forgets the zooms. */
export function chooseRange(range: Range): void {
  before.length = 0;
  setRange(range);
}

route.subscribe(() => {
  const range = currentRange();
  if (range.kind !== 'span') lastFollowed = range;
});

