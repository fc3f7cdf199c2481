import { afterEach, expect, test } from 'vitest';
import { axisTimes, clockTime, dateText } from '../src/time/clock.ts';
import { parseRange } from '../src/time/range.ts';
import { aheadOfUTC, instant, setZone, shortName, wall, zone, zoneNames } from '../src/time/zone.ts';

afterEach(() => setZone(''));

const AT = Date.UTC(2026, 6, 1, 22, 30, 5, 7);

test('times are written in the zone that was chosen', () => {
  setZone('Asia/Kolkata');
  expect(`${dateText(AT)} ${clockTime(AT, true)}`).toBe('2026-07-02 04:00:05.007');
  setZone('America/St_Johns');
  expect(`${dateText(AT)} ${clockTime(AT)}`).toBe('2026-07-01 20:00:05');
  setZone('UTC');
  expect(clockTime(AT)).toBe('22:30:05');
  expect(shortName(AT)).toBe('UTC');
  expect(aheadOfUTC(AT)).toBe(0);
});

test('a zone that there is not changes nothing', () => {
  setZone('Europe/Riga');
  setZone('Mars/Olympus');
  expect(zone.value).toBe('Europe/Riga');
  expect(zoneNames()[0]).toBe('UTC');
});

test('what clocks show leads back to the instant, over changes of the clocks too', () => {
  for (const name of ['', 'UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'Pacific/Apia']) {
    for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += 31 * 3_600_000 + 900_000) {
      const back = instant(wall(at, name), name);
      // In the hour that comes twice the other one is as right.
      expect([0, 1_800_000, 3_600_000]).toContain(Math.abs(back - at));
      expect(wall(back, name)).toEqual(wall(at, name));
    }
  }
});

test('a time that clocks skip is after the gap, a day of 23 hours has 23', () => {
  setZone('Europe/Berlin');
  const skipped = instant({ year: 2026, month: 3, day: 29, hour: 2, minute: 30 });
  expect(new Date(skipped).toISOString()).toBe('2026-03-29T01:30:00.000Z');
  const range = parseRange('2026-03-29', Date.UTC(2026, 3, 2));
  expect(range).toEqual({ kind: 'span', from: Date.UTC(2026, 2, 28, 23), to: Date.UTC(2026, 2, 29, 22) });
});

test('what is typed and the marks of an axis are in the zone', () => {
  setZone('Asia/Tokyo');
  expect(parseRange('2026-07-02 9:00..10:00', AT)).toEqual({ kind: 'span', from: Date.UTC(2026, 6, 2, 0), to: Date.UTC(2026, 6, 2, 1) });
  expect(parseRange('today', AT)).toEqual({ kind: 'span', from: Date.UTC(2026, 6, 1, 15), to: AT });
  expect(axisTimes([Date.UTC(2026, 6, 1, 14), Date.UTC(2026, 6, 1, 15)], 3_600_000)).toEqual(['23:00', '2 Jul']);
});
