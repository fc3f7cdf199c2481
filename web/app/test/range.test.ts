import { expect, test } from 'vitest';
import { autoLength, durationCode, parseDuration, parseRange, PRESETS, rangeFromParams, rangeToParams, scaled, shifted } from '../src/time/range.ts';

const NOW = new Date(2026, 2, 15, 14, 30, 0).getTime();
const at = (...parts: [number, number, number, number?, number?]): number => new Date(parts[0], parts[1] - 1, parts[2], parts[3] ?? 0, parts[4] ?? 0).getTime();

test.each([
  ['90m', 5_400_000],
  ['1h30m', 5_400_000],
  ['2 days', 172_800_000],
  ['1.5 h', 5_400_000],
  ['45 sec', 45_000],
  ['', null],
  ['h', null],
  ['5 parsecs', null],
  ['5m!', null],
])('parseDuration(%s)', (text, ms) => expect(parseDuration(text)).toBe(ms));

test.each(PRESETS)('the code of %s reads back', (code) => {
  expect(durationCode(parseDuration(code)!)).toBe(code);
});

test.each([
  ['2h', { kind: 'last', ms: 7_200_000 }],
  ['last 3 days', { kind: 'last', ms: 259_200_000 }],
  ['hour', { kind: 'last', ms: 3_600_000 }],
  ['yesterday', { kind: 'span', from: at(2026, 3, 14), to: at(2026, 3, 15) }],
  ['today', { kind: 'span', from: at(2026, 3, 15), to: NOW }],
  ['yesterday 9:00 .. 11:30', { kind: 'span', from: at(2026, 3, 14, 9), to: at(2026, 3, 14, 11, 30) }],
  ['9:00..10:00', { kind: 'span', from: at(2026, 3, 15, 9), to: at(2026, 3, 15, 10) }],
  ['9:00 .. now', { kind: 'span', from: at(2026, 3, 15, 9), to: NOW }],
  ['2026-03-01..03-02', { kind: 'span', from: at(2026, 3, 1), to: at(2026, 3, 3) }],
  ['2026-03-01 09:00 to 2026-03-01 10:00', { kind: 'span', from: at(2026, 3, 1, 9), to: at(2026, 3, 1, 10) }],
  ['2026-03-01T09:00 - 10:15', { kind: 'span', from: at(2026, 3, 1, 9), to: at(2026, 3, 1, 10, 15) }],
  ['2026-03-01 09:00', { kind: 'span', from: at(2026, 3, 1, 9), to: at(2026, 3, 1, 10) }],
])('parseRange(%s)', (text, range) => expect(parseRange(text, NOW)).toEqual(range));

test.each(['', 'soon', '25:00', '2026-13-01', '2026-02-30', '10:00..9:00', '1s', '900y', '9:00..10:00..11:00', 'toString'])('parseRange(%s) says what was expected', (text) => {
  const answer = parseRange(text, NOW);
  expect(typeof answer).toBe('string');
  expect((answer as string).length).toBeGreaterThan(10);
});

test('a range survives the address', () => {
  for (const range of [
    { kind: 'auto' },
    { kind: 'last', ms: 5_400_000 },
    { kind: 'span', from: NOW - 12_345, to: NOW },
  ] as const) {
    const params = new URLSearchParams('q=up&last=9h&from=1&to=2');
    rangeToParams(range, params);
    expect(params.get('q')).toBe('up');
    expect(rangeFromParams(new URLSearchParams(params.toString()))).toEqual(range);
  }
});

test.each(['last=zzz', 'last=1s', 'from=5', 'from=20&to=10', 'from=a&to=b', 'last=9999y', 'from=Infinity&to=Infinity'])('the odd address %s is the automatic range', (text) => {
  expect(rangeFromParams(new URLSearchParams(text))).toEqual({ kind: 'auto' });
});

test('the automatic range grows with the store', () => {
  expect([0, 59_000, 100_000, 280_000, 3_000_000, 1e12].map(autoLength)).toEqual([60_000, 60_000, 120_000, 300_000, 3_600_000, 3_600_000]);
  expect(autoLength(null)).toBe(3_600_000);
});

test('moving and scaling', () => {
  expect(shifted({ from: 0, to: 100_000 }, -0.5)).toEqual({ kind: 'span', from: -50_000, to: 50_000 });
  expect(scaled({ from: 0, to: 100_000 }, 2)).toEqual({ kind: 'span', from: -50_000, to: 150_000 });
  expect(scaled({ from: 0, to: 5_000 }, 0.1)).toEqual({ kind: 'span', from: 0, to: 5_000 });
});
