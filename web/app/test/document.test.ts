import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { asDependency, changeTrigger, dependsOn, type Doc, loosen, mistakesOf, owner, put, putNames, removeTrigger, renameKey, text, triggersOf, untouched } from '../src/config/document.ts';
import { fitsType, ITEM_TYPES, keyHint, stepSpec, STEPS, TYPE_FIELDS } from '../src/config/fields.ts';

const doc: Doc = {
  zabbix_export: {
    version: '7.0',
    hosts: [{ host: 'h', items: [{ key: 'a', triggers: [{ name: 'A', expression: 'last(/h/a)>1' }] }, { key: 'b' }] }],
    triggers: [{ name: 'B', expression: 'last(/h/a)>last(/h/b)', dependencies: [{ name: 'A', expression: 'last(/h/a)>1' }] }],
  },
};

test('triggers stand in one list', () => {
  const loose = loosen(doc, 'host');
  expect(triggersOf(loose).map((one) => text(one, 'name'))).toEqual(['A', 'B']);
  expect(owner(loose, 'host').items).toEqual([{ key: 'a' }, { key: 'b' }]);
  expect(loosen(loose, 'host')).toBe(loose);
});

test('a field that is empty or the default is left out', () => {
  expect(put({ delay: '5s' }, 'delay', '1m', '1m')).toEqual({});
  expect(put({}, 'tags', [])).toEqual({});
  expect(putNames({}, 'groups', ['A'])).toEqual({ groups: [{ name: 'A' }] });
});

test('dependencies follow a trigger, and go with it', () => {
  const triggers = triggersOf(loosen(doc, 'host'));
  const next = changeTrigger(triggers, 0, { name: 'A', expression: 'last(/h/a)>2' });
  expect(dependsOn(next[1], next[0])).toBe(true);
  expect(asDependency(next[0])).toEqual({ name: 'A', expression: 'last(/h/a)>2' });
  expect(removeTrigger(triggers, 0)).toEqual([{ name: 'B', expression: 'last(/h/a)>last(/h/b)' }]);
});

test('expressions follow the key of an item, and no longer key', () => {
  const triggers = [{ name: 'A', expression: 'avg(/h/a,5m)>1 and last(/h/a[x])=0 and last(/h/a.b)=0 and last(/h2/a)=1' }];
  expect(renameKey(triggers, 'h', 'a', 'c')[0].expression).toBe('avg(/h/c,5m)>1 and last(/h/a[x])=0 and last(/h/a.b)=0 and last(/h2/a)=1');
});

test('remarks find their fields', () => {
  const remarks = [
    { path: '', line: 1, at: 'hosts[0].items[1].delay', reason: 'delay "x": expected 0 to 24h; kept, but not collected' },
    { path: '', line: 1, at: 'hosts[0].items[1]', reason: 'key is missing; not taken', refused: true },
    { path: '', line: 1, at: 'hosts[0].items[1].preprocessing[0]', reason: 'preprocessing: no' },
    { path: '', line: 1, at: 'hosts[0].items[10].delay', reason: 'another' },
  ];
  const found = mistakesOf(remarks, 'hosts[0].items[1]', ['key', 'delay']);
  expect(Object.keys(found).sort()).toEqual(['delay', 'key', 'preprocessing[0]']);
  expect(found.key).toEqual(['key is missing']);
  expect(found.delay).toEqual(['delay "x": expected 0 to 24h; kept, but not collected']);
});

test('every step has a title', () => {
  expect(new Set(STEPS.map((one) => one.type)).size).toBe(STEPS.length);
  expect(stepSpec('JSONPATH').params).toHaveLength(1);
  expect(stepSpec('UNKNOWN').title).toBe('UNKNOWN');
});

test('what was only just added is untouched until it has a name or a key', () => {
  const kept = ['a', 'b'];
  const rules = [{ key: 'a', name: 'A' }, { key: 'b', name: '' }, { key: '', name: '' }, { key: 'c', name: '' }];
  expect(untouched('rules', rules, kept)).toEqual(['rules[2]']);
  expect(untouched('rules', [{ key: 'b', name: '' }], kept)).toEqual([]); // One that the server has is emptied.
  expect(untouched('triggers', [{ name: 'a', expression: 'x' }, { name: 'b' }, { name: '', expression: 'y' }], kept, 'name')).toEqual(['triggers[2]']);
});

test('every type that the server collects can be chosen, and has the fields that it needs', () => {
  // The names that an export may have; for the two that are left out there is no collector, and two are older names of one type.
  const source = readFileSync(new URL('../../../confdb/export.go', import.meta.url), 'utf8');
  const map = /itemTypes = map\[string\]model\.ItemType\{([^}]*)\}/.exec(source)![1]!;
  const known = [...map.matchAll(/"(\w+)":/g)].map((one) => one[1]!).filter((name) => !['TELNET', 'BROWSER', 'ITEM_TYPE_BROWSER', 'ITEM_TYPE_SCRIPT'].includes(name));
  expect(known.length).toBeGreaterThan(15);
  expect(ITEM_TYPES.map(([name]) => name).sort()).toEqual(known.sort());
  const fields = (type: string): string[] => TYPE_FIELDS[type]!.map((one) => one.key);
  expect(fields('EXTERNAL')).toEqual(['timeout']);
  expect(keyHint('EXTERNAL')).toContain('collect.external_scripts');
  expect([fitsType('SSH', 'authtype', 'DIGEST'), fitsType('HTTP_AGENT', 'authtype', 'DIGEST'), fitsType('JMX', 'username', 'eve'), fitsType('TRAP', 'username', 'eve')]).toEqual([false, true, true, false]);
  expect(fields('IPMI')).toEqual(['ipmi_sensor']);
  expect(fields('SSH')).toEqual(['params', 'authtype', 'username', 'password', 'publickey', 'privatekey', 'timeout']);
});
