import { expect, test } from 'vitest';
import type { ChartSeries } from '../src/api/types.ts';
import { Buffer } from '../src/chart/buffer.ts';
import { prepare } from '../src/chart/prepare.ts';
import { niceTop, rangeOf, ticksBetween } from '../src/chart/ticks.ts';
import { figuresOf, packageOf } from '../src/format/exposition.ts';
import { axisTimes } from '../src/time/clock.ts';

function series(at: number[], avg: (number | null)[], more: Partial<ChartSeries> = {}): ChartSeries {
  return { id: '1', host: 'h', key: 'k', name: 'n', units: '', labels: null, value_type: 'float', source: 'history', at, avg, ...more };
}

const one = { sources: [0], mirror: false };

test('a live value goes on where the answer ended', () => {
  const buffer = new Buffer(series([1_000, 2_000], [1, 2]), 1_000, 1_000);
  buffer.push(3_000, 3);
  buffer.push(3_000, 9);
  buffer.push(2_500, 9);
  expect([buffer.at, buffer.avg]).toEqual([[1_000, 2_000, 3_000], [1, 2, 3]]);
});

test('live values are folded into the columns of a long range', () => {
  const buffer = new Buffer(series([0, 10_000], [1, 4], { min: [0, 4], max: [2, 4] }), 10_000, 1_000);
  buffer.push(11_000, 8);
  expect([buffer.avg[1], buffer.min![1], buffer.max![1]]).toEqual([6, 4, 8]);
  buffer.push(20_500, 5);
  expect(buffer.at).toEqual([0, 10_000, 20_000]);
  expect([buffer.avg[2], buffer.min![2], buffer.max![2]]).toEqual([5, 5, 5]);
});

test('silence is a gap, read or live; an item without interval has none', () => {
  const buffer = new Buffer(series([0, 1_000, 9_000], [1, 1, 1]), 1_000, 1_000);
  expect(buffer.avg).toEqual([1, 1, null, 1]);
  buffer.push(20_000, 1);
  expect(buffer.avg).toEqual([1, 1, null, 1, null, 1]);
  expect(new Buffer(series([0, 90_000], [1, 1]), 1_000, 0).avg).toEqual([1, 1]);
});

test('live counters are drawn as rates', () => {
  const buffer = new Buffer(series([0], [5]), 1_000, 1_000);
  buffer.pushCounter(1_000, '100');
  buffer.pushCounter(2_000, '107');
  buffer.pushCounter(3_000, '3');
  buffer.pushCounter(4_000, '5');
  expect(buffer.avg).toEqual([5, 7, 2]);
});

test('old values are forgotten, but for the one a line starts from', () => {
  const buffer = new Buffer(series(Array.from({ length: 200 }, (_, n) => n * 1_000), new Array<number>(200).fill(1)), 1_000, 1_000);
  buffer.trim(150_000);
  expect(buffer.at[0]).toBe(149_000);
});

test('lines that are a few milliseconds apart share a grid', () => {
  const a = new Buffer(series([1_000, 2_000, 3_000], [1, 2, 3]), 0, 1_000);
  const b = new Buffer(series([1_004, 1_998, 3_010], [10, 20, 30]), 0, 1_000);
  const { at, lines } = prepare([a, b], { stack: false, series: [one, one] });
  expect(at).toEqual([1_000, 2_000, 3_000]);
  expect(lines[1].values).toEqual([10, 20, 30]);
});

test('a stack adds up, holds a late part for a moment, and keeps gaps', () => {
  const a = new Buffer(series([0, 1_000, 2_000, 3_000, 4_000], [1, 1, 1, null, 1]), 0, 1_000);
  const b = new Buffer(series([0, 1_000, 3_000, 4_000], [2, 2, null, 2]), 0, 1_000);
  const { lines } = prepare([a, b], { stack: true, series: [one, one] });
  expect(lines[0].drawn).toEqual([1, 1, 1, null, 1]);
  expect(lines[1].drawn).toEqual([3, 3, 3, null, 3]);
  expect(lines[1].values).toEqual([2, 2, undefined, null, 2]);
});

