import { expect, test } from 'vitest';
import { conditionWords, localText, mediaWords, onceState, periodWords, secondsOf, stepWords, whatWords, whenWords, whoWords } from '../src/alerting/words.ts';
import { actionProblems, durationProblem, kindOf, mediaProblems, newMedia, receiverProblems } from '../src/alerting/draft.ts';
import type { Action, Maintenance } from '../src/api/alerting.ts';

test.each([
  [{ type: 'severity', value: 'high' }, 'severity at least high'],
  [{ type: 'host_group', value: 'Web' }, 'host group is Web'],
  [{ type: 'tag_value', tag: 'env', operator: 'not_contains', value: 'test' }, 'tag env does not contain test'],
  [{ type: 'name', value: 'disk' }, 'name contains disk'],
  [{ type: 'time', operator: 'not_in', value: '6-7,00:00-24:00' }, 'time not in 6-7,00:00-24:00'],
])('condition %o', (condition, words) => expect(conditionWords(condition)).toBe(words));

const action = (change: Partial<Action>): Action => ({ name: 'a', operations: [], recovery: null, ...change });

test('conditions of one type are alternatives', () => {
  const conditions = [
    { type: 'host', value: 'a' },
    { type: 'severity', value: 'high' },
    { type: 'host', value: 'b' },
  ];
  expect(whenWords(action({ conditions }))).toBe('(host is a or host is b) and severity at least high');
  expect(whenWords(action({ conditions, evaluation: 'or' }))).toBe('host is a or severity at least high or host is b');
  expect(whenWords(action({ conditions, evaluation: 'formula', formula: 'A and not B' }))).toContain('A and not B, where A: host is a; B: severity');
  expect(whenWords(action({}))).toBe('every problem');
});

test.each([
  [{}, 'step 1'],
  [{ from: 2, to: 4 }, 'steps 2 to 4'],
  [{ from: 3 }, 'step 3'],
  [{ from: 5, to: -1 }, 'from step 5 on'],
  [{ to: -1 }, 'every step'],
])('steps %o', (operation, words) => expect(stepWords(operation)).toBe(words));

test('whom an operation tells', () => {
  expect(whoWords({ receivers: ['a', 'b'], media: ['mail'], if: 'not_acknowledged' })).toBe('a, b by mail, if not acknowledged');
  expect(whoWords({ involved: true })).toBe('all who were told');
  expect(whoWords({})).toBe('nobody');
});

test('media', () => {
  expect(mediaWords({ name: 'm', mail: { server: 'h:25', from: 'f' } })).toBe('mail from f over h:25');
  expect(mediaWords({ name: 'm', command: { line: 'restart' } })).toBe('command on the host: restart');
  expect(kindOf({ name: 'm', command: { line: 'x' } })).toBe('command');
  expect(mediaProblems(newMedia('m', 'command'), '')).toEqual(['Command: it is empty']);
  expect(mediaWords({ name: 'm', zabbix_webhook: { script: 'return 1' } })).toContain('webhook in JavaScript');
});

test.each([
  [{ every: 'once', start: '2026-01-31T22:00', for: '4h' }, 'once at 2026-01-31 22:00 for 4h'],
  [{ every: 'day', at: '01:00', for: '1h', interval: 3 }, 'every 3 days at 01:00 for 1h'],
  [{ every: 'week', days: ['mon', 'fri'], at: '01:00', for: '1h' }, 'every week on mon, fri at 01:00 for 1h'],
  [{ every: 'month', days: ['tue'], weeks: [5], at: '22:00', for: '4h' }, 'tue of week the last of every month at 22:00 for 4h'],
  [{ every: 'month', day_of_month: 3, months: [1, 7], at: '22:00', for: '4h' }, 'day 3 of months 1, 7 at 22:00 for 4h'],
])('period %o', (period, words) => expect(periodWords(period)).toBe(words));

test('durations', () => {
  expect(['90s', '5m', '1h', '2d', '1w', '45'].map(secondsOf)).toEqual([90, 300, 3600, 172800, 604800, 45]);
  expect(secondsOf('1 fortnight')).toBeNaN();
});

test('the state of a single maintenance', () => {
  const one: Maintenance = { name: 'm', hosts: ['a'], groups: ['g'], periods: [{ every: 'once', start: '2026-01-31T22:00', for: '2h' }] };
  const at = (text: string): number => Date.parse(`${text}Z`);
  expect(onceState(one, at('2026-01-31T21:59:59'))).toBe('to come');
  expect(onceState(one, at('2026-01-31T22:00:00'))).toBe('in force');
  expect(onceState(one, at('2026-02-01T00:00:00'))).toBe('over');
  expect(onceState({ ...one, periods: [{ every: 'day', at: '01:00', for: '1h' }] }, 0)).toBeNull();
  expect(whatWords(one)).toBe('group g, a');
});

test('the time of the server', () => {
  expect(localText(Date.UTC(2026, 0, 31, 22, 30), 5.5 * 3600)).toBe('2026-02-01T04:00');
  expect(localText(Date.UTC(2026, 0, 31, 22, 30), -3600)).toBe('2026-01-31T21:30');
});

test('what is wrong with an action', () => {
  expect(actionProblems(action({ operations: [{ receivers: ['a'] }] }))).toEqual([]);
  expect(actionProblems(action({ name: ' ', operations: [] }))).toEqual(['The name is empty.', 'There is no step, so that nobody would be told.']);
  const wrong = action({
    delay: 'soon',
    step_duration: '5s',
    evaluation: 'formula',
    conditions: [{ type: 'tag_value', value: 'x' }, { type: 'name' }],
    operations: [{ from: 3, to: 2, receivers: [] }],
    recovery: [{}],
  });
  expect(actionProblems(wrong)).toEqual([
    'Condition A: the tag is empty',
    'Condition B: the value is empty',
    'The formula is empty, expected A and (B or not C).',
    'Delay: “soon” is no time span, expected 90s, 5m, 1h or 1d',
    'Time between steps: 5s is too short, expected at least 10s',
    'Operation 1 tells nobody; choose receivers',
    'Operation 1 ends with step 2 before it begins with step 3',
    'Recovery 1 tells nobody; choose receivers',
  ]);
});

test('what is wrong with a media type or a receiver', () => {
  expect(mediaProblems(newMedia('m', 'mail'), '')).toEqual(['Server: expected a name and a port, such as mail.example.com:587', 'From: expected an address']);
  expect(mediaProblems({ name: 'w', webhook: { url: 'ftp://x' } }, '{')[0]).toContain('URL: expected https://');
  expect(mediaProblems({ name: 'w', webhook: { url: '{ALERT.SENDTO}' } }, '{}')).toEqual([]);
  expect(mediaProblems(newMedia('j', 'zabbix_webhook'), '')).toEqual(['Script: it is empty']);
  expect(mediaProblems(newMedia('s', 'script'), '')).toEqual(['Program: its name is empty']);
  expect(kindOf(newMedia('j', 'zabbix_webhook'))).toBe('zabbix_webhook');
  expect(receiverProblems({ name: 'r', media: [{ media: 'mail', to: '' }] })).toEqual(['Way 1: choose a media type and say the address']);
  expect(durationProblem('x', '')).toBe('');
});
