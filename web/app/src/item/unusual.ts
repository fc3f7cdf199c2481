// Which section of a host behaves unlike itself: the last sixth of the range is held against what came before it.

import type { ChartSeries, Item } from '../api/types.ts';
import { formatValue } from '../format/number.ts';
import { chartUnits, type Section } from './sections.ts';

export interface Unusual {
  section: string;
  why: string;
}

/** Below this many spreads from the usual nothing is called unusual. */
const THRESHOLD = 5;
const MIN_BEFORE = 20;
const MIN_AFTER = 4;
const MAX_PER_SECTION = 24;

/** itemsToCompare picks at most limit items, some of each section, to look for what is unusual. */
export function itemsToCompare(sections: Section[], limit: number): string[] {
  const share = Math.max(1, Math.min(MAX_PER_SECTION, Math.floor(limit / Math.max(1, sections.length))));
  return sections
    .flatMap((section) => [...new Set(section.charts.flatMap((chart) => chart.series.flatMap((series) => series.sources.map((source) => source.item))))].slice(0, share))
    .slice(0, limit);
}

/** deviation is how many spreads the newest part of values lies from the part before, with both means. */
export function deviation(values: (number | null)[]): { size: number; usual: number; now: number } | null {
  const cut = Math.floor((values.length * 5) / 6);
  const before = values.slice(0, cut).filter((value) => value !== null);
  const after = values.slice(cut).filter((value) => value !== null);
  if (before.length < MIN_BEFORE || after.length < MIN_AFTER) return null;
  const usual = mean(before);
  const now = mean(after);
  const spread = Math.sqrt(mean(before.map((value) => (value - usual) ** 2)));
  // A value that never moved needs a floor, or its first small step would be endlessly far.
  const floor = Math.max(spread, Math.abs(usual) * 0.05, 1e-9);
  return { size: Math.min(100, Math.abs(now - usual) / floor), usual, now };
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** mostUnusual names the section that stands out most, or null when none does. */
export function mostUnusual(sections: Section[], items: Item[], series: ChartSeries[]): Unusual | null {
  const byId = new Map(series.map((one) => [one.id, one]));
  const itemById = new Map(items.map((item) => [item.id, item]));
  let worst: (Unusual & { size: number }) | null = null;
  for (const section of sections) {
    for (const id of section.charts.flatMap((chart) => chart.series.flatMap((one) => one.sources.map((source) => source.item)))) {
      const found = byId.get(id);
      const item = itemById.get(id);
      const difference = found === undefined ? null : deviation(found.avg);
      if (difference === null || item === undefined || difference.size < THRESHOLD || difference.size <= (worst?.size ?? 0)) continue;
      const units = found!.units || chartUnits(item);
      worst = { section: section.id, size: difference.size, why: `${item.name}: ${formatValue(difference.now, units)} lately, ${formatValue(difference.usual, units)} before` };
    }
  }
  return worst;
}
