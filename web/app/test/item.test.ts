import { expect, test } from 'vitest';
import type { Item } from '../src/api/types.ts';
import { assignSlots, SLOTS } from '../src/chart/colour.ts';
import { parseKey } from '../src/item/key.ts';
import { parseNumber, rate, shownValue } from '../src/item/reading.ts';
import { glanceOf, MAX_SERIES, sectionsOf } from '../src/item/sections.ts';
import { deviation } from '../src/item/unusual.ts';

let next = 1;

function item(key: string, units: string, more: Partial<Item> = {}): Item {
  return {
    id: String(next++), host_id: '1', host: 'h', key, name: key, value_type: 'float', units, kind: 'declared', labels: null,
    interval_ms: 1_000, enabled: true, state: 'ok', error: '', last: null, previous: null, ...more,
  };
}

const reading = (at: number, v: string, t: 'unsigned' | 'float' = 'unsigned'): Item['last'] => ({ at, at_ns: `${at}000000`, value: { t, v } });

test.each([
  ['agent.ping', 'agent.ping', []],
  ['system.cpu.load[all,avg1]', 'system.cpu.load', ['all', 'avg1']],
  ['net.if.in[]', 'net.if.in', ['']],
  ['vfs.fs.size["/a,b",used]', 'vfs.fs.size', ['/a,b', 'used']],
  ['k[ "say \\"hi\\"" , x]', 'k', ['say "hi"', 'x']],
  ['k[[a,b],c]', 'k', ['[a,b]', 'c']],
  ['broken[a', 'broken[a', []],
  ['k["open', 'k["open', []],
])('parseKey(%s)', (text, name, params) => expect(parseKey(text)).toEqual({ name, params }));

test('the keys of the agent make sections in order', () => {
  const items = [
    item('net.if.in[eth0]', 'B', { labels: { ifname: 'eth0', type: 'counter' } }),
    item('net.if.out[eth0]', 'B', { labels: { ifname: 'eth0', type: 'counter' } }),
    item('vfs.dev.write[sda,bytes]', 'B', { labels: { devname: 'sda', type: 'counter' } }),
    item('vfs.dev.read[sda,bytes]', 'B', { labels: { devname: 'sda', type: 'counter' } }),
    item('agent.version', '', { value_type: 'char' }),
    item('vm.memory.size[pavailable]', '%'),
    item('system.cpu.util[all,user,last]', '%'),
    item('system.cpu.util[all,idle,last]', '%'),
    item('system.cpu.util[all,system,last]', '%'),
    item('system.cpu.util[all,used,last]', '%'),
    item('system.cpu.util[1,used,last]', '%'),
    item('system.cpu.util[0,used,last]', '%'),
    item('mongodb.connections[current]', ''),
    item('shop.orders', ''),
    item('system.uptime', 'uptime'),
  ];
  const sections = sectionsOf(items);
  expect(sections.map((section) => section.title)).toEqual(['CPU', 'Memory', 'Disks', 'Network', 'MongoDB', 'Shop', 'System', 'Agent']);
  const [cpu, , disks, network] = sections;
  expect(cpu.charts.map((chart) => chart.title)).toEqual(['CPU by mode', 'Cores']);
  expect(cpu.charts[0].stack).toBe(true);
  expect(cpu.charts[0].series.map((series) => series.name)).toEqual(['user', 'system']);
  expect(cpu.charts[1].series.map((series) => series.name)).toEqual(['core 0', 'core 1']);
  expect(disks.charts[0]).toMatchObject({ title: 'sda · bytes', units: 'B/s' });
  expect(disks.charts[0].series.map(({ name, mirror }) => [name, mirror])).toEqual([['read', false], ['write', true]]);
  expect(network.charts[0].series.map(({ name, mirror }) => [name, mirror])).toEqual([['in', false], ['out', true]]);
  expect(sections[6].facts.map((fact) => fact.key)).toEqual(['system.uptime']);
  expect(sections[7].facts.map((fact) => fact.key)).toEqual(['agent.version']);
});

test('sections do not depend on the order of items', () => {
  const items = ['system.cpu.load[all,avg1]', 'system.cpu.load[all,avg15]', 'net.if.in[eth1]', 'net.if.in[eth0]', 'a.b[x]', 'a.b[y]', 'vfs.fs.size[/,pused]'].map((key) => item(key, ''));
  expect(sectionsOf([...items].reverse())).toEqual(sectionsOf(items));
});

test('thousands of items of one key become charts of a readable size', () => {
  const items = Array.from({ length: 2_000 }, (_, n) => item(`load.item[${n + 1}]`, ''));
  const [section] = sectionsOf(items);
  expect(section.charts).toHaveLength(2_000 / MAX_SERIES);
  expect(section.charts.every((chart) => chart.series.length <= MAX_SERIES)).toBe(true);
  expect(new Set(section.charts.map((chart) => chart.id)).size).toBe(section.charts.length);
});

