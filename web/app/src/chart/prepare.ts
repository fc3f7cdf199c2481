// From buffers to the columns that are drawn. All lines of a chart share one time axis; lines whose instants differ by
// a little are put on a common grid. null is a gap, undefined only means "no value at this instant".

import type { Buffer, Cellular } from './buffer.ts';

export interface Line {
  /** The real values, for the legend and the table. */
  values: Cellular[];
  /** What is drawn: sums in a stack, negative for the other direction of a pair. */
  drawn: Cellular[];
  min: Cellular[] | null;
  max: Cellular[] | null;
}

export interface Prepared {
  at: number[];
  lines: Line[];
  band: boolean;
}

interface Shape {
  stack: boolean;
  mirror: boolean[];
}

/** prepare lays the buffers of a chart side by side. */
export function prepare(buffers: Buffer[], shape: Shape): Prepared {
  const grid = gridOf(buffers);
  const at = grid === 0 ? (buffers[0]?.at ?? []) : union(buffers, grid);
  const place = grid === 0 ? (column: Cellular[]): Cellular[] => column : null;
  const index = grid === 0 ? null : new Map(at.map((t, i) => [t, i]));
  const lines = buffers.map((buffer, n) => {
    const spread = (column: Cellular[]): Cellular[] => place?.(column) ?? scatter(buffer.at, column, grid, index!, at.length);
    const values = spread(buffer.avg);
    const sign = shape.mirror[n] ? -1 : 1;
    return {
      values,
      drawn: sign === 1 ? values : flip(values),
      min: buffer.min === null ? null : signed(spread(sign === 1 ? buffer.min : buffer.max!), sign),
      max: buffer.max === null ? null : signed(spread(sign === 1 ? buffer.max : buffer.min!), sign),
    };
  });
  if (shape.stack) stackUp(at, lines, buffers);
  return { at, lines, band: !shape.stack && lines.length <= 8 && lines.some((line) => line.min !== null) };
}

function signed(column: Cellular[], sign: number): Cellular[] {
  return sign === 1 ? column : flip(column);
}

function flip(column: Cellular[]): Cellular[] {
  return column.map((value) => (value === null || value === undefined ? value : -value));
}

// gridOf is 0 when all lines have the same instants, else the width of the common grid in milliseconds.
function gridOf(buffers: Buffer[]): number {
  if (buffers.length <= 1 || buffers.every((buffer) => sameTimes(buffer.at, buffers[0].at))) return 0;
  const step = Math.max(...buffers.map((buffer) => buffer.step));
  if (step > 0) return Math.max(1, Math.min(step, 1_000));
  const usual = Math.min(...buffers.map((buffer) => usualStep(buffer.at)));
  return usual >= 900 ? 1_000 : usual >= 90 ? 100 : 1;
}

function sameTimes(a: number[], b: number[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function usualStep(at: number[]): number {
  if (at.length < 2) return Infinity;
  const steps = [];
  for (let i = Math.max(1, at.length - 20); i < at.length; i++) steps.push(at[i] - at[i - 1]);
  return steps.sort((a, b) => a - b)[steps.length >> 1];
}

function union(buffers: Buffer[], grid: number): number[] {
  const all = new Set<number>();
  for (const buffer of buffers) for (const t of buffer.at) all.add(Math.round(t / grid) * grid);
  return [...all].sort((a, b) => a - b);
}

function scatter(from: number[], column: Cellular[], grid: number, index: Map<number, number>, length: number): Cellular[] {
  const out = new Array<Cellular>(length).fill(undefined);
  for (let i = 0; i < from.length; i++) {
    const slot = index.get(Math.round(from[i] / grid) * grid)!;
    // A gap mark may fall on the slot of a value; the value is what was measured.
    if (column[i] !== null || out[slot] === undefined) out[slot] = column[i];
  }
  return out;
}

// stackUp turns values into running sums. A part without a value at an instant counts with its last one for a short
// while and with nothing after that; where no part has a value there is a gap.
function stackUp(at: number[], lines: Line[], buffers: Buffer[]): void {
  const sums = new Float64Array(at.length);
  const known = new Uint8Array(at.length);
  const parts = lines.map((line, n) => {
    const patience = Math.min(buffers[n].silence, 120_000);
    let last: number | null = null;
    let lastAt = -Infinity;
    return line.values.map((value, i) => {
      if (value === null) last = null;
      else if (value !== undefined) {
        last = value;
        lastAt = at[i];
      }
      const part = last !== null && at[i] - lastAt <= patience ? last : null;
      if (part !== null) known[i] = 1;
      return part;
    });
  });
  lines.forEach((line, n) => {
    line.drawn = parts[n].map((part, i) => {
      sums[i] += part ?? 0;
      return known[i] === 1 ? sums[i] : null;
    });
    line.min = null;
    line.max = null;
  });
}
