import { expect, test } from 'vitest';
import type { Problem } from '../src/api/types.ts';
import { groupBy } from '../src/part/group.ts';
import { problemGroup, problemsUpdate } from '../src/view/problemwishes.ts';

const nothing = { acknowledge: false, severity: '', suppress: '', until: '', close: false } as const;

test('a form becomes the call that does what was chosen, and nothing else', () => {
  expect(problemsUpdate(['1', '2'], '', { ...nothing, acknowledge: true }, 5000)).toEqual({ event_ids: ['1', '2'], acknowledge: true });
  expect(problemsUpdate(['1'], 'word', { ...nothing, severity: 'high', suppress: '4', close: true }, 5000)).toEqual({
    event_ids: ['1'],
    message: 'word',
    severity: 'high',
    close: true,
    suppress: true,
    suppress_until: 5000 + 4 * 3_600_000,
  });
  expect(problemsUpdate(['1'], '', { ...nothing, suppress: 'forever' }, 5000)).toEqual({ event_ids: ['1'], suppress: true });
  expect(problemsUpdate(['1'], '', { ...nothing, suppress: 'end' }, 5000)).toEqual({ event_ids: ['1'], suppress: false });
  const at = Date.parse('2030-01-31T22:00');
  expect(problemsUpdate(['1'], '', { ...nothing, suppress: 'at', until: '2030-01-31T22:00' }, 5000).suppress_until).toBe(at);
  expect(() => problemsUpdate(['1'], '', { ...nothing, suppress: 'at', until: '2020-01-31T22:00' }, at)).toThrow('in the future');
  expect(() => problemsUpdate(['1'], '', nothing, 5000)).toThrow('Write a comment');
});

test('problems of the same host, trigger or tag stand together', () => {
  const problem = (id: string, host: string, scope: string): Problem =>
    ({ event_id: id, host, host_name: '', name: `P${id}`, tags: scope === '' ? [] : [{ tag: 'scope', value: scope }] }) as unknown as Problem;
  const list = [problem('1', 'b', 'load'), problem('2', 'a', ''), problem('3', 'b', 'load')];
  const ids = (group: string): [string, string][] => [...groupBy(list, problemGroup(group) ?? (() => ''))].map(([name, rows]) => [name, rows.map((p) => p.event_id).join(' ')]);
  expect(ids('')).toEqual([['', '1 2 3']]);
  expect(ids('host')).toEqual([['b', '1 3'], ['a', '2']]);
  expect(ids('tag:scope')).toEqual([['scope: load', '1 3'], ['without scope', '2']]);
  expect(ids('trigger')).toHaveLength(3);
});
