// Instants in words, in the zone that is in force.

import { clockTime, dateText } from '../time/clock.ts';

/** formatClock writes a Unix time in milliseconds as 2026-11-30 14:05. */
export function formatClock(ms: number): string {
  return `${dateText(ms)} ${clockTime(ms).slice(0, 5)}`;
}
