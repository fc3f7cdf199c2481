import { describe, expect, test } from 'vitest';
import type { Widget } from '../src/api/dashboards.ts';
import type { Host, Item } from '../src/api/types.ts';
import { legendOf, lineNames } from '../src/dashboard/chartspec.ts';
import { dashboardOf } from '../src/dashboard/fromhost.ts';
import { bottomOf, compacted, fitted, inOrder, movedDown, placed, type Rect, stepped } from '../src/dashboard/grid.ts';
import { Limiter } from '../src/dashboard/limiter.ts';
import { blocksOf } from '../src/dashboard/blocks.ts';
import { chosenValues, expanded, expandedWidget, fits, inPromQL, noHost } from '../src/dashboard/variables.ts';
import { mistakeIn, severityAt, tidy, trimmed } from '../src/dashboard/tidy.ts';

const rect = (x: number, y: number, w: number, h: number): Rect => ({ x, y, w, h });
const text = (rects: Rect[]): string => rects.map(({ x, y, w, h }) => `${x},${y} ${w}x${h}`).join('; ');

function overlaps(rects: Rect[]): boolean {
  return rects.some((a, n) => rects.some((b, m) => m > n && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h));
}

describe('the grid', () => {
  test('what is in the way goes down', () => {
    expect(text(placed([rect(0, 0, 12, 4), rect(12, 0, 12, 4)], 1, rect(0, 0, 12, 4)))).toBe('0,4 12x4; 0,0 12x4');
  });
  test('gaps close upwards', () => {
    expect(text(compacted([rect(0, 5, 4, 2), rect(8, 9, 4, 2), rect(0, 20, 4, 2)]))).toBe('0,0 4x2; 8,0 4x2; 0,2 4x2');
  });
  test('a widget stays inside', () => {
    expect(fitted(rect(30, -2, 40, 0))).toEqual(rect(0, 0, 24, 1));
    expect(fitted(rect(20, 0, 8, 2))).toEqual(rect(16, 0, 8, 2));
  });
  test('two widgets change places by the keyboard, and back', () => {
    const begin = [rect(0, 0, 24, 3), rect(0, 3, 24, 5)];
    const down = placed(begin, 0, movedDown(begin, 0));
    expect(text(down)).toBe('0,5 24x3; 0,0 24x5');
    expect(text(placed(down, 0, stepped(down[0], 'ArrowUp', false)!))).toBe('0,0 24x3; 0,3 24x5');
    expect(movedDown(down, 0)).toEqual(down[0]);
  });
  test('arrows with Shift resize', () => {
    expect(stepped(rect(1, 1, 4, 4), 'ArrowRight', true)).toEqual(rect(1, 1, 5, 4));
    expect(stepped(rect(1, 1, 4, 4), 'ArrowUp', true)).toEqual(rect(1, 1, 4, 3));
    expect(stepped(rect(1, 1, 4, 4), 'x', true)).toBeNull();
  });
  test('nothing ever overlaps, whatever is moved where', () => {
    let seed = 1;
    const random = (n: number): number => (seed = (seed * 48_271) % 2_147_483_647) % n;
    let all = Array.from({ length: 12 }, () => rect(random(24), random(20), 1 + random(12), 1 + random(6)));
    all = compacted(all.map(fitted));
    for (let round = 0; round < 300; round++) {
      all = placed(all, random(12), rect(random(30) - 3, random(40) - 3, 1 + random(26), 1 + random(8)));
      expect(overlaps(all)).toBe(false);
      expect(Math.min(...all.map((one) => one.y))).toBe(0);
    }
    expect(inOrder(all)).toHaveLength(12);
    expect(bottomOf(all)).toBeGreaterThan(0);
  });
});

describe('variables', () => {
  test('stand for what was chosen', () => {
    expect(expanded('$host and ${host}s, $other $', { host: 'db-1' })).toBe('db-1 and db-1s, $other $');
    expect(expanded('x{h="$h"}', { h: 'a"b\\c' }, inPromQL)).toBe('x{h="a\\"b\\\\c"}');
  });
  test('of a widget are replaced in all its texts', () => {
    const widget: Widget = { kind: 'chart', title: '$h', x: 0, y: 0, w: 1, h: 1, items: [{ host: '$h', key: 'k[$h]' }], queries: [{ expr: '"$h"', legend: '$h' }] };
    const out = expandedWidget(widget, { h: '"' });
    expect([out.title, out.items![0].host, out.items![0].key, out.queries![0].expr, out.queries![0].legend]).toEqual(['"', '"', 'k["]', '"\\""', '"']);
  });
  test('are in the address, else the default, else the first choice', () => {
    const variables = [{ name: 'a', kind: 'list' as const }, { name: 'b', kind: 'list' as const, default: 'y' }, { name: 'c', kind: 'list' as const }];
    expect(chosenValues(variables, new URLSearchParams('var-a=z'), { a: ['x'], b: ['x'], c: ['x'] })).toEqual({ a: 'z', b: 'y', c: 'x' });
  });
  test('keys with *', () => {
    expect(fits('net.if.in[*]', 'net.if.in[eth0]')).toBe(true);
    expect(fits('net.if.in[*]', 'net.if.out[eth0]')).toBe(false);
    expect(fits('a.b', 'axb')).toBe(false);
    expect(fits('*', 'a\nb')).toBe(true);
  });
});

