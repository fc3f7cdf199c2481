// The values of one line of one chart: what was read from the server, and what came live since.

import type { ChartSeries } from '../api/types.ts';
import { rate } from '../item/reading.ts';

export type Cellular = number | null | undefined;

export class Buffer {
  at: number[] = [];
  avg: Cellular[] = [];
  min: Cellular[] | null = null;
  max: Cellular[] | null = null;
  /** Length of one column in milliseconds; 0 when every stored value is here. */
  readonly step: number;
  private inLast = 1;
  private counter: { at: number; v: string } | null = null;

  /** intervalMs is the item's own interval, 0 when it has none. */
  constructor(
    series: ChartSeries | null,
    stepMs: number,
    readonly intervalMs: number,
  ) {
    this.step = series?.min === undefined ? 0 : stepMs;
    if (series === null) return;
    this.at = series.at;
    this.avg = series.avg;
    this.min = series.min ?? null;
    this.max = series.max ?? null;
    if (this.step === 0 && intervalMs > 0) this.breakSilence();
  }

  /** silence is the time without a value after which a line breaks. */
  get silence(): number {
    if (this.intervalMs > 0) return Math.max(3 * this.intervalMs, 3 * this.step, 3_000);
    return Infinity;
  }

  /** push adds a live value. Values that are not newer than the last one are dropped. */
  push(at: number, value: number): void {
    const end = this.at.length - 1;
    if (this.step > 0 && end >= 0) {
      const start = this.at[end];
      if (at < start) return;
      if (at < start + this.step) return this.fold(end, value);
      at = start + Math.floor((at - start) / this.step) * this.step;
    } else if (end >= 0 && at <= this.at[end]) return;
    if (end >= 0 && at - this.at[end] > this.silence) this.append(this.at[end] + 1, null);
    this.append(at, value);
    this.inLast = 1;
  }

  /** pushCounter adds a live counter reading as the rate since the one before. */
  pushCounter(at: number, text: string): void {
    const before = this.counter;
    this.counter = { at, v: text };
    if (before === null || at - before.at > this.silence) return;
    const perSecond = rate(before, this.counter);
    if (perSecond !== null) this.push(at, perSecond);
  }

  /** trim forgets what is before from, but for one value that the line starts from. */
  trim(from: number): void {
    let first = 0;
    while (first < this.at.length - 1 && this.at[first + 1] < from) first++;
    if (first < 64) return;
    this.at = this.at.slice(first);
    this.avg = this.avg.slice(first);
    if (this.min !== null) this.min = this.min.slice(first);
    if (this.max !== null) this.max = this.max.slice(first);
  }

  private append(at: number, value: number | null): void {
    this.at.push(at);
    this.avg.push(value);
    this.min?.push(value);
    this.max?.push(value);
  }

  private fold(end: number, value: number): void {
    const before = this.avg[end];
    if (before === null || before === undefined) {
      this.avg[end] = value;
      if (this.min !== null) this.min[end] = value;
      if (this.max !== null) this.max[end] = value;
      this.inLast = 1;
      return;
    }
    this.inLast++;
    this.avg[end] = before + (value - before) / this.inLast;
    if (this.min !== null) this.min[end] = Math.min(this.min[end] ?? value, value);
    if (this.max !== null) this.max[end] = Math.max(this.max[end] ?? value, value);
  }

  // Where every value is here and the item has an interval, a long silence is a gap even if nobody marked it.
  private breakSilence(): void {
    const at: number[] = [];
    const avg: Cellular[] = [];
    for (let i = 0; i < this.at.length; i++) {
      if (i > 0 && this.at[i] - this.at[i - 1] > this.silence && this.avg[i - 1] !== null && this.avg[i] !== null) {
        at.push(this.at[i - 1] + 1);
        avg.push(null);
      }
      at.push(this.at[i]);
      avg.push(this.avg[i]);
    }
    this.at = at;
    this.avg = avg;
  }
}
