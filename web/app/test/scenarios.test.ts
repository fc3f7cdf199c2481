import { expect, test } from 'vitest';
import type { Scenario } from '../src/api/network.ts';
import type { Item } from '../src/api/types.ts';
import { checkName, stateWords } from '../src/config/networkwords.ts';
import { outcome } from '../src/part/outcome.ts';

const scenario: Scenario = { name: 'Log in', enabled: true, delay: '1m', attempts: 1, items: { fail: '1', error: '2' }, steps: [{ name: 'Form', timeout_seconds: 5, items: {} }, { name: 'Enter', timeout_seconds: 5, items: {} }] };

const known = (fail: [number, number] | null, error: [string, number] | null): Map<string, Item> => {
  const item = (id: string, last: [string | number, number] | null): [string, Item] => [id, { id, last: last === null ? null : { at: last[1], at_ns: `${last[1]}000000`, value: { t: 'text', v: String(last[0]) } } } as unknown as Item];
  return new Map([item('1', fail), item('2', error)]);
};

test('the outcome of a scenario is that of its last run', () => {
  expect(outcome(scenario, known(null, null)).words).toBe('has not run yet');
  expect(outcome({ ...scenario, enabled: false }, known(null, null)).words).toBe('off');
  expect(outcome(scenario, known([0, 9], ['an older one', 5]))).toEqual({ words: 'all steps answered as expected', failed: false, at: 9 });
  expect(outcome(scenario, known([2, 9], ['no answer', 9]))).toEqual({ words: 'step 2 of 2 failed: no answer', failed: true, at: 9 });
  expect(outcome(scenario, known([1, 9], ['an older one', 5])).words).toBe('step 1 of 2 failed');
});

test('a rule of network discovery says how it goes', () => {
  const state = { rule: 'Office', running: false, addresses: 1_500, done: 0, hosts: 0, up: 0 };
  const now = (seconds: number): string => `${seconds} s`;
  expect(stateWords(undefined, now)).toBe('');
  expect(stateWords(state, now)).toBe('has not looked yet');
  expect(stateWords({ ...state, last_at: 12 }, now)).toBe('looked 12 s ago');
  expect(stateWords({ ...state, running: true, done: 1_000, last_at: 12 }, now)).toBe('looking: 1,000 of 1,500');
  expect(stateWords({ ...state, disabled: true, last_at: 12 }, now)).toBe('off');
  expect([{ type: 'icmp' }, { type: 'agent', key: 'system.uname' }, { type: 'snmp', key: '.1', name: 'device' }, { type: 'tcp', ports: '22' }].map(checkName)).toEqual(['icmp', 'agent system.uname', 'device', 'tcp 22']);
});
