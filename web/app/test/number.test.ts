import { expect, test } from 'vitest';
import { canonicalUnit, digits, formatAge, formatDuration, formatPercent, formatScaled, formatShare, formatValue, plural, scaleFor } from '../src/format/number.ts';

test.each([
  [0, '0'],
  [1, '1'],
  [1.23456, '1.235'],
  [12.3456, '12.35'],
  [123.456, '123.5'],
  [1234.56, '1,235'],
  [1234567, '1,234,567'],
  [-12.5, '−12.5'],
  [0.00123456, '0.001235'],
  [1e-9, '1e-9'],
  [1e18, '1e18'],
  [NaN, 'NaN'],
  [Infinity, '∞'],
  [-Infinity, '−∞'],
])('digits(%d) = %s', (value, text) => expect(digits(value)).toBe(text));

test.each([
  // Sizes count in 1024, rates in 1000.
  [1024, 'B', '1 KiB'],
  [1536, 'B', '1.5 KiB'],
  [16 * 1024 ** 3, 'B', '16 GiB'],
  [1000, 'B', '1,000 B'],
  [1000, 'B/s', '1 kB/s'],
  [3_100_000, 'Bps', '3.1 MB/s'],
  [9_600_000, 'bps', '9.6 Mbit/s'],
  // Shares never take a prefix.
  [62.04, '%', '62 %'],
  [0.0213, '%', '0.0213 %'],
  // Counts stay whole while four digits hold them.
  [4812, '/s', '4,812/s'],
  [12_345, '/s', '12.3 k/s'],
  [9999, '', '9,999'],
  [12_345, '', '12.3 k'],
  [48_200, 'ops', '48.2 k ops/s'],
  // Times.
  [0.0031, 's', '3.1 ms'],
  [0.00000042, 's', '420 ns'],
  [0, 's', '0 s'],
  [59, 's', '59 s'],
  [185, 's', '3 min 5 s'],
  [0.0123, 's/s', '12.3 ms/s'],
  [1_051_200, 'uptime', '12 d 4 h'],
  // Units with ! are shown as they are.
  [12_345, '!keys', '12,345 keys'],
])('formatValue(%d, %s) = %s', (value, units, text) => expect(formatValue(value, units)).toBe(text));

test('a missing value is a dash', () => {
  expect(formatValue(null, 'B')).toBe('–');
  expect(formatValue(undefined, '')).toBe('–');
  expect(formatScaled(null, { factor: 1, unit: '%' })).toBe('–');
});

test('no more than four significant digits, whatever the size', () => {
  for (let power = -5; power < 15; power++) {
    for (const units of ['B', 'B/s', '%', 's', '/s', 'ops']) {
      const shown = formatValue(1.23456789 * 10 ** power, units, 4).replace(/[^\d.]/g, ' ').trim().split(' ')[0];
      const significant = shown.replace('.', '').replace(/^0+/, '').replace(/0+$/, '');
      if (units !== '%' && power < 12) expect(significant.length, `${power} ${units} ${shown}`).toBeLessThanOrEqual(4);
    }
  }
});

test('a scale is chosen for the largest number and kept for the others', () => {
  const scale = scaleFor(8 * 1024 ** 3, 'B');
  expect(scale).toEqual({ factor: 1024 ** 3, unit: 'GiB' });
  expect(formatScaled(512 * 1024 ** 2, scale)).toBe('0.5 GiB');
});

test('a number just below a prefix does not become 1000 of it', () => {
  expect(formatValue(999_999, 'B/s', 4)).toBe('1 MB/s');
  expect(formatValue(1024 ** 2 - 1, 'B', 4)).toBe('1 MiB');
});

test('units of Zabbix are respelled', () => {
  expect(canonicalUnit('Bps')).toBe('B/s');
  expect(canonicalUnit('bps')).toBe('bit/s');
  expect(canonicalUnit('%')).toBe('%');
});

test.each([
  [0.5, '500 ms'],
  [59.4, '59 s'],
  [60, '1 min'],
  [3_600, '1 h'],
  [90_061, '1 d 1 h'],
  [86_400 * 400, '400 d'],
])('formatDuration(%d) = %s', (seconds, text) => expect(formatDuration(seconds)).toBe(text));

test('ages', () => {
  expect([0, 12_000, 61_000, 3_700_000, 90_000_000].map(formatAge)).toEqual(['now', '12 s', '1 min', '1 h', '1 d']);
  expect(formatAge(-500)).toBe('now');
});

test('plural', () => expect([plural(1, 'host'), plural(2, 'host'), plural(5_000, 'item')]).toEqual(['1 host', '2 hosts', '5,000 items']));

test('shares of which the smallest parts do not matter', () => {
  expect([0, 0.0000675, 0.1, 12.34, null].map(formatShare)).toEqual(['0 %', 'under 0.1 %', '0.1 %', '12.34 %', '–']);
});

test.each([
  [0, '0 %'],
  [0.00192, '< 0.01 %'],
  [0.0523, '0.05 %'],
  [57.529, '57.5 %'],
  [100, '100 %'],
  [null, '–'],
] as [number | null, string][])('formatPercent(%s) = %s', (value, text) => expect(formatPercent(value).replaceAll('\u00a0', ' ')).toBe(text.replaceAll('\u00a0', ' ')));
