// The charts of a host: items that share a chart and a unit are drawn together, charts are put into sections, and
// sections into an order that does not depend on the order in which the items came.

import type { Item } from '../api/types.ts';
import { assignSlots } from '../chart/colour.ts';
import { parseKey } from './key.ts';
import { type Place, placeOf, sectionRank } from './places.ts';
import { numberOf } from './reading.ts';

export interface SeriesSpec {
  item: string;
  name: string;
  /** 0…7: which of the eight colours. */
  slot: number;
  mirror: boolean;
  /** The item's own interval in milliseconds, 0 when it has none. */
  interval: number;
}

export interface ChartSpec {
  id: string;
  title: string;
  units: string;
  stack: boolean;
  top?: number;
  series: SeriesSpec[];
}

export interface Section {
  id: string;
  title: string;
  charts: ChartSpec[];
  /** Items that are read rather than drawn: texts, versions, totals. */
  facts: Item[];
}

/** More lines than this make a chart that nobody can read; the rest goes on in the next one. */
export const MAX_SERIES = 40;

interface Draft {
  place: Place;
  units: string;
  entries: { item: Item; place: Place }[];
}

/** chartUnits is the unit in which an item is drawn: a counter is drawn as its rate. */
export function chartUnits(item: Item): string {
  if (item.labels?.type !== 'counter' || item.units.endsWith('/s') || /^(Bps|bps|[a-z]ps)$/.test(item.units)) return item.units;
  return `${item.units}/s`;
}

/** sectionsOf arranges the items of one host. */
export function sectionsOf(items: Item[]): Section[] {
  const drafts = new Map<string, Map<string, Draft>>();
  const facts = new Map<string, Item[]>();
  for (const item of items) {
    const place = placeOf(item);
    if (!drafts.has(place.section)) drafts.set(place.section, new Map());
    if ('fact' in place) {
      facts.set(place.section, [...(facts.get(place.section) ?? []), item]);
      continue;
    }
    addTo(drafts.get(place.section)!, item, place);
  }
  return [...drafts.keys()]
    .sort((a, b) => sectionRank(a) - sectionRank(b) || a.localeCompare(b, 'en'))
    .map((title) => ({
      id: slug(title),
      title,
      charts: chartsOf(title, [...drafts.get(title)!.values()], items),
      facts: (facts.get(title) ?? []).sort((a, b) => natural(a.name, b.name)),
    }));
}

function addTo(charts: Map<string, Draft>, item: Item, place: Place): void {
  const units = chartUnits(item);
  const id = `${place.chart} ${units}`;
  const draft = charts.get(id);
  if (draft === undefined) charts.set(id, { place, units, entries: [{ item, place }] });
  else draft.entries.push({ item, place });
}

function chartsOf(section: string, drafts: Draft[], all: Item[]): ChartSpec[] {
  const hasModes = drafts.some((draft) => draft.place.chart === 'modes');
  const slots = assignSlots(drafts.flatMap((draft) => draft.entries.map((entry) => entry.place.colour ?? entry.place.name)));
  return drafts
    .filter((draft) => !(section === 'CPU' && hasModes && (draft.place.chart === 'total' || draft.place.chart === 'idle')))
    .sort((a, b) => a.place.order - b.place.order || natural(a.place.title, b.place.title) || a.units.localeCompare(b.units))
    .flatMap((draft) => pieces(section, draft, slots, all));
}

function pieces(section: string, draft: Draft, shared: Map<string, number>, all: Item[]): ChartSpec[] {
  const stack = draft.place.stack === true && isWhole(draft, all);
  const entries = [...draft.entries].sort((a, b) => rankName(a.place) - rankName(b.place) || natural(a.place.name, b.place.name));
  const names = entries.map((entry) => entry.place.colour ?? entry.place.name);
  // Names of a section share the colours as far as they go; a small chart never shows one colour twice.
  const own = new Set(names.map((name) => shared.get(name))).size < Math.min(names.length, 8) ? assignSlots(names) : shared;
  const specs: ChartSpec[] = [];
  for (let start = 0; start < entries.length; start += MAX_SERIES) {
    const part = entries.slice(start, start + MAX_SERIES);
    const more = entries.length > MAX_SERIES ? ` · ${start + 1} to ${start + part.length} of ${entries.length}` : '';
    specs.push({
      id: slug(`${section} ${draft.place.chart} ${draft.units} ${start}`),
      title: (entries.length === 1 && !draft.place.title.includes('·') && draft.place.chart.includes('.') ? entries[0].item.name : draft.place.title) + more,
      units: draft.units,
      stack,
      top: draft.place.top,
      series: part.map(({ item, place }) => ({
        item: item.id,
        name: place.name,
        slot: own.get(place.colour ?? place.name) ?? 0,
        mirror: place.mirror === true,
        interval: item.interval_ms,
      })),
    });
  }
  return specs;
}

