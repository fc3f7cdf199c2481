import { expect, test } from 'vitest';
import { isFresh } from '../src/config/document.ts';

test('an item that the server does not have yet is told from one whose key is changed', () => {
  const a = { name: 'A', key: 'a' };
  expect(isFresh([a, { name: '', key: '' }], 1, ['a'])).toBe(true);
  expect(isFresh([{ name: 'A', key: 'changed' }], 0, ['a'])).toBe(false);
  expect(isFresh([{ name: '', key: '' }], 0, ['a'])).toBe(true); // The other one was removed.
});
