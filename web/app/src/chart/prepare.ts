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

/** What prepare has to know of a chart's lines. */
export interface Shape {
  stack: boolean;
  series: { sources: unknown[]; mirror: boolean; from?: number }[];
}

/** prepare lays the buffers of a chart side by side; they come in the order of the sources of its lines. */
export function prepare(buffers: Buffer[], shape: Shape): Prepared {
  const grid = gridOf(buffers);
  const at = grid === 0 ? (buffers[0]?.at ?? []) : union(buffers, grid);
  const index = grid === 0 ? null : new Map(at.map((t, i) => [t, i]));
  const spread = (buffer: Buffer, column: Cellular[]): Cellular[] => (index === null ? column : scatter(buffer.at, column, grid, index, at.length));
  let first = 0;
  const lines = shape.series.map((series) => {
    const own = buffers.slice(first, first + series.sources.length);
    first += series.sources.length;
    return own.length === 1 ? lineOf(own[0], series, spread) : sumOf(own, series, spread, at);
  });
  if (shape.stack) stackUp(at, lines, buffers);
  return { at, lines, band: !shape.stack && lines.length <= 8 && lines.some((line) => line.min !== null) };
}

type Spread = (buffer: Buffer, column: Cellular[]) => Cellular[];

function lineOf(buffer: Buffer, series: Shape['series'][number], spread: Spread): Line {
  const { from, mirror } = series;
  const turned = (column: Cellular[]): Cellular[] => (from === undefined ? column : flip(column, from));
  const values = turned(spread(buffer, buffer.avg));
  const [low, high] = from === undefined ? [buffer.min, buffer.max] : [buffer.max, buffer.min];
  const [down, up] = mirror ? [high, low] : [low, high];
  return {
    values,
    drawn: signed(values, mirror),
    min: down === null ? null : signed(turned(spread(buffer, down)), mirror),
    max: up === null ? null : signed(turned(spread(buffer, up)), mirror),
  };
}

// The extremes of a sum are not the sum of the extremes, so a sum has no band.
function sumOf(own: Buffer[], series: Shape['series'][number], spread: Spread, at: number[]): Line {
  const parts = own.map((buffer) => held(at, spread(buffer, buffer.avg), buffer));
  const values = at.map((_t, i) => {
    let sum: number | null = null;
    for (const part of parts) if (part[i] !== null) sum = (sum ?? 0) + part[i];
    return sum;
  });
  return { values, drawn: signed(values, series.mirror), min: null, max: null };
}

function signed(column: Cellular[], mirror: boolean): Cellular[] {
  return mirror ? flip(column, 0) : column;
}

function flip(column: Cellular[], from: number): Cellular[] {
  return column.map((value) => (value === null || value === undefined ? value : from - value));
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

// held gives each instant a value: a part without one counts with its last one for a short while, then with none.
function held(at: number[], values: Cellular[], buffer: Buffer): (number | null)[] {
  const patience = Math.min(buffer.silence, 120_000);
  let last: number | null = null;
  let lastAt = -Infinity;
  return values.map((value, i) => {
    if (value === null) last = null;
    else if (value !== undefined) {
      last = value;
      lastAt = at[i];
    }
    return last !== null && at[i] - lastAt <= patience ? last : null;
  });
}

// stackUp turns values into running sums; where no part has a value there is a gap.
function stackUp(at: number[], lines: Line[], buffers: Buffer[]): void {
  const sums = new Float64Array(at.length);
  const known = new Uint8Array(at.length);
  const parts = lines.map((line, n) => held(at, line.values, buffers[n]));
  for (const part of parts) for (let i = 0; i < part.length; i++) if (part[i] !== null) known[i] = 1;
  lines.forEach((line, n) => {
    line.drawn = parts[n].map((part, i) => {
      sums[i] += part ?? 0;
      return known[i] === 1 ? sums[i] : null;
    });
    line.min = null;
    line.max = null;
  });
}

/** newestOf is the newest value of each line, without laying out the columns. */
export function newestOf(buffers: Buffer[], shape: Pick<Shape, 'series'>): (number | null)[] {
  let first = 0;
  return shape.series.map(({ sources, from }) => {
    let sum: number | null = null;
    for (const buffer of buffers.slice(first, first + sources.length)) {
      const value = buffer.avg[buffer.avg.length - 1];
      if (value !== null && value !== undefined) sum = (sum ?? 0) + value;
    }
    first += sources.length;
    return sum === null || from === undefined ? sum : from - sum;
  });
}
