// Where an item stands on the page of its host. Placing needs no set-up: it is read from the item's key, its labels
// and its unit. Keys of Zabbix's Linux and MongoDB templates and of Tidemark's own agent have a place of their own; all
// others are put together by the first words of their keys.

import type { Item } from '../api/types.ts';
import { isNumeric } from '../api/types.ts';
import { type Key, parseKey } from './key.ts';
import { mongoPlace } from './mongo.ts';

export interface Place {
  section: string;
  /** Items with the same chart and unit are drawn together. */
  chart: string;
  title: string;
  /** Name of the line within its chart. */
  name: string;
  /** Charts of a section are sorted by this, then by title. */
  order: number;
  /** The parts of the chart make a whole. */
  stack?: boolean;
  /** Drawn downwards, as the other direction of a pair. */
  mirror?: boolean;
  /** The scale always reaches up to here. */
  top?: number;
  /** Title when the chart has this line only. */
  alone?: string;
  /** What tells charts of one title apart, such as the server that they are of. */
  of?: string;
  /** No rule knows the item: title and names of the lines come from the names of the items. */
  unknown?: boolean;
  /** Few charts of one line each with the same family and unit become one. */
  family?: string;
}

/** SECTIONS is the order of sections; others follow by name, System and Agent come last. */
export const SECTIONS = ['CPU', 'Memory', 'Disks', 'Network', 'Processes', 'Pressure', 'MongoDB'];
const LAST_SECTIONS = ['System', 'Agent'];

/** sectionRank sorts section titles. */
export function sectionRank(title: string): number {
  const early = SECTIONS.indexOf(title);
  if (early >= 0) return early;
  const late = LAST_SECTIONS.indexOf(title);
  return late >= 0 ? 1000 + late : SECTIONS.length;
}

/** A place, "fact" for what is read rather than drawn, or null when no rule knows the item. */
type Placed = Place | { section: string; fact: true };

interface Facts {
  key: Key;
  item: Item;
  /** param n of the key, or the first of the named labels that is there. */
  get(n: number, ...labels: string[]): string;
}

/** placeOf says where an item stands. */
export function placeOf(item: Item): Placed {
  const key = parseKey(item.key);
  const facts: Facts = {
    key,
    item,
    get: (n, ...labels) => key.params[n] || labels.map((name) => item.labels?.[name]).find((value) => value) || '',
  };
  const placed = RULES.find(([pattern]) => pattern.test(key.name))?.[1](facts) ?? generic(facts);
  return isNumeric(item) ? placed : { section: placed.section, fact: true };
}

const RULES: [RegExp, (facts: Facts) => Placed][] = [
  [/^system\.cpu\.util$/, cpuUtil],
  [/^system\.cpu\.load$/, cpuLoad],
  [/^system\.cpu\.(num|discovery)$/, () => ({ section: 'CPU', fact: true })],
  [/^system\.cpu\./, ({ key, item }) => single('CPU', key.name, item.name, 40)],
  [/^vm\.memory\.(size|util)$|^vm\.memory\.(used|free|cached|buffers|available)$/, memory],
  [/^system\.swap\./, swap],
  [/^vm\./, ({ key, item }) => single('Memory', key.name, item.name, 40)],
  [/^vfs\.fs\./, fileSystem],
  [/^vfs\.dev\./, disk],
  [/^vfs\.(file|dir)\./, ({ key, item }) => ({ ...single('Files', key.name, title(key.name), 0), name: key.params.join(' ') || item.name })],
  [/^net\.if\./, network],
  [/^net\.(tcp|udp|sock|stat)/, ({ key, item }) => ({ ...single('Network', key.name, title(key.name), 90), name: key.params.filter(Boolean).join(' ') || item.name })],
  [/pressure|(^|\.)psi(\.|$)/, pressure],
  [/^(proc|kernel|system\.procs)(\.|$)/, processes],
  [/^mongo(db)?\./i, (facts) => mongoPlace(facts.key, facts.item) ?? { ...generic(facts), section: 'MongoDB' }],
  [/^agent\./, agent],
  [/^system\.(uptime|boottime|localtime|hostname|uname|sw\.|hw\.)/, () => ({ section: 'System', fact: true })],
  [/^(system|tidemark)\./, ({ key, item }) => single('System', key.name, item.name, 0)],
];

function agent({ key, item }: Facts): Placed {
  if (/ping|version|hostname|variant/.test(key.name)) return { section: 'Agent', fact: true };
  const heading = item.name.replace(/^Agent: /, '');
  return single('Agent', item.key, heading.charAt(0).toUpperCase() + heading.slice(1), 0);
}

function single(section: string, chart: string, heading: string, order: number): Place {
  return { section, chart, title: heading, name: heading, order };
}

const CPU_MODES = ['user', 'system', 'nice', 'iowait', 'irq', 'interrupt', 'softirq', 'steal'];

