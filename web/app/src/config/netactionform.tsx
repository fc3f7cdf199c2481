// The form of an action on what network discovery finds, and on agents that register themselves.

import { useState } from 'preact/hooks';
import { type Configuration, getConfiguration } from '../api/configuration.ts';
import { type NetAction, type NetCondition, type NetOperation, putNetAction } from '../api/network.ts';
import { Lines, Problems } from '../alerting/lines.tsx';
import { Check, Field, Form } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { conditionWords, EVENTS, FIELDS, fieldsOf, freshCondition, mistakesIn, OPERATOR_WORDS, operationsOf, operationWords, withEvent } from './netactionwords.ts';
import { Pick, Text } from './parts.tsx';

interface Props {
  /** Missing for a new one. */
  action?: NetAction;
  rules: string[];
  taken: string[];
  done: () => void;
  cancel: () => void;
}

const EVALUATIONS: [string, string][] = [
  ['', 'one of each kind'],
  ['and', 'all of them'],
  ['or', 'one of them'],
  ['formula', 'a formula'],
];

export function NetActionForm({ action, rules, taken, done, cancel }: Props) {
  const [draft, setDraft] = useState<NetAction>(action ?? { name: '', event: 'discovery', conditions: [freshCondition('rule')], operations: [{ type: 'add_group', group: '' }] });
  const [tried, setTried] = useState(action !== undefined);
  const known = useLoad((signal) => getConfiguration(signal), []);
  const put = (change: Partial<NetAction>): void => setDraft({ ...draft, ...change });
  const conditions = draft.conditions ?? [];
  const operations = draft.operations ?? [];
  const problems = mistakesIn(draft);
  const evaluation = draft.evaluation === 'and_or' ? '' : (draft.evaluation ?? '');
  const kind = ['', 'and', 'or'].includes(evaluation) ? evaluation : 'formula';
  const run = async (): Promise<void> => {
    setTried(true);
    if (problems.length > 0) throw { detail: 'Put right what is named above first.' };
    if (taken.includes(draft.name)) throw { detail: `there is an action ${draft.name} already; choose another name` };
    await putNetAction({ ...draft, name: draft.name.trim() });
    done();
  };
  const title = action === undefined ? 'New action' : `Action ${action.name}`;
  const deletes = draft.event === 'discovery' && !conditions.some((one) => one.field === 'rule');
  return (
    <section class="object" aria-label={title}>
      <h2>{title}</h2>
      <Form submit="Save the action" tried={() => setTried(true)} run={run} cancel={cancel}>
        {action === undefined && <Field label="Name" value={draft.name} set={(name) => put({ name })} focus />}
        <Pick label="When" value={draft.event} options={EVENTS} set={(event) => setDraft(withEvent(draft, event))} />
        <Lines<NetCondition>
          legend="Condition"
          list={conditions}
          add="Add a condition"
          fresh={() => freshCondition(fieldsOf(draft.event)[0]!)}
          set={(list) => put({ conditions: list })}
          line={(one, set, n) => <ConditionFields condition={one} letter={String.fromCharCode(65 + n)} event={draft.event} rules={rules} set={set} />}
        />
        {conditions.length > 1 && <Pick label="Must hold" value={kind} options={EVALUATIONS} set={(next) => put({ evaluation: next === 'formula' ? 'A and B' : next })} />}
        {conditions.length > 1 && kind === 'formula' && <Field label="Formula" value={evaluation} set={(text) => put({ evaluation: text })} hint="Such as A and (B or not C)." />}
        {deletes && <p class="muted">Without a condition on the rule it is for what all rules find, those that come later among them.</p>}
        <Lines<NetOperation>
          legend="Operation"
          list={operations}
          add="Add an operation"
          fresh={() => ({ type: 'link_template', template: '' })}
          set={(list) => put({ operations: list })}
          line={(one, set) => <OperationFields operation={one} event={draft.event} known={known.data} set={set} />}
        />
        <Check label="Switched off" value={draft.disabled ?? false} set={(disabled) => put({ disabled })} />
        <p class="muted" role="status">
          {conditions.length === 0 ? 'Always' : conditions.map(conditionWords).join(', ')}: {operations.map(operationWords).join(', ')}
        </p>
        {tried && <Problems list={problems} />}
      </Form>
    </section>
  );
}