describe('text', () => {
  test('becomes blocks', () => {
    expect(blocksOf('# A\ntext\nmore\n\n- one\n- two\n1. x\n```\n# no\n```\nend')).toEqual([
      { kind: 'heading', level: 1, text: 'A' },
      { kind: 'paragraph', text: 'text\nmore' },
      { kind: 'list', ordered: false, lines: ['one', 'two'] },
      { kind: 'list', ordered: true, lines: ['x'] },
      { kind: 'code', text: '# no' },
      { kind: 'paragraph', text: 'end' },
    ]);
  });
});

describe('widgets', () => {
  test('names of lines say what differs', () => {
    const item = (host: string, name: string) => ({ host, name });
    expect(lineNames([{ ref: { name: 'in' }, item: item('a', 'x'), many: false }, { ref: {}, item: item('a', 'y'), many: false }])).toEqual(['in', 'y']);
    expect(lineNames([{ ref: {}, item: item('a', 'x'), many: true }, { ref: {}, item: item('b', 'x'), many: true }])).toEqual(['a', 'b']);
    expect(lineNames([{ ref: {}, item: item('a', 'x'), many: true }, { ref: {}, item: item('b', 'y'), many: true }])).toEqual(['a x', 'b y']);
    expect(legendOf('{{host}}: {{ mode }}{{none}}', { host: 'a', mode: 'b' })).toBe('a: b');
  });
  test('a number takes the colour of the highest threshold that it reached', () => {
    const thresholds = [{ value: 10, severity: 'high' as const }, { value: 5, severity: 'warning' as const }];
    expect([severityAt(4, { thresholds }), severityAt(5, { thresholds }), severityAt(99, { thresholds }), severityAt(null, { thresholds })]).toEqual([null, 'warning', 'high', null]);
  });
  test('a form leaves out what the kind does not have', () => {
    const all: Widget = { kind: 'text', title: '', x: 0, y: 0, w: 1, h: 1, items: [{ host: '', key: '' }], queries: [{ expr: ' ' }], stack: true, units: 'B', text: 'hello', limit: 5 };
    expect(trimmed(all)).toEqual({ kind: 'text', x: 0, y: 0, w: 1, h: 1, text: 'hello' });
    expect(mistakeIn({ ...all, kind: 'chart' })).toMatch(/Name an item/);
    expect(mistakeIn({ ...all, kind: 'chart', items: [{ host: '', key: 'k' }] })).toMatch(/host or the group/);
    expect(mistakeIn({ ...all, kind: 'graph' })).toMatch(/host of the graph/);
    expect(mistakeIn(all)).toBe('');
  });
  test('a dashboard leaves out what is empty', () => {
    expect(tidy({ name: ' A ', description: '', everyone: false, variables: [{ name: 'h', kind: 'list', title: '', values: ['a', ''] }], widgets: [] })).toEqual({ name: 'A', variables: [{ name: 'h', kind: 'list', values: ['a'] }], widgets: [] });
  });
});

test('a few questions at a time, and a failure gives its place back', async () => {
  const limiter = new Limiter(2);
  let running = 0;
  let most = 0;
  const one = async (fails: boolean): Promise<void> => {
    running++;
    most = Math.max(most, running);
    await Promise.resolve();
    running--;
    if (fails) throw new Error('no');
  };
  const all = await Promise.allSettled(Array.from({ length: 9 }, (_one, n) => limiter.run(() => one(n % 3 === 0))));
  expect(most).toBe(2);
  expect(all.filter((result) => result.status === 'rejected')).toHaveLength(3);
});

test('a dashboard of a host', () => {
  const host = { host: 'db-1', name: 'Database', groups: ['Linux'] } as unknown as Host;
  const item = (id: number, key: string, name: string): Item =>
    ({ id: String(id), host_id: '1', host: 'db-1', key, name, value_type: 'float', units: '%', kind: 'declared', labels: {}, interval_ms: 1000, enabled: true, state: 'ok', error: '', last: null, previous: null }) as Item;
  const items = [item(1, 'system.cpu.util[all,used,last]', 'used'), item(2, 'system.cpu.load[all,avg1]', 'load'), item(3, 'vfs.fs.size[/,pused]', 'disk')];
  const dashboard = dashboardOf(host, items);
  expect(dashboard.name).toBe('Database at a glance');
  expect(dashboard.variables).toEqual([{ name: 'host', title: 'Host', kind: 'host', default: 'db-1', group: 'Linux' }]);
  expect(dashboard.widgets.flatMap((widget) => widget.items ?? []).every((ref) => ref.host === '$host')).toBe(true);
  expect(dashboard.widgets.some((widget) => widget.kind === 'problems' && widget.host === '$host')).toBe(true);
  expect(overlaps(dashboard.widgets)).toBe(false);
  expect(text(compacted(dashboard.widgets))).toBe(text(dashboard.widgets));
});

test('a widget of a variable that no host fits says so', () => {
  const widget: Widget = { kind: 'chart', x: 0, y: 0, w: 12, h: 6, items: [{ host: '${host}', key: 'system.cpu.load' }] };
  expect(noHost(widget, { host: 'no host in group Empty' })).toBe('no host in group Empty');
  expect(noHost(widget, {})).toBeUndefined();
  // Once a host is chosen its name stands there.
  expect(noHost(expandedWidget(widget, { host: 'db1' }), { host: 'no host in group Empty' })).toBeUndefined();
});