function cpuUtil({ item, get }: Facts): Placed {
  const cpu = get(0, 'cpu');
  const mode = get(1, 'mode');
  const total = mode === '' || mode === 'util' || mode === 'used';
  const part = CPU_MODES.includes(mode);
  if (cpu !== '' && cpu !== 'all') {
    if (total) return { section: 'CPU', chart: 'cores', title: 'Cores', name: `core ${cpu}`, order: 10, top: 10 };
    if (part) return { section: 'CPU', chart: `core-${cpu}`, title: `Core ${cpu} by mode`, name: mode, order: 50, stack: true, top: 10 };
    return { section: 'CPU', chart: `cores-${mode}`, title: `Cores, ${mode}`, name: `core ${cpu}`, order: 60, top: 10 };
  }
  if (total) return { section: 'CPU', chart: 'total', title: 'CPU used', name: 'used', order: 2, top: 10 };
  if (part) return { section: 'CPU', chart: 'modes', title: 'CPU by mode', name: mode, order: 0, stack: true, top: 10 };
  // Idle is what is left above the others, and the time of guests is a part of user.
  return { section: 'CPU', chart: 'rest', title: 'CPU, other times', alone: item.name, name: mode, order: 45, top: 10 };
}

function cpuLoad({ item, get }: Facts): Place {
  const span = /avg(1|5|15)$/.exec(get(1, 'period', 'avg')) ?? /^avg(1|5|15)$/.exec(get(0));
  const name = span === null ? item.name : `avg ${span[1]} min`;
  return { section: 'CPU', chart: 'load', title: 'Load', name, order: 5 };
}

const MEMORY_PARTS = ['used', 'anon', 'slab', 'buffers', 'cached', 'free'];

function memory({ key, item, get }: Facts): Placed {
  const mode = key.name === 'vm.memory.util' ? 'pused' : key.name === 'vm.memory.size' ? get(0, 'mode') || 'total' : key.name.slice(10);
  if (mode === 'total') return { section: 'Memory', fact: true };
  if (item.units === '%' || mode.startsWith('p')) {
    const name = mode === 'pused' ? 'used' : mode === 'pavailable' ? 'available' : mode;
    // Used and available are two ways to tell the same: in one chart they would be taken for parts of it.
    const told = name === 'used' || name === 'available';
    return { section: 'Memory', chart: told ? `share-${name}` : 'share', title: told ? `Memory ${name} (%)` : 'Memory, share', name, order: 2, top: 100 };
  }
  const stack = MEMORY_PARTS.includes(mode);
  return stack
    ? { section: 'Memory', chart: 'parts', title: 'Memory', name: mode, order: 0, stack: true }
    : { section: 'Memory', chart: 'more', title: 'Memory, more', name: mode, order: 4 };
}

function swap({ key, item, get }: Facts): Placed {
  if (key.name !== 'system.swap.size') {
    const out = key.name.endsWith('out');
    return { section: 'Memory', chart: 'swap-io', title: 'Swapping', name: out ? 'out' : 'in', order: 12, mirror: out };
  }
  const mode = get(1, 'mode') || get(0) || 'free';
  if (mode === 'total') return { section: 'Memory', fact: true };
  const share = item.units === '%' || mode.startsWith('p');
  return {
    section: 'Memory',
    chart: share ? 'swap-share' : 'swap',
    title: share ? 'Swap, share' : 'Swap',
    name: mode.replace(/^p(?=used|free)/, ''),
    order: 10,
    stack: !share,
    top: share ? 100 : undefined,
  };
}

function fileSystem({ key, item, get }: Facts): Placed {
  const path = get(0, 'fsname', 'mount', 'mountpoint') || item.name;
  const mode = get(1, 'mode') || 'used';
  const inode = key.name.includes('inode');
  if (mode === 'total') return { section: 'Disks', fact: true };
  const share = item.units === '%' || mode.startsWith('p');
  const what = inode ? 'inodes' : 'space';
  const word = mode.replace(/^p(?=used|free|available)/, '');
  return {
    section: 'Disks',
    chart: `fs-${what}-${share ? 'share' : 'amount'}-${word}`,
    title: `File systems, ${what} ${word} (${share ? '%' : inode ? 'number' : 'bytes'})`,
    name: path,
    order: (inode ? 4 : 0) + (share ? 0 : 2) + (word === 'used' ? 0 : 1),
    top: share ? 100 : undefined,
  };
}