test('sums, mirrors and complements', () => {
  const a = new Buffer(series([0, 1_000], [1, 2], { min: [0, 1], max: [2, 3] }), 1_000, 1_000);
  const b = new Buffer(series([0, 1_000], [10, 20]), 0, 1_000);
  const c = new Buffer(series([0, 1_000], [30, null]), 0, 1_000);
  const { lines, band } = prepare([a, b, c], {
    stack: false,
    series: [{ sources: [0], mirror: true, from: 100 }, { sources: [0, 0], mirror: false }],
  });
  expect(band).toBe(true);
  expect(lines[0].values).toEqual([99, 98]);
  expect(lines[0].drawn).toEqual([-99, -98]);
  expect([lines[0].min, lines[0].max]).toEqual([[-100, -99], [-98, -97]]);
  expect(lines[1].values).toEqual([40, 20]);
});

test('no buffers, no columns', () => expect(prepare([], { stack: false, series: [] })).toEqual({ at: [], lines: [], band: false }));

test('tops are round and do not tremble', () => {
  expect([0, 0.9, 1.2, 37, 41, 700, 999].map((value) => niceTop(value, false))).toEqual([1, 1, 1.5, 40, 50, 800, 1_000]);
  expect(niceTop(3 * 1024 ** 3, true)).toBe(3 * 1024 ** 3);
  expect(niceTop(900 * 1024, true)).toBe(1024 ** 2);
});

test('ranges: from zero, up to what is always shown', () => {
  expect(rangeOf(3, 37, undefined, false)).toEqual([0, 40]);
  expect(rangeOf(3, 37, 100, false)).toEqual([0, 100]);
  expect(rangeOf(-12, 4, undefined, false)).toEqual([-15, 4]);
  expect(rangeOf(null, null, 100, false)).toEqual([0, 100]);
  expect(rangeOf(0, 0, undefined, false)).toEqual([0, 1]);
});

test('ticks are numbers that are read easily', () => {
  const ticks = (high: number, count: number): string => ticksBetween(0, high, count, false).join(' ');
  expect(ticks(3, 4)).toBe('0 1 2 3');
  expect(ticks(1.5, 4)).toBe('0 0.5 1 1.5');
  expect(ticks(1, 4)).toBe('0 0.2 0.4 0.6 0.8 1');
  expect(ticks(10, 4)).toBe('0 2 4 6 8 10');
  expect(ticks(6, 4)).toBe('0 2 4 6');
  expect(ticks(0.3, 4)).toBe('0 0.1 0.2 0.3');
  expect(ticks(0.3, 2)).toBe('0 0.1 0.2 0.3');
  expect(ticks(4000, 4)).toBe('0 1000 2000 3000 4000');
  for (const lead of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) for (const power of [1e-6, 1, 1e9]) for (const count of [2, 4, 6]) {
    for (const tick of ticksBetween(0, lead * power, count, false)) expect(Number((tick / power).toPrecision(3))).toBeCloseTo(tick / power, 9);
  }
});

test('ticks reach the outer end', () => {
  expect(ticksBetween(0, 80, 4, false)).toEqual([0, 20, 40, 60, 80]);
  expect(ticksBetween(0, 100, 2, false)).toEqual([0, 50, 100]);
  expect(ticksBetween(-40, 40, 2, false)).toEqual([-40, 0, 40]);
  expect(ticksBetween(0, 8 * 1024 ** 3, 4, true).map((tick) => tick / 1024 ** 3)).toEqual([0, 2, 4, 6, 8]);
  expect(ticksBetween(0, 0, 4, false)).toEqual([0]);
  for (const high of [1, 1.5, 2, 3, 4, 5, 6, 8, 1e9]) for (const count of [2, 4, 6]) expect(ticksBetween(0, high, count, false).length).toBeLessThan(10);
});

test('the time axis says the day where it changes', () => {
  const hours = [22, 23, 24, 25].map((hour) => new Date(2026, 2, 1, hour).getTime());
  expect(axisTimes(hours, 3_600_000)).toEqual(['22:00', '23:00', '2 Mar', '01:00']);
  expect(axisTimes([new Date(2026, 2, 1, 9, 5, 10).getTime()], 10_000)).toEqual(['09:05:10']);
});

test('the exposition is read without buckets', () => {
  const figures = figuresOf('# HELP x y\ntidemark_a_total{kind="z"} 5\ntidemark_b_bucket{le="1"} 1\ngo_threads 7\nbad line\ninf_gauge +Inf 17\n');
  expect(figures.map(({ id, value, counter }) => [id, value, counter])).toEqual([
    ['tidemark_a_total{kind="z"}', 5, true],
    ['go_threads', 7, false],
    ['inf_gauge', Infinity, false],
  ]);
  expect([packageOf('tidemark_histcache_used_bytes'), packageOf('go_threads')]).toEqual(['histcache', 'go']);
});
