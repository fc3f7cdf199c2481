import { expect, test } from 'vitest';
import type { Item } from '../src/api/types.ts';
import { sectionsOf } from '../src/item/sections.ts';
import { commonTitle, withoutSection } from '../src/item/titles.ts';

let next = 1;

function item(key: string, name: string, units = '', more: Partial<Item> = {}): Item {
  return {
    id: String(next++), host_id: '1', host: 'h', key, name, value_type: 'float', units, kind: 'configured', labels: null,
    interval_ms: 1_000, enabled: true, state: 'ok', error: '', last: null, previous: null, ...more,
  };
}

const rises = { type: 'counter' };
const mongo = (key: string, name: string, units = '', labels: Record<string, string> = {}): Item => item(key, name, units, { kind: 'declared', labels: { section: 'mongodb', ...labels } });

/** Charts as "title: line, line", those that are stacked with a sign. */
const chartsOf = (items: Item[]): string[] => sectionsOf(items).flatMap((section) => section.charts.map((chart) => `${chart.title}${chart.stack ? ' +' : ''}: ${chart.series.map((one) => one.name + (one.mirror ? '↓' : '')).join(', ')}`));

test.each([
  [['Busy: poller', 'Busy: http poller'], 'Zabbix', { title: 'Busy', lines: ['poller', 'http poller'] }],
  [['MongoDB shop.a: Operations: commands', 'MongoDB shop.b: Operations: commands'], 'MongoDB', { title: 'Operations: commands', lines: ['shop.a', 'shop.b'] }],
  [['Time in reads', 'Time in writes'], 'X', { title: 'Time', lines: ['reads', 'writes'] }],
  [['MongoDB: Connections, current', 'MongoDB: Connections, active'], 'MongoDB', { title: 'Connections', lines: ['current', 'active'] }],
  [['Inserts', 'Deletes'], 'X', null],
  [['MongoDB: a', 'MongoDB: b'], 'MongoDB', null],
  [['Same', 'Same'], 'X', { title: 'Same', lines: ['', ''] }],
])('commonTitle(%j, %s)', (names, section, want) => expect(commonTitle(names, section)).toEqual(want));

test('a name without the name of its section', () => {
  expect(withoutSection('MongoDB: uptime', 'MongoDB')).toBe('Uptime');
  expect(withoutSection('MongoDB', 'MongoDB')).toBe('MongoDB');
  expect(withoutSection('Mongoose: legs', 'Mongo')).toBe('Mongoose: legs');
});

test('items that no rule knows are titled by their names, never by their keys', () => {
  expect(
    chartsOf([
      item('zabbix[process,poller,avg,busy]', 'Busy: poller', '%'),
      item('zabbix[process,trapper,avg,busy]', 'Busy: trapper', '%'),
      item('zabbix[wcache,history,pused]', 'History cache: used', '%'),
      item('zabbix[vcache,cache,hits]', 'Value cache: hits per second'),
      item('zabbix[vcache,cache,misses]', 'Value cache: misses per second'),
      item('zabbix[queue]', 'Items in the queue'),
      item('shop.orders[eu]', 'Orders of eu'),
      item('shop.orders[us]', 'Orders of us'),
      item('nginx.connections.active', 'Nginx: Connections active'),
      item('nginx.connections.waiting', 'Nginx: Connections waiting'),
      item('nginx.requests.total', 'Nginx: Requests total'),
    ]),
  ).toEqual([
    'Connections: active, waiting',
    'Requests total: Requests total',
    'Orders: eu, us',
    'Busy: poller, trapper',
    'History cache: used: History cache: used',
    'Items in the queue: Items in the queue',
    'Value cache, per second: hits, misses',
  ]);
});

test("MongoDB's own counters are grouped by what belongs together", () => {
  const at = 'db-1:27017';
  const items = [
    mongo(`mongodb.operations[${at},insert]`, 'MongoDB: Inserts', '', rises),
    mongo(`mongodb.operations[${at},query]`, 'MongoDB: Queries', '', rises),
    mongo(`mongodb.network[${at},in]`, 'MongoDB: Bytes received', 'B', rises),
    mongo(`mongodb.network[${at},out]`, 'MongoDB: Bytes sent', 'B', rises),
    mongo(`mongodb.cache[${at},used]`, 'MongoDB: Cache, used', 'B'),
    mongo(`mongodb.cache[${at},size]`, 'MongoDB: Cache, size', 'B'),
    mongo(`mongodb.collection[${at},shop,orders,total.time]`, 'MongoDB shop.orders: Time in requests', 's', rises),
    mongo(`mongodb.collection[${at},shop,carts,total.time]`, 'MongoDB shop.carts: Time in requests', 's', rises),
    mongo(`mongodb.locks[${at},Global,shared.time]`, 'MongoDB Global: Time waited for locks, shared', 's', rises),
    mongo(`mongodb.checkpoint[${at},last]`, 'MongoDB: Time of the last checkpoint', 's'),
    item(`mongo.instance[${at},requests]`, `MongoDB ${at}: requests`),
    item(`mongo.instance[${at},errors]`, `MongoDB ${at}: errors`),
  ];
  expect(chartsOf(items)).toEqual([
    'Requests on the wire: Errors, Requests',
    'Operations +: Inserts, Queries',
    'Traffic: Bytes received, Bytes sent↓',
    'Time waited for locks, shared: Global, shared',
    'Cache: used, size',
    'Time of the last checkpoint: Time of the last checkpoint',
    'Collections: time in requests +: shop.carts, shop.orders',
  ]);
  const both = chartsOf([...items, mongo('mongodb.operations[db-2:27017,insert]', 'MongoDB: Inserts', '', rises), mongo('mongodb.operations[db-2:27017,query]', 'MongoDB: Queries', '', rises)]);
  expect(both.filter((chart) => chart.startsWith('Operations'))).toEqual(['Operations · db-1:27017 +: Inserts, Queries', 'Operations · db-2:27017 +: Inserts, Queries']);
});
