import { expect, test } from 'vitest';
import { FIGURES, isWrong, PARTS } from '../src/format/figures.ts';

test('every figure has its part, a name of its own, and advice where it can be wrong', () => {
  const titles = new Set<string>();
  for (const [name, plain] of Object.entries(FIGURES)) {
    expect(PARTS, name).toContain(plain.part);
    expect(titles.has(plain.title), plain.title).toBe(false);
    titles.add(plain.title);
    expect(plain.title, name).not.toMatch(/_/);
    if (plain.from !== undefined) expect(plain.advice, name).toBeTruthy();
    if (/_total$/.test(name)) expect(plain.units, name).toMatch(/\/s$|^%$/);
  }
});

test('a figure is wrong from its limit on, or from a share of its whole', () => {
  const plain = { part: '', title: '', units: '', from: 5, advice: '' };
  expect([isWrong(plain, 4.9, null), isWrong(plain, 5, null), isWrong(plain, null, null)]).toEqual([false, true, false]);
  const share = { ...plain, of: 'x', from: 0.5 };
  expect([isWrong(share, 99, 0.4), isWrong(share, 1, 0.5), isWrong(share, 1, null)]).toEqual([false, true, false]);
  expect(isWrong({ part: '', title: '', units: '' }, 1e9, 1)).toBe(false);
});
