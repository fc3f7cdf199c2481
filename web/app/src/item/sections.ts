// The charts of a host: items that share a chart and a unit are drawn together, charts are put into sections, and
// sections into an order that does not depend on the order in which the items came.

import type { Item } from '../api/types.ts';
import { assignSlots } from '../chart/colour.ts';
import { natural } from '../format/natural.ts';
import { groupBy } from '../part/group.ts';
import { parseKey } from './key.ts';
import { type Place, placeOf, sectionRank } from './places.ts';
import { isState, numberOf } from './reading.ts';
import { commonTitle, withoutSection } from './titles.ts';

/** An item that a line is drawn from. */
export interface Source {
  item: string;
  /** The item's own interval in milliseconds, 0 when it has none. */
  interval: number;
}

export interface SeriesSpec {
  /** Usually one; the values of several are added up. */
  sources: Source[];
  name: string;
  /** 0…7: which of the eight colours. */
  slot: number;
  mirror: boolean;
  /** The line is this number less the value: what is used, from what is free. */
  from?: number;
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
  /** Items whose values are names of states; drawn as bars over time. */
  states: Item[];
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
  const states = new Map<string, Item[]>();
  for (const item of items) {
    const place = placeOf(item);
    if (!drafts.has(place.section)) drafts.set(place.section, new Map());
    if (isState(item)) states.set(place.section, [...(states.get(place.section) ?? []), item]);
    if (item.last?.value.mapped !== undefined || 'fact' in place) {
      facts.set(place.section, [...(facts.get(place.section) ?? []), item]);
      continue;
    }
    addTo(drafts.get(place.section)!, item, place);
  }
  return [...drafts.keys()]
    .sort((a, b) => sectionRank(a) - sectionRank(b) || natural(a, b))
    .map((title) => ({
      id: slug(title),
      title,
      charts: chartsOf(title, [...drafts.get(title)!.values()], items),
      facts: (facts.get(title) ?? []).sort((a, b) => natural(a.name, b.name)),
      states: (states.get(title) ?? []).sort((a, b) => natural(a.name, b.name)),
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
  drafts = together(drafts).flatMap((draft) => named(draft, section));
  const slots = assignSlots(drafts.flatMap((draft) => draft.entries.map((entry) => entry.place.name)));
  const shown = drafts
    .filter((draft) => !(section === 'CPU' && hasModes && saidByModes(draft)))
    .sort((a, b) => a.place.order - b.place.order || natural(headingOf(a), headingOf(b)) || natural(a.place.of ?? '', b.place.of ?? '') || natural(a.units, b.units));
  return apart(shown).flatMap((draft) => pieces(section, draft, slots, all));
}

/** Up to so many charts of one line each are drawn as one when they belong together. */
const MAX_FAMILY = 8;

// together draws lines as one chart whose keys differ in their last word only, such as nginx.connections.active and nginx.connections.waiting.
function together(drafts: Draft[]): Draft[] {
  const lonely = (draft: Draft): string => (draft.place.family !== undefined && draft.entries.length === 1 ? `${draft.place.family} ${draft.units}` : '');
  const families = groupBy(drafts.filter((draft) => lonely(draft) !== ''), lonely);
  const merged = new Set<Draft>();
  const out: Draft[] = [];
  for (const [, members] of families) {
    if (members.length < 2 || members.length > MAX_FAMILY) continue;
    if (commonTitle(members.map((member) => member.entries[0].item.name), '') === null) continue;
    members.forEach((member) => merged.add(member));
    const { place, units } = members[0];
    out.push({ place: { ...place, chart: place.family!, alone: undefined }, units, entries: members.flatMap((member) => member.entries) });
  }
  return [...drafts.filter((draft) => !merged.has(draft)), ...out];
}

// named gives a chart that no rule knows the words that the names of its items share, and its lines what tells them apart. Items with nothing in
// common are parted by what stands before the colon of their names.
function named(draft: Draft, section: string): Draft[] {
  const { place, entries } = draft;
  if (place.unknown !== true || entries.every(({ item }) => item.name === item.key)) return [draft];
  if (entries.length === 1) {
    const title = withoutSection(entries[0].item.name, section);
    return [{ ...draft, place: { ...place, alone: title }, entries: [{ item: entries[0].item, place: { ...entries[0].place, name: title } }] }];
  }
  const common = commonTitle(entries.map(({ item }) => item.name), section);
  if (common === null) return parted(draft, section);
  const told = new Set(common.lines).size === entries.length && common.lines.every((line) => line !== '');
  const lines = told ? entries.map(({ item, place: own }, n) => ({ item, place: { ...own, name: common.lines[n] } })) : entries;
  return [{ ...draft, place: { ...place, title: common.title }, entries: lines }];
}

/** Items with nothing in common that are in no group get a chart each, up to so many. */
const MAX_LONELY = 8;

function parted(draft: Draft, section: string): Draft[] {
  const groups = groupBy(draft.entries, ({ item }) => (item.name.includes(': ') ? item.name.slice(0, item.name.indexOf(': ')) : item.name));
  const lonely = [...groups.values()].filter((entries) => entries.length === 1).length;
  if (groups.size === 1 || lonely > MAX_LONELY) return [draft];
  return [...groups].flatMap(([name, entries]) => named({ ...draft, place: { ...draft.place, chart: `${draft.place.chart} ${name}` }, entries }, section));
}

function headingOf({ place, entries }: Draft): string {
  return (entries.length === 1 ? place.alone : undefined) ?? place.title;
}

// apart adds to titles that would stand twice in a section what they are of, else their unit.
function apart(drafts: Draft[]): Draft[] {
  const twice = groupBy(drafts, headingOf);
  return drafts.map((draft) => {
    const same = twice.get(headingOf(draft))!;
    if (same.length < 2) return draft;
    const { place, units } = draft;
    const more = new Set(same.map((other) => other.place.of ?? '')).size === same.length ? ` · ${place.of}` : ` (${units === '' ? 'number' : units})`;
    const title = headingOf(draft) + more;
    return { ...draft, place: { ...place, title, alone: title } };
  });
}

// Where the modes are drawn, what is used is the height of the stack and what is idle the space above it.
function saidByModes({ place, entries }: Draft): boolean {
  return place.chart === 'total' || (place.chart === 'rest' && entries.every((entry) => entry.place.name === 'idle'));
}

function pieces(section: string, draft: Draft, shared: Map<string, number>, all: Item[]): ChartSpec[] {
  const stack = draft.place.stack === true && isWhole(draft, all);
  const entries = [...draft.entries].sort((a, b) => rankName(a.place.name) - rankName(b.place.name) || natural(a.place.name, b.place.name));
  const names = entries.map((entry) => entry.place.name);
  // Names of a section share the colours as far as they go; a small chart never shows one colour twice.
  const own = new Set(names.map((name) => shared.get(name))).size < Math.min(names.length, 8) ? assignSlots(names) : shared;
  const heading = headingOf(draft);
  // A line that is all there is needs no colour of its own.
  const plain = entries.length === 1 && (draft.place.alone !== undefined || draft.place.name === draft.place.title);
  const specs: ChartSpec[] = [];
  for (let start = 0; start < entries.length; start += MAX_SERIES) {
    const part = entries.slice(start, start + MAX_SERIES);
    const more = entries.length > MAX_SERIES ? ` · ${start + 1} to ${start + part.length} of ${entries.length}` : '';
    specs.push({
      id: slug(`${section} ${draft.place.chart} ${draft.units} ${start}`),
      title: heading + more,
      units: draft.units,
      stack,
      top: draft.place.top,
      series: part.map(({ item, place }) => ({
        sources: [{ item: item.id, interval: item.interval_ms }],
        name: place.name,
        slot: plain ? 0 : (own.get(place.name) ?? 0),
        mirror: place.mirror === true,
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
  return parts.length > 1 && sum <= whole * 1.02;
}

const PART_ORDER = [
  ...['used', 'anon', 'slab', 'shared', 'buffers', 'cached', 'free'],
  ...['user', 'system', 'nice', 'iowait', 'irq', 'softirq', 'steal', 'guest'],
  ...['in', 'read', 'out', 'write', 'avg 1 min', 'avg 5 min', 'avg 15 min', 'some', 'full'],
];

function rankName(name: string): number {
  const at = PART_ORDER.indexOf(name);
  return at < 0 ? PART_ORDER.length : at;
}

/** slug makes an id that is safe in an address and in HTML. */
export function slug(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '');
}

const VIRTUAL_INTERFACE = /^(lo|veth|docker|br-|virbr|cni|flannel|cali|tun|tap)/;
const VIRTUAL_DISK = /^(loop|ram|sr|dm-|zram|fd)/;

interface Entry {
  item: Item;
  place: Place;
}

/** glanceOf picks the four charts that say how a host is: CPU, memory, disk, network. Missing ones are left out. */
export function glanceOf(items: Item[]): ChartSpec[] {
  const placed = items.flatMap((item): Entry[] => {
    const place = placeOf(item);
    return 'fact' in place ? [] : [{ item, place }];
  });
  const pick = (section: string, chart: RegExp): Entry[] => placed.filter(({ place }) => place.section === section && chart.test(place.chart));
  return [
    glanceCPU(pick('CPU', /^total$/), pick('CPU', /^modes$/)),
    glanceMemory(pick('Memory', /^share/), pick('Memory', /^(parts|more)$/)),
    glanceFlow('Disk', pick('Disks', /^dev-.*-bytes$/), VIRTUAL_DISK),
    glanceFlow('Network', pick('Network', /^if-.*-bytes$/), VIRTUAL_INTERFACE),
  ].filter((spec) => spec !== null);
}

function glanceCPU(total: Entry[], modes: Entry[]): ChartSpec | null {
  if (total.length > 0) return { ...glance('CPU', total[0].item), top: 10, series: [line('used', [total[0].item])] };
  if (modes.length === 0) return null;
  const slots = assignSlots(modes.map(({ place }) => place.name));
  return { ...glance('CPU', modes[0].item), top: 10, stack: true, series: modes.map(({ item, place }) => ({ ...line(place.name, [item]), slot: slots.get(place.name)! })) };
}

function glanceMemory(shares: Entry[], amounts: Entry[]): ChartSpec | null {
  const used = shares.find(({ place }) => place.name === 'used');
  if (used !== undefined) return { ...glance('Memory used', used.item), top: 100, series: [line('used', [used.item])] };
  const available = shares.find(({ place }) => place.name === 'available');
  if (available !== undefined) return { ...glance('Memory used', available.item), top: 100, series: [{ ...line('used', [available.item]), from: 100 }] };
  const amount = amounts.find(({ place }) => place.name === 'available') ?? amounts[0];
  return amount === undefined ? null : { ...glance('Memory', amount.item), series: [line(amount.place.name, [amount.item])] };
}

// glanceFlow adds up the two directions of all devices that do not only repeat others.
function glanceFlow(title: string, entries: Entry[], virtual: RegExp): ChartSpec | null {
  const real = entries.filter(({ item }) => !virtual.test(deviceOf(item)));
  const chosen = real.length > 0 ? real : entries;
  if (chosen.length === 0) return null;
  const ways = [...groupBy(chosen, ({ place }) => place.name)].sort(([a], [b]) => rankName(a) - rankName(b));
  return {
    ...glance(title, chosen[0].item),
    series: ways.map(([name, all], n) => ({ ...line(name, all.map(({ item }) => item)), slot: n, mirror: all[0].place.mirror === true })),
  };
}

function deviceOf(item: Item): string {
  const named = item.labels?.devname ?? item.labels?.ifname ?? item.labels?.device ?? item.labels?.interface;
  return (parseKey(item.key).params[0] || named || '').replace(/^\/dev\//, '');
}

function glance(title: string, item: Item): ChartSpec {
  return { id: `glance-${slug(title)}`, title, units: chartUnits(item), stack: false, series: [] };
}

function line(name: string, items: Item[]): SeriesSpec {
  return { sources: items.map((item) => ({ item: item.id, interval: item.interval_ms })), name, slot: 0, mirror: false };
}
