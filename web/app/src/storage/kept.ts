// How long something is kept, as people write it: 31d, 12h, 2y.

const UNITS: Record<string, number> = { m: 60, h: 3_600, d: 86_400, w: 604_800, y: 31_536_000 };
const LEAST_SECONDS = 3_600;
const MOST_SECONDS = 25 * 31_536_000;

/** keptSeconds reads a time; empty is 0, what the items say. It throws what is wrong with it. */
export function keptSeconds(what: string, text: string): number {
  const trimmed = text.trim();
  if (trimmed === '') return 0;
  const found = /^(\d+(?:\.\d+)?)\s*(m|h|d|w|y)[a-z]*$/i.exec(trimmed);
  if (found === null) throw new Error(`${what}: “${trimmed}” is no time. Write a number and a unit, such as 31d, 12h or 2y.`);
  const seconds = Math.round(Number(found[1]) * UNITS[found[2]!.toLowerCase()]!);
  if (seconds < LEAST_SECONDS || seconds > MOST_SECONDS) throw new Error(`${what}: ${trimmed} is out of range. From an hour to 25 years can be kept.`);
  return seconds;
}

/** keptText writes a time so that keptSeconds reads the same. */
export function keptText(seconds: number): string {
  for (const unit of ['d', 'h', 'm']) {
    if (seconds % UNITS[unit]! === 0) return `${seconds / UNITS[unit]!}${unit}`;
  }
  return `${seconds / 60}m`;
}

/** loses is the time before which stored values go when all are kept for so long instead of so long before; null when none do. */
export function loses(seconds: number, before: number, from: number, now: number): number | null {
  const oldest = now - seconds * 1000;
  if (seconds === 0 || from === 0 || from >= oldest) return null;
  return before !== 0 && before <= seconds ? null : oldest;
}
