import { expect, test } from 'vitest';
import type { PromSeries } from '../src/api/client.ts';
import { choicesFor, placeOf, taken } from '../src/explore/complete.ts';
import { explained } from '../src/explore/explain.ts';
import { csvOf, jsonOf } from '../src/explore/export.ts';
import { tokensOf } from '../src/explore/tokens.ts';
import { metricsOf, unitsOf } from '../src/explore/units.ts';

const KNOWN = { metrics: ['net_if_in', 'net_if_out', 'system_cpu_util'], labels: ['__name__', 'host', 'ifname'], values: ['db-1', 'db"2'] };

// | stands for the cursor.
function offered(text: string): { kind: string; list: string } {
  const cursor = text.indexOf('|');
  const place = placeOf(text.replace('|', ''), cursor);
  return { kind: place.kind, list: choicesFor(place, KNOWN).slice(0, 3).map((choice) => choice.text).join(' ') };
}

function take(text: string, choice: string): string {
  const cursor = text.indexOf('|');
  const whole = text.replace('|', '');
  const place = placeOf(whole, cursor);
  const found = choicesFor(place, KNOWN).find((one) => one.text === choice)!;
  const result = taken(whole, place, found);
  return `${result.text.slice(0, result.cursor)}|${result.text.slice(result.cursor)}`;
}

test('completion knows where it is', () => {
  expect(offered('net|')).toEqual({ kind: 'name', list: 'net_if_in net_if_out' });
  expect(offered('rate(sys|')).toEqual({ kind: 'name', list: 'system_cpu_util' });
  expect(offered('ra|')).toMatchObject({ kind: 'name', list: expect.stringMatching(/^rate\(\)/) as string });
  expect(offered('net_if_in{|')).toEqual({ kind: 'label', list: 'host ifname' });
  expect(offered('net_if_in{host="db-1",i|}')).toEqual({ kind: 'label', list: 'ifname' });
  expect(offered('net_if_in{host="|')).toEqual({ kind: 'value', list: 'db-1 db"2' });
  expect(offered('net_if_in{host=~"db|')).toEqual({ kind: 'value', list: 'db-1 db"2' });
  expect(offered('sum by (h|')).toEqual({ kind: 'label', list: 'host' });
  expect(offered('rate(x[5|')).toEqual({ kind: 'duration', list: '5m' });
  expect(offered('x{a="b"}|').kind).toBe('none');
  expect(offered('x{a="b"|').kind).toBe('none');
  expect(offered('|')).toMatchObject({ kind: 'name' });
  expect(placeOf('m{l="x', 6)).toMatchObject({ label: 'l', metric: 'm', typed: 'x' });
});

test('what is chosen goes where the cursor is', () => {
  expect(take('sum(net|)', 'net_if_in')).toBe('sum(net_if_in|)');
  expect(take('ra|', 'rate()')).toBe('rate(|)');
  expect(take('ra|(x)', 'rate()')).toBe('rate|(x)');
  expect(take('x{host="|', 'db-1')).toBe('x{host="db-1"|');
  expect(take('x{host=|}', 'db"2')).toBe('x{host="db\\"2"|}');
  expect(take('x{host="|"}', 'db-1')).toBe('x{host="db-1|"}');
});

test('an expression in words, from the inside outwards', () => {
  const words = (text: string): string[] => explained(text).map((line) => `${line.code}: ${line.text}`);
  expect(words('sum by (host) (rate(net_if_in{ifname=~"eth.*", host!="x"}[5m])) * 8')).toEqual([
    'net_if_in{ifname=~"eth.*", host!="x"}: all series of net_if_in where ifname matches eth.* and host is not x',
    '[5m]: their values of the last 5m, at each step',
    'rate(…): growth per second of a counter over the range; resets are taken care of',
    'sum by (host): added up, one result for each host',
    '* 8: times 8',
  ]);
  expect(words('max(x) without (cpu) > 5')).toEqual(['x: all series of x', 'max without (…): the largest, one result for each combination of all labels but cpu', '> 5: only where it is greater than 5']);
  expect(words('avg_over_time(x[1h:1m] offset 1d)')).toEqual(['x: all series of x', '[1h:1m]: worked out again for each 1m of the last 1h', 'offset 1d: as it was 1d before', `avg_over_time(…): mean of the values in the range`]);
  expect(words('topk(5, x)')).toEqual(['x: all series of x', 'topk(…): only so many of the largest, all series together']);
  expect(words('a / on (host) b')).toEqual(['a: all series of a', '/: divided by …', 'on (host): series belong together whose labels named here are equal: host', 'b: all series of b']);
  expect(words('')).toEqual([]);
});

test('whatever is typed, nothing hangs', () => {
  const pieces = ['sum', 'by', '(', ')', '{', '}', '[', ']', '"', 'x', '=', '5m', ' ', '*', '\\', ',', ':', 'offset', '#', "'"];
  let seed = 7;
  for (let round = 0; round < 200; round++) {
    let text = '';
    for (let n = 0; n < 12; n++) text += pieces[(seed = (seed * 48_271) % 2_147_483_647) % pieces.length];
    expect(tokensOf(text).map((token) => text.slice(token.from, token.to))).toEqual(tokensOf(text).map((token) => token.text));
    explained(text);
    for (let cursor = 0; cursor <= text.length; cursor += 3) choicesFor(placeOf(text, cursor), KNOWN);
  }
});

test('an answer as a file', () => {
  const series: PromSeries[] = [
    { metric: { __name__: 'x', host: 'a"b' }, values: [[1, '1.5'], [2, 'NaN']] },
    { metric: {}, values: [[2, '3']] },
  ];
  expect(csvOf(series)).toBe('time,"x{host=""a""b""}","value"\r\n1970-01-01T00:00:01.000Z,1.5,\r\n1970-01-01T00:00:02.000Z,NaN,3\r\n');
  expect(JSON.parse(jsonOf('x', series))).toEqual({ query: 'x', series: [{ labels: { __name__: 'x', host: 'a"b' }, values: [[1000, '1.5'], [2000, 'NaN']] }, { labels: {}, values: [[2000, '3']] }] });
});

test('the unit of an expression is that of its metrics, where arithmetic does not change it', () => {
  const units = new Map([['net_if_in', 'B'], ['net_if_out', 'B'], ['system_cpu_util', '%'], ['system_boottime', 'unixtime'], ['load', '']]);
  const all: [string, string][] = [
    ['system_cpu_util', '%'],
    ['system_cpu_util{host="net_if_in"}[5m] offset 1d', '%'],
    ['max by (host) (system_cpu_util)', '%'],
    ['topk(5, avg_over_time(system_cpu_util[5m]))', '%'],
    ['rate(net_if_in[1m])', 'B/s'],
    ['sum(rate(net_if_in[1m])) by (host) > 10', 'B/s'],
    ['net_if_in or net_if_out', 'B'],
    ['rate(load[1m])', '/s'],
    ['rate(net_if_in[1m]) * 8', ''],
    ['net_if_in / net_if_out', ''],
    ['net_if_in or system_cpu_util', ''],
    ['count(net_if_in)', ''],
    ['net_if_in > bool 3', ''],
    ['timestamp(net_if_in)', ''],
    ['system_boottime', ''],
    ['unknown_metric', ''],
    ['1 + 1', ''],
    ['sum by (host', ''],
  ];
  for (const [expression, unit] of all) expect([expression, unitsOf(expression, units)]).toEqual([expression, unit]);
  expect(metricsOf('sum by (host) (rate(net_if_in{ifname="x"}[1m])) / on (host) system_cpu_util')).toEqual(['net_if_in', 'system_cpu_util']);
});
