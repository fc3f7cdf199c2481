import { expect, test } from 'vitest';
import type { Store, Tier } from '../src/api/storage.ts';
import { bytesPerValue, classRows, closedBytesPerValue, outlookOf } from '../src/storage/outlook.ts';

const GIB = 1024 ** 3;
const when = (at: number): string => new Date(at).toISOString().slice(0, 10);
const NOW = Date.UTC(2026, 10, 30);

const store = (change: Partial<Store>): Store => ({
  engine: 'dbengine',
  used_bytes: GIB,
  quota_bytes: 4 * GIB,
  from: 1,
  to: 2,
  values: 3,
  items: 1,
  retention_days: 40,
  log_bytes: 0,
  log_limit_bytes: 0,
  disk: { file_system: 'ext4', total_bytes: 1, free_bytes: 1, used_percent: 0, level: 'ok' },
  disk_full_days: null,
  advice: [],
  tiers: [],
  pairs: [],
  ...change,
});

test('a store that fills says when it is full', () => {
  const outlook = outlookOf(store({}), NOW, when);
  expect(outlook.short).toBe('40 days');
  expect(outlook.long).toContain('fills in 30 days, about 2026-12-30');
  expect(outlook.long).toContain('the oldest file pair goes');
});

test('a full store says what it holds', () => {
  const outlook = outlookOf(store({ used_bytes: 3.9 * GIB, retention_days: 1.5 }), NOW, when);
  expect(outlook.short).toBe('36 hours');
  expect(outlook.long).toContain('is full and holds 36 hours');
});

test('years, single days, nothing known, no limit', () => {
  expect(outlookOf(store({ retention_days: 1095 }), NOW, when).short).toBe('3.0 years');
  expect(outlookOf(store({ retention_days: 5.25 }), NOW, when).short).toMatch(/^5\.[23] days$/);
  expect(outlookOf(store({ retention_days: null }), NOW, when).short).toBe('not known yet');
  expect(outlookOf(store({ quota_bytes: 0, retention_days: null }), NOW, when).short).toBe('no limit');
  expect(outlookOf(store({ engine: 'postgres' }), NOW, when).long).toContain('pieces of tables');
});

test('bytes per value', () => {
  const tier: Tier = { tier: 'values', pairs: 1, bytes: 500, limit_bytes: 0, from: 0, to: 0, values: 1000, pages: 1 };
  expect(bytesPerValue(tier)).toBe(0.5);
  expect(bytesPerValue({ ...tier, values: 0 })).toBeNull();
});

test('kinds of values: their part of the room, and how much smaller they became', () => {
  const rows = classRows([
    { class: 'float', values: 100, bytes: 200 },
    { class: 'text', values: 10, bytes: 600 },
    { class: 'uint', values: 0, bytes: 0 },
  ]);
  expect(rows.map((row) => [row.class, row.share, row.each, row.smaller])).toEqual([
    ['float', 0.25, 2, 8],
    ['text', 0.75, 60, null],
  ]);
  expect(classRows([{ class: 'steady', values: 5, bytes: 0 }])[0]).toMatchObject({ share: 0, each: 0, smaller: null });
});

test('what a value takes is said of closed file pairs, once they hold enough', () => {
  const pair = (growing: boolean, bytes: number, values: number): Store['pairs'][number] => ({ name: 'a', tier: 'values', count: 1, growing, from: 0, to: 1, bytes, values });
  expect(closedBytesPerValue(store({ pairs: [pair(true, 64 * 1024 ** 2, 5_000)] }), 'values')).toBeNull();
  expect(closedBytesPerValue(store({ pairs: [pair(false, 12_288, 1)] }), 'values')).toBeNull();
  expect(closedBytesPerValue(store({ pairs: [pair(true, 64 * 1024 ** 2, 5_000), pair(false, 100_000, 200_000)] }), 'values')).toBe(0.5);
  expect(closedBytesPerValue(store({ pairs: [pair(false, 100_000, 200_000)] }), 'minutes')).toBeNull();
});