test('overlapping parts of memory are not stacked', () => {
  const parts = (used: string): Item[] => [
    item('vm.memory.size[total]', 'B', { last: reading(1, '1000') }),
    item('vm.memory.size[used]', 'B', { last: reading(1, used) }),
    item('vm.memory.size[cached]', 'B', { last: reading(1, '300') }),
    item('vm.memory.size[free]', 'B', { last: reading(1, '200') }),
  ];
  expect(sectionsOf(parts('500'))[0].charts[0].stack).toBe(true);
  // Zabbix's "used" is everything but free, so it holds the cache as well.
  expect(sectionsOf(parts('800'))[0].charts[0].stack).toBe(false);
});

test('charts that tell the same in two ways say how in their titles', () => {
  const titles = sectionsOf(['vm.memory.size[pavailable]', 'vm.memory.size[pused]', 'vfs.fs.size[/,pused]'].map((key) => item(key, '%')).concat(item('vfs.fs.size[/,used]', 'B'))).flatMap((section) => section.charts.map((chart) => chart.title));
  expect([...titles].sort()).toEqual(['File systems, space used (%)', 'File systems, space used (bytes)', 'Memory available (%)', 'Memory used (%)']);
});

test('the glance adds up real devices and turns what is free into what is used', () => {
  const counter = { labels: { type: 'counter' } };
  const specs = glanceOf([
    item('vm.memory.size[pavailable]', '%'),
    item('vfs.dev.read[sda,bytes]', 'B', counter), item('vfs.dev.read[sdb,bytes]', 'B', counter), item('vfs.dev.read[loop0,bytes]', 'B', counter),
    item('net.if.in[lo]', 'B', counter), item('net.if.in[eth0]', 'B', counter), item('net.if.out[eth0]', 'B', counter),
  ]);
  expect(specs.map((spec) => spec.title)).toEqual(['Memory used', 'Disk', 'Network']);
  expect(specs[0].series[0]).toMatchObject({ name: 'used', from: 100 });
  expect(specs[1].series[0].sources).toHaveLength(2);
  expect(specs[2].series.map((series) => series.sources.length)).toEqual([1, 1]);
  expect(glanceOf([])).toEqual([]);
});

test('colours: stable, and different as long as there are enough', () => {
  const disks = assignSlots(['sdb', 'sda', 'nvme0n1']);
  expect(assignSlots(['nvme0n1', 'sda', 'sdb'])).toEqual(disks);
  expect(new Set(disks.values()).size).toBe(3);
  const cores = assignSlots(Array.from({ length: 8 }, (_, n) => `core ${n}`));
  expect(new Set(cores.values()).size).toBe(SLOTS);
  expect(assignSlots(['user', 'x']).get('user')).toBe(assignSlots(['user', 'y', 'z']).get('user'));
});

test('rates are exact above 2^53 and unknown after a reset', () => {
  expect(rate({ at: 0, v: '18446744073709551000' }, { at: 2_000, v: '18446744073709551014' })).toBe(7);
  expect(rate({ at: 0, v: '100' }, { at: 1_000, v: '5' })).toBeNull();
  expect(rate({ at: 1_000, v: '1' }, { at: 1_000, v: '5' })).toBeNull();
  expect(rate({ at: 0, v: '0.5' }, { at: 1_000, v: '0.75' })).toBe(0.25);
});

test('values of items as text', () => {
  const counter = item('c', 'B', { value_type: 'unsigned', labels: { type: 'counter' }, last: reading(2_000, '3000'), previous: reading(1_000, '1000') });
  expect(shownValue(counter, 'B/s')).toEqual({ text: '2 kB/s', exact: '3000', number: 2_000 });
  expect(shownValue(item('n', ''), '').text).toBe('–');
  const text = item('t', '', { value_type: 'text', last: { at: 1, at_ns: '1', value: { t: 'text', v: '<b>' } } });
  expect(shownValue(text, '').text).toBe('<b>');
});

test.each([['1.5', 1.5], ['+Inf', Infinity], ['-Inf', -Infinity], ['NaN', null], ['', null], ['x', null]])('parseNumber(%s)', (text, value) => expect(parseNumber(text)).toBe(value));

test('deviation', () => {
  const calm = Array.from({ length: 100 }, (_, n) => 10 + (n % 2));
  expect(deviation(calm)!.size).toBeLessThan(1);
  expect(deviation([...calm, ...new Array<number>(20).fill(40)])!.size).toBeGreaterThan(10);
  expect(deviation([1, 2, 3])).toBeNull();
  expect(deviation(new Array<null>(100).fill(null))).toBeNull();
});
