// Where widgets stand: a grid of 24 columns on which they never overlap. What is in the way of a widget goes down, and gaps close upwards, so that
// a layout depends on nothing but the order of moves.

export interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

export const COLUMNS = 24;
export const MAX_HEIGHT = 60;
/** A row and the gap below it, in pixels. */
export const ROW_PX = 40;
export const GAP_PX = 8;

const clamp = (n: number, low: number, high: number): number => Math.max(low, Math.min(high, n));

/** fitted brings a rectangle into the grid. */
export function fitted(rect: Rect): Rect {
  const w = clamp(Math.round(rect.w), 1, COLUMNS);
  return { w, h: clamp(Math.round(rect.h), 1, MAX_HEIGHT), x: clamp(Math.round(rect.x), 0, COLUMNS - w), y: Math.max(0, Math.round(rect.y)) };
}

const overlap = (a: Rect, b: Rect): boolean => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/** inOrder are the indexes of rectangles in the order of reading. */
export function inOrder(rects: Rect[]): number[] {
  return rects.map((_rect, n) => n).sort((a, b) => rects[a].y - rects[b].y || rects[a].x - rects[b].x || a - b);
}

/** placed puts one widget where it is wanted and makes room for it. */
export function placed<T extends Rect>(all: T[], n: number, wanted: Rect): T[] {
  const rects: Rect[] = all.map(({ x, y, w, h }) => ({ x, y, w, h }));
  rects[n] = fitted(wanted);
  const order = [n, ...inOrder(rects).filter((other) => other !== n)];
  const done: Rect[] = [];
  for (const at of order) {
    const rect = rects[at];
    // The one that was in its own way upwards may stand where the moved one was.
    for (let hit = done.find((other) => overlap(rect, other)); hit !== undefined; hit = done.find((other) => overlap(rect, other))) rect.y = hit.y + hit.h;
    done.push(rect);
  }
  return compacted(all, rects);
}

/** compacted closes the gaps above widgets. */
export function compacted<T extends Rect>(all: T[], rects: Rect[] = all.map(fitted)): T[] {
  const done: Rect[] = [];
  for (const n of inOrder(rects)) {
    const rect = rects[n];
    while (done.some((other) => overlap(rect, other))) rect.y++;
    while (rect.y > 0 && !done.some((other) => overlap({ ...rect, y: rect.y - 1 }, other))) rect.y--;
    done.push(rect);
  }
  return all.map((one, n) => ({ ...one, x: rects[n].x, y: rects[n].y, w: rects[n].w, h: rects[n].h }));
}

/** bottomOf is the first free row. */
export function bottomOf(rects: Rect[]): number {
  return rects.reduce((bottom, rect) => Math.max(bottom, rect.y + rect.h), 0);
}

/** Steps of the keyboard: arrows move, with Shift they resize. */
export function stepped(rect: Rect, key: string, resize: boolean): Rect | null {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
  if (dx === 0 && dy === 0) return null;
  return resize ? { ...rect, w: rect.w + dx, h: rect.h + dy } : { ...rect, x: rect.x + dx, y: rect.y + dy };
}

/** movedDown finds the place that a widget takes when it is moved down past what stands below it; gaps would close again otherwise. */
export function movedDown(all: Rect[], n: number): Rect {
  const rect = all[n];
  const below = all.filter((other, at) => at !== n && other.x < rect.x + rect.w && rect.x < other.x + other.w && other.y >= rect.y + rect.h);
  if (below.length === 0) return rect;
  const next = below.reduce((first, other) => (other.y < first.y ? other : first));
  return { ...rect, y: next.y + next.h };
}
