import { expect, test } from 'vitest';
import { conditionWords, FIELDS, fieldsOf, freshCondition, mistakesIn, OPERATOR_WORDS, operationsOf, operationWords, withEvent } from '../src/config/netactionwords.ts';

test('fields and operations are those of the event', () => {
  expect(fieldsOf('autoregistration')).toEqual(['ip', 'host_name', 'metadata', 'proxy']);
  expect(fieldsOf('discovery')).not.toContain('metadata');
  expect(operationsOf('autoregistration').map(([type]) => type)).not.toContain('remove_host');
  for (const { operators } of Object.values(FIELDS)) for (const one of operators) expect(OPERATOR_WORDS[one]).toBeDefined();
});

test('another event keeps what it has', () => {
  const action = { name: 'a', event: 'discovery', conditions: [freshCondition('rule'), { field: 'ip', value: '10.0.0.1' }], operations: [{ type: 'remove_host' }, { type: 'add_group', group: 'g' }] };
  const next = withEvent(action, 'autoregistration');
  expect(next.conditions).toEqual([{ field: 'ip', value: '10.0.0.1' }]);
  expect(next.operations).toEqual([{ type: 'add_group', group: 'g' }]);
});

test('what is missing is named', () => {
  expect(mistakesIn({ name: '', event: 'discovery', conditions: [freshCondition('rule')], operations: [] })).toEqual(['Give it a name.', 'Condition 1: write the value.', 'Say what is done.']);
  expect(mistakesIn({ name: 'a', event: 'discovery', conditions: [freshCondition('status')], operations: [{ type: 'add_group', group: '' }, { type: 'set_psk', identity: 'i', psk: 'zz' }] })).toEqual([
    'Operation 1: write the group.',
    'Operation 2: a key has at least 32 hexadecimal digits.',
  ]);
  expect(mistakesIn({ name: 'a', event: 'discovery', operations: [{ type: 'set_interface', interface: { type: 'snmp' } }, { type: 'set_psk', identity: 'i', psk: '********' }] })).toEqual([]);
});

test('words', () => {
  expect(conditionWords({ field: 'downtime', operator: 'greater_equal', value: '30d' })).toBe('down for is at least 30d');
  expect(operationWords({ type: 'link_template', template: 'Linux' })).toBe('link the template Linux');
});