function disk({ key, item, get }: Facts): Placed {
  const device = get(0, 'devname', 'device', 'disk').replace(/^\/dev\//, '');
  const what = key.name.slice('vfs.dev.'.length);
  if (what === 'discovery') return { section: 'Disks', fact: true };
  if (what === 'queue') return { section: 'Disks', chart: 'dev-queue', title: 'Disks, requests under way', name: device, order: 9 };
  if (/util|busy/.test(what)) return { section: 'Disks', chart: 'dev-busy', title: 'Disks, busy', name: device, order: 8, top: 100 };
  const direction = /write/.test(what) ? 'write' : /read/.test(what) ? 'read' : '';
  if (direction === '') return { ...single('Disks', what, title(what), 30), name: device };
  const kind = /await|time/.test(what) ? 'time' : flow(item, get(1, 'mode'));
  return {
    section: 'Disks',
    chart: `dev-${device}-${kind}`,
    title: `${device} · ${kind}`,
    name: direction,
    order: kind === 'bytes' ? 10 : 11,
    mirror: direction === 'write',
  };
}

function network({ key, item, get }: Facts): Placed {
  const iface = get(0, 'ifname', 'interface', 'device');
  const what = key.name.slice('net.if.'.length);
  if (what === 'discovery' || what === 'list') return { section: 'Network', fact: true };
  const inward = /^in/.test(what);
  const outward = /^out/.test(what);
  if (!inward && !outward) return { ...single('Network', what, title(`interfaces.${what}`), 50), name: iface };
  const mode = get(1, 'mode') || 'bytes';
  const trouble = /error|drop|overrun|collision|frame|fifo/.test(mode);
  const kind = trouble ? 'errors and drops' : flow(item, mode);
  const base = iface === 'lo' ? 40 : 10;
  return {
    section: 'Network',
    chart: `if-${iface}-${kind}`,
    title: `${iface} · ${kind}`,
    name: trouble ? `${mode} ${inward ? 'in' : 'out'}` : inward ? 'in' : 'out',
    order: base + (kind === 'bytes' ? 0 : trouble ? 2 : 1),
    mirror: outward,
  };
}

function flow(item: Item, mode: string): string {
  if (/packet/.test(mode)) return 'packets';
  if (/^(B|Bps|B\/s|b|bps|bit\/s)$/.test(item.units) || /byte|^bps$/.test(mode)) return 'bytes';
  if (/sector|^sps$/.test(mode)) return 'sectors';
  return 'operations';
}

function pressure({ key, item, get }: Facts): Place {
  const all = [...key.name.split('.'), ...key.params, item.labels?.resource ?? ''];
  const resource = all.find((word) => /^(cpu|memory|io|irq)$/.test(word)) ?? get(0, 'resource');
  const kind = all.find((word) => word === 'some' || word === 'full') ?? 'some';
  const span = all.find((word) => /^avg\d+$/.test(word)) ?? '';
  const total = all.includes('total');
  const order = ['cpu', 'io', 'memory'].indexOf(resource) + (total ? 0 : 10);
  const heading = resource === 'cpu' ? 'CPU' : resource === 'io' ? 'I/O' : title(resource);
  return {
    section: 'Pressure',
    chart: `${resource}-${total ? 'total' : span}`,
    title: total ? `${heading}, time stalled` : `${heading}, share of time stalled${span === '' ? '' : `, mean of ${span.slice(3)} s`}`,
    name: kind,
    order,
  };
}

function processes({ key, item, get }: Facts): Placed {
  if (key.name === 'kernel.maxfiles' || key.name === 'kernel.maxproc') return { section: 'Processes', fact: true };
  if (key.name === 'system.procs') {
    const mode = get(0, 'mode');
    return mode === 'forks'
      ? { section: 'Processes', chart: 'forks', title: item.name, name: mode, order: 4 }
      : { section: 'Processes', chart: 'at-work', title: 'Processes at work', name: mode, order: 2 };
  }
  if (key.name === 'proc.num') {
    const state = get(2, 'state');
    const name = get(0, 'process');
    return { section: 'Processes', chart: name !== '' ? 'count-of' : state === 'zomb' ? 'at-work' : 'count', title: name !== '' ? 'Processes by name' : state === 'zomb' ? 'Processes at work' : 'Processes', name: name || (state === 'zomb' ? 'zombie' : state) || 'all', order: state === 'zomb' ? 2 : 0 };
  }
  return { ...single('Processes', key.name, title(key.name), 10), alone: item.name, name: key.params.filter(Boolean).join(' ') || item.name };
}

/** title turns "kernel.openfiles" into "Openfiles" and "wal_sync" into "Wal sync". */
function title(name: string): string {
  const words = name.split('.').slice(-2).join(' ').replace(/[_-]+/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const KNOWN_TITLES: Record<string, string> = { mongodb: 'MongoDB', sql: 'SQL', http: 'HTTP', web: 'Web', icmpping: 'Ping', snmp: 'SNMP', ipmi: 'IPMI' };

function generic({ key, item }: Facts): Place {
  const words = key.name.split(/[._]/);
  const section = KNOWN_TITLES[words[0]] ?? title(item.labels?.section || words[0]);
  const varied = key.params.filter(Boolean).join(', ');
  const labels = Object.entries(item.labels ?? {})
    .filter(([name]) => name !== 'type' && name !== 'section')
    .map(([, value]) => value)
    .join(' ');
  const family = key.params.length === 0 && words.length > 2 ? words.slice(0, -1).join('.') : undefined;
  return {
    section,
    chart: key.name,
    title: title(key.name),
    alone: item.name,
    name: varied || labels || item.name,
    order: 0,
    unknown: true,
    family,
  };
}
