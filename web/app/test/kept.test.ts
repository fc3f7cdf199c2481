import { expect, test } from 'vitest';
import { keptSeconds, keptText, loses } from '../src/storage/kept.ts';

test('times are read as people write them', () => {
  const read = Object.fromEntries(['', '31d', '31 days', '12h', '90m', '2y', '1.5d', '4w'].map((text) => [text, keptSeconds('Values', text)]));
  expect(read).toEqual({ '': 0, '31d': 2_678_400, '31 days': 2_678_400, '12h': 43_200, '90m': 5_400, '2y': 63_072_000, '1.5d': 129_600, '4w': 2_419_200 });
});

test.each(['soon', '31', '-1d', '30m', '26y'])('%s is refused', (text) => {
  expect(() => keptSeconds('Values', text)).toThrow(/^Values: /);
});

test('times are written so that they are read the same', () => {
  for (const seconds of [3_600, 5_400, 86_400, 2_678_400, 63_072_000]) expect(keptSeconds('', keptText(seconds))).toBe(seconds);
});

test('what a shorter time deletes', () => {
  const now = 100 * 86_400_000;
  expect(loses(10 * 86_400, 0, 50 * 86_400_000, now)).toBe(90 * 86_400_000);
  expect(loses(60 * 86_400, 0, 50 * 86_400_000, now)).toBeNull();
  expect(loses(10 * 86_400, 5 * 86_400, 50 * 86_400_000, now)).toBeNull();
  expect(loses(0, 86_400, 50 * 86_400_000, now)).toBeNull();
  expect(loses(86_400, 0, 0, now)).toBeNull();
});