// isWhole refuses to stack parts that overlap: Zabbix's "used" memory holds buffers and cache as well, so the sum of
// the parts is held against the total that the host reports.
function isWhole(draft: Draft, all: Item[]): boolean {
  if (draft.place.section !== 'Memory' || draft.place.chart !== 'parts') return true;
  const total = all.find((item) => item.key === 'vm.memory.size[total]' || item.key === 'vm.memory.size' || item.key === 'vm.memory.total');
  const whole = total === undefined ? null : numberOf(total);
  const parts = draft.entries.map((entry) => numberOf(entry.item));
  if (whole === null || parts.some((part) => part === null)) return false;
  const sum = parts.reduce<number>((left, part) => left + part!, 0);
  return sum <= whole * 1.02;
}

const PART_ORDER = ['used', 'anon', 'slab', 'shared', 'buffers', 'cached', 'free', 'user', 'system', 'nice', 'iowait', 'irq', 'softirq', 'steal', 'guest', 'in', 'read', 'out', 'write', 'avg 1 min', 'avg 5 min', 'avg 15 min', 'some', 'full'];

function rankName(place: Place): number {
  const at = PART_ORDER.indexOf(place.name);
  return at < 0 ? PART_ORDER.length : at;
}

/** natural compares texts so that "core 2" stands before "core 10". */
export function natural(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true, sensitivity: 'base' });
}

/** slug makes an id that is safe in an address and in HTML. */
export function slug(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '');
}

const VIRTUAL_INTERFACE = /^(lo|veth|docker|br-|virbr|cni|flannel|cali|tun|tap)/;
const VIRTUAL_DISK = /^(loop|ram|sr|dm-|zram|fd)/;

/** glanceOf picks the four charts that say how a host is: CPU, memory, disk, network. Missing ones are left out. */
export function glanceOf(items: Item[]): ChartSpec[] {
  const placed = items.flatMap((item) => {
    const place = placeOf(item);
    return 'fact' in place ? [] : [{ item, place }];
  });
  const pick = (section: string, chart: (id: string) => boolean): { item: Item; place: Place }[] =>
    placed.filter((entry) => entry.place.section === section && chart(entry.place.chart));
  const cpu = pick('CPU', (id) => id === 'total');
  const modes = pick('CPU', (id) => id === 'modes');
  const share = pick('Memory', (id) => id === 'share').filter((entry) => entry.place.name === 'used');
  const parts = share.length > 0 ? share : pick('Memory', (id) => id === 'share' || id === 'parts').slice(0, 1);
  const disks = pairs(pick('Disks', (id) => /^dev-.*-bytes$/.test(id)), VIRTUAL_DISK);
  const nets = pairs(pick('Network', (id) => /^if-.*-bytes$/.test(id)), VIRTUAL_INTERFACE);
  return [
    glance('CPU', cpu.length > 0 ? cpu.slice(0, 1) : modes, cpu.length === 0),
    glance('Memory', parts, false),
    glance('Disk', disks, false),
    glance('Network', nets, false),
  ].filter((spec) => spec !== null);
}

// pairs leaves out devices that only repeat others, and names each line by its device.
function pairs(entries: { item: Item; place: Place }[], virtual: RegExp): { item: Item; place: Place }[] {
  const device = (item: Item): string => (parseKey(item.key).params[0] || item.labels?.device || item.labels?.interface || '').replace(/^\/dev\//, '');
  const real = entries.filter((entry) => !virtual.test(device(entry.item)));
  const chosen = real.length > 0 ? real : entries;
  const devices = [...new Set(chosen.map((entry) => device(entry.item)))].sort(natural).slice(0, 4);
  const alone = devices.length === 1;
  return chosen
    .filter((entry) => devices.includes(device(entry.item)))
    .map(({ item, place }) => ({ item, place: { ...place, name: alone ? place.name : `${device(item)} ${place.name}`, colour: alone ? place.name : device(item) } }));
}

function glance(title: string, entries: { item: Item; place: Place }[], stack: boolean): ChartSpec | null {
  if (entries.length === 0) return null;
  const sorted = [...entries].sort((a, b) => rankName(a.place) - rankName(b.place) || natural(a.place.name, b.place.name));
  const slots = assignSlots(sorted.map((entry) => entry.place.colour ?? entry.place.name));
  return {
    id: `glance-${slug(title)}`,
    title,
    units: chartUnits(sorted[0].item),
    stack,
    top: title === 'Memory' && chartUnits(sorted[0].item) === '%' ? 100 : title === 'CPU' ? 10 : undefined,
    series: sorted.map(({ item, place }) => ({
      item: item.id,
      name: place.name,
      slot: slots.get(place.colour ?? place.name) ?? 0,
      mirror: place.mirror === true,
      interval: item.interval_ms,
    })),
  };
}
