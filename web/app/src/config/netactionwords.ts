// What actions of network discovery and registration compare and do, and what is missing in one.

import type { NetAction, NetCondition, NetOperation } from '../api/network.ts';

export const EVENTS: [string, string][] = [
  ['discovery', 'network discovery found something'],
  ['autoregistration', 'an agent registers itself'],
];

const TEXT = ['equals', 'not_equals', 'contains', 'not_contains', 'matches', 'not_matches'];
const TIME = ['greater_equal', 'less_equal'];
const SAME = ['equals', 'not_equals'];

interface FieldWords {
  title: string;
  /** Events that have the field. */
  of: string[];
  operators: string[];
  hint?: string;
  /** Values of which one is chosen. */
  values?: string[];
}

const BOTH = ['discovery', 'autoregistration'];
const FOUND = ['discovery'];
const AGENT = ['autoregistration'];

export const FIELDS: Record<string, FieldWords> = {
  rule: { title: 'rule', of: FOUND, operators: TEXT, hint: 'Name of the rule.' },
  check: { title: 'check', of: FOUND, operators: TEXT, hint: 'Name of the check; without one its type and key.' },
  service: { title: 'kind of check', of: FOUND, operators: TEXT, hint: 'Such as agent, snmp, ssh.' },
  port: { title: 'port', of: FOUND, operators: SAME, hint: 'Such as 22,8000-8100.' },
  ip: { title: 'address', of: BOTH, operators: SAME, hint: 'Such as 10.0.0.1-254 or 10.0.1.0/24.' },
  object: { title: 'what it is', of: FOUND, operators: SAME, values: ['host', 'service'] },
  status: { title: 'status', of: FOUND, operators: SAME, values: ['up', 'down', 'discovered', 'lost'] },
  uptime: { title: 'up for', of: FOUND, operators: TIME, hint: 'Such as 30m.' },
  downtime: { title: 'down for', of: FOUND, operators: TIME, hint: 'Such as 30d.' },
  value: { title: 'value of the check', of: FOUND, operators: [...TEXT, ...TIME], hint: 'What the check brought.' },
  host_name: { title: 'name of the host', of: AGENT, operators: TEXT },
  metadata: { title: 'metadata', of: AGENT, operators: TEXT, hint: 'What the agent says of itself.' },
  proxy: { title: 'proxy', of: BOTH, operators: TEXT, hint: 'Name of the proxy.' },
};

export const fieldsOf = (event: string): string[] => Object.keys(FIELDS).filter((field) => FIELDS[field]!.of.includes(event));

export const OPERATOR_WORDS: Record<string, string> = {
  equals: 'is',
  not_equals: 'is not',
  contains: 'contains',
  not_contains: 'does not contain',
  matches: 'matches',
  not_matches: 'does not match',
  greater_equal: 'is at least',
  less_equal: 'is at most',
};

/** What is done, and the fields that say with what. */
export const OPERATIONS: Record<string, { title: string; needs: (keyof NetOperation)[]; of?: string[] }> = {
  add_host: { title: 'make the host', needs: [] },
  remove_host: { title: 'delete the host with its items', needs: [], of: FOUND },
  enable_host: { title: 'switch the host on', needs: [] },
  disable_host: { title: 'switch the host off', needs: [] },
  add_group: { title: 'add to the host group', needs: ['group'] },
  remove_group: { title: 'take out of the host group', needs: ['group'] },
  link_template: { title: 'link the template', needs: ['template'] },
  unlink_template: { title: 'unlink the template', needs: ['template'] },
  set_inventory_mode: { title: 'set the inventory to', needs: ['mode'] },
  add_tag: { title: 'add the tag', needs: ['tag'] },
  set_interface: { title: 'set an interface', needs: ['interface'] },
  set_psk: { title: 'set the pre-shared key', needs: ['identity', 'psk'] },
};

export const operationsOf = (event: string): [string, string][] => Object.entries(OPERATIONS).flatMap(([type, { title, of }]) => (of === undefined || of.includes(event) ? [[type, title] as [string, string]] : []));

/** operationWords says in short what an operation does. */
export const operationWords = (one: NetOperation): string => [OPERATIONS[one.type]?.title ?? one.type, one.group ?? one.template ?? one.tag ?? one.mode ?? one.interface?.type ?? one.identity ?? ''].join(' ').trim();

export const conditionWords = (one: NetCondition): string => `${FIELDS[one.field]?.title ?? one.field} ${OPERATOR_WORDS[one.operator || 'equals'] ?? one.operator} ${one.value ?? ''}`;

/** withEvent keeps of an action what its new event has. */
export function withEvent(action: NetAction, event: string): NetAction {
  const may = operationsOf(event).map(([type]) => type);
  return { ...action, event, conditions: (action.conditions ?? []).filter((one) => FIELDS[one.field]?.of.includes(event)), operations: (action.operations ?? []).filter((one) => may.includes(one.type)) };
}

/** freshCondition is a condition on a field before anything was written. */
export function freshCondition(field: string): NetCondition {
  const { operators, values } = FIELDS[field]!;
  return { field, operator: operators[0]!, value: values?.[0] ?? '' };
}

/** mistakesIn says what is missing, before the server is asked. */
export function mistakesIn(action: NetAction): string[] {
  const out: string[] = [];
  if (action.name.trim() === '') out.push('Give it a name.');
  (action.conditions ?? []).forEach((one, n) => one.value === '' && !['value', 'metadata', 'proxy'].includes(one.field) && out.push(`Condition ${n + 1}: write the value.`));
  const operations = action.operations ?? [];
  if (operations.length === 0) out.push('Say what is done.');
  operations.forEach((one, n) => {
    for (const need of OPERATIONS[one.type]?.needs ?? []) if (need !== 'interface' && !one[need]) out.push(`Operation ${n + 1}: write the ${need === 'psk' ? 'key' : need}.`);
    if (one.type === 'set_psk' && one.psk && !/^(\*{8}|([0-9a-f]{2}){16,})$/i.test(one.psk)) out.push(`Operation ${n + 1}: a key has at least 32 hexadecimal digits.`);
  });
  return out;
}
