// A dashboard of what a host's page shows, with the host as a variable, so that it serves its neighbours too.

import type { Dashboard, ItemRef, Widget } from '../api/dashboards.ts';
import type { Host, Item } from '../api/types.ts';
import { type ChartSpec, glanceOf, sectionsOf } from '../item/sections.ts';
import { COLUMNS } from './grid.ts';

// What is left out is on the host's own page; a wall of charts helps nobody.
const MAX_CHARTS = 40;
const MAX_PER_SECTION = 6;
const MAX_ITEMS = 20;
const OF_REQUESTS = /^mongo\.(shape|client)\[/;

/** dashboardOf makes the dashboard. */
export function dashboardOf(host: Host, items: Item[]): Dashboard {
  const known = new Map(items.map((item) => [item.id, item]));
  const shown = items.filter((item) => !OF_REQUESTS.test(item.key));
  const widgets: Widget[] = [];
  const row = (charts: ChartSpec[], w: number, h: number): void => {
    let x = 0;
    let y = bottom(widgets);
    for (const spec of charts) {
      const refs = refsOf(spec, known);
      if (refs.length === 0 || widgets.length >= MAX_CHARTS) continue;
      if (x + w > COLUMNS) {
        x = 0;
        y += h;
      }
      widgets.push({ kind: 'chart', title: spec.title, x, y, w, h, items: refs, ...(spec.stack ? { stack: true } : {}) });
      x += w;
    }
  };
  row(glanceOf(shown).map((spec) => ({ ...spec, series: spec.series.filter((series) => series.from === undefined) })), 6, 5);
  widgets.push({ kind: 'problems', title: 'Problems', x: 0, y: bottom(widgets), w: COLUMNS, h: 4, host: '$host', limit: 10 });
  for (const section of sectionsOf(shown)) {
    if (section.charts.length === 0 || widgets.length >= MAX_CHARTS) continue;
    widgets.push({ kind: 'text', x: 0, y: bottom(widgets), w: COLUMNS, h: 1, text: `# ${section.title}` });
    row(section.charts.slice(0, MAX_PER_SECTION), 8, 6);
  }
  return {
    name: `${host.name} at a glance`,
    variables: [{ name: 'host', title: 'Host', kind: 'host', default: host.host, ...(host.groups.length === 1 ? { group: host.groups[0] } : {}) }],
    widgets,
  };
}

const bottom = (widgets: Widget[]): number => widgets.reduce((low, widget) => Math.max(low, widget.y + widget.h), 0);

function refsOf(spec: ChartSpec, known: Map<string, Item>): ItemRef[] {
  const refs: ItemRef[] = [];
  for (const series of spec.series) {
    for (const source of series.sources) {
      const item = known.get(source.item);
      if (item === undefined || refs.length >= MAX_ITEMS) continue;
      refs.push({ host: '$host', key: item.key, name: series.sources.length === 1 ? series.name : `${series.name} ${deviceOf(item)}`.trim(), ...(series.mirror ? { mirror: true } : {}) });
    }
  }
  return refs;
}

function deviceOf(item: Item): string {
  const labels = item.labels ?? {};
  return labels.devname ?? labels.ifname ?? labels.fsname ?? /\[([^\],]+)/.exec(item.key)?.[1] ?? '';
}