function ConditionFields({ condition, letter, event, rules, set }: { condition: NetCondition; letter: string; event: string; rules: string[]; set: (next: NetCondition) => void }) {
  const words = FIELDS[condition.field] ?? { title: condition.field, of: [], operators: ['equals'] };
  return (
    <>
      <span class="muted letter">{letter}</span>
      <Pick label="Of" value={condition.field} options={fieldsOf(event).map((field): [string, string] => [field, FIELDS[field]!.title])} set={(field) => set(freshCondition(field))} />
      <Pick label="Comparison" value={condition.operator || 'equals'} options={words.operators.map((one): [string, string] => [one, OPERATOR_WORDS[one]!])} set={(operator) => set({ ...condition, operator })} />
      {words.values !== undefined ? (
        <Pick label="Value" value={condition.value ?? ''} options={words.values.map((one): [string, string] => [one, one])} set={(value) => set({ ...condition, value })} />
      ) : (
        <Text label="Value" value={condition.value ?? ''} set={(value) => set({ ...condition, value })} known={condition.field === 'rule' ? rules : undefined} hint={words.hint} />
      )}
    </>
  );
}

const INTERFACE_TYPES: [string, string][] = [
  ['agent', 'Agent'],
  ['snmp', 'SNMP'],
  ['ipmi', 'IPMI'],
  ['jmx', 'JMX'],
];

function OperationFields({ operation, event, known, set }: { operation: NetOperation; event: string; known: Configuration | null; set: (next: NetOperation) => void }) {
  const { type } = operation;
  const choose = (next: string): void => {
    const before = { group: operation.group, template: operation.template };
    if (next.endsWith('_group')) set({ type: next, group: before.group ?? '' });
    else if (next.endsWith('_template')) set({ type: next, template: before.template ?? '' });
    else if (next === 'set_inventory_mode') set({ type: next, mode: 'automatic' });
    else if (next === 'set_interface') set({ type: next, interface: { type: 'agent' } });
    else set({ type: next });
  };
  const face = operation.interface ?? { type: 'agent' };
  const snmp = face.snmp ?? {};
  return (
    <>
      <Pick label="Does" value={type} options={operationsOf(event)} set={choose} />
      {type.endsWith('_group') && <Text label="Host group" value={operation.group ?? ''} set={(group) => set({ ...operation, group })} known={known?.host_groups ?? []} />}
      {type.endsWith('_template') && <Text label="Template" value={operation.template ?? ''} set={(template) => set({ ...operation, template })} known={(known?.templates ?? []).map((one) => one.template)} />}
      {type === 'set_inventory_mode' && <Pick label="Mode" value={operation.mode ?? 'automatic'} options={['disabled', 'manual', 'automatic'].map((one): [string, string] => [one, one])} set={(mode) => set({ ...operation, mode })} />}
      {type === 'add_tag' && (
        <>
          <Text label="Tag" value={operation.tag ?? ''} set={(tag) => set({ ...operation, tag })} />
          <Text label="Value" value={operation.value ?? ''} set={(value) => set({ ...operation, value })} />
        </>
      )}
      {type === 'set_interface' && (
        <>
          <Pick label="Interface" value={face.type} options={INTERFACE_TYPES} set={(next) => set({ ...operation, interface: { ...face, type: next, ...(next === 'snmp' ? { snmp: { version: 'SNMPV2', community: '{$SNMP_COMMUNITY}' } } : { snmp: undefined }) } })} />
          <Text label="Port" value={face.port ?? ''} set={(port) => set({ ...operation, interface: { ...face, port } })} hint="The usual one when empty." />
          {face.type === 'snmp' && snmp.version !== 'SNMPV3' && <Text label="Community" value={snmp.community ?? ''} set={(community) => set({ ...operation, interface: { ...face, snmp: { ...snmp, community } } })} hint="A global macro, or a text; ******** keeps it." />}
          <Check label="By its name in DNS" value={face.use_dns ?? false} set={(use_dns) => set({ ...operation, interface: { ...face, use_dns } })} />
        </>
      )}
      {type === 'set_psk' && (
        <>
          <Text label="Identity" value={operation.identity ?? ''} set={(identity) => set({ ...operation, identity })} />
          <Text label="Key" value={operation.psk ?? ''} set={(psk) => set({ ...operation, psk })} mono secret hint="At least 32 hexadecimal digits; ******** keeps it." />
        </>
      )}
    </>
  );
}
