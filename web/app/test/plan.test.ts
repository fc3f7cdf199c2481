import { expect, test } from 'vitest';
import { indexCommand, planText } from '../src/requests/plan.tsx';

test('a plan in words', () => {
  expect(planText({ summary: 'COLLSCAN', scans: true, sorts: false })).toBe('COLLSCAN: reads the whole collection');
  expect(planText({ summary: 'IXSCAN {a: 1}', scans: false, sorts: true })).toBe('IXSCAN {a: 1}, sorts in memory');
  expect(planText({ summary: '', scans: false, sorts: false })).toBe('not told');
});

test('the command that makes an index can be typed as it is', () => {
  expect(indexCommand('orders', '{status: 1, created: -1}')).toBe('db.getCollection("orders").createIndex({status: 1, created: -1})');
  expect(indexCommand('a"b', '{l.x: 1, größe: -1}')).toBe('db.getCollection("a\\"b").createIndex({"l.x": 1, "größe": -1})');
});
