// The chart of a widget out of the items that were found for it.

import type { Widget } from '../api/dashboards.ts';
import { isNumeric, type Item } from '../api/types.ts';
import { assignSlots } from '../chart/colour.ts';
import { type ChartSpec, chartUnits } from '../item/sections.ts';
import type { Found } from './source.ts';

const MAX_LINES = 40;

/** chartOf makes the chart; items that are no numbers are left out. */
export function chartOf(id: string, widget: Widget, found: Found[]): ChartSpec {
  const entries = found.flatMap(({ ref, items }) => items.filter(isNumeric).map((item) => ({ ref, item, many: items.length > 1 }))).slice(0, MAX_LINES);
  const names = lineNames(entries);
  const slots = assignSlots(names);
  const units = widget.units ?? (entries.length === 0 ? '' : chartUnits(entries[0].item));
  return {
    id,
    title: widget.title ?? (names.length === 1 ? names[0] : ''),
    units,
    stack: widget.stack === true && entries.length > 1,
    series: entries.map(({ ref, item }, n) => ({
      sources: [{ item: item.id, interval: item.interval_ms }],
      name: names[n],
      slot: entries.length === 1 ? 0 : (slots.get(names[n]) ?? 0),
      mirror: ref.mirror === true,
    })),
  };
}

/** lineNames says of each line what tells it from the others: its name, and its host where there are several. */
export function lineNames(entries: { ref: { name?: string }; item: Pick<Item, 'host' | 'name'>; many: boolean }[]): string[] {
  const hosts = new Set(entries.map(({ item }) => item.host));
  const own = entries.map(({ ref, item, many }) => (ref.name !== undefined && !many ? ref.name : item.name));
  if (hosts.size < 2) return own;
  return new Set(own).size === 1 ? entries.map(({ item }) => item.host) : entries.map(({ item }, n) => `${item.host} ${own[n]}`);
}

/** legendOf is the name of a PromQL series: {{label}} stands for a label's value. */
export function legendOf(legend: string, metric: Record<string, string>): string {
  return legend.replace(/\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*\}\}/g, (_whole, label: string) => metric[label] ?? '');
}
