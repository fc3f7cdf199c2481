// The form of an action: for which problems, the steps, what is said of the end and of updates.

import { useState } from 'preact/hooks';
import { type Action, type Alerting, type Condition, type Operation, putAlerting } from '../api/alerting.ts';
import { SEVERITIES } from '../api/types.ts';
import { Check, Field, Form } from '../part/form.tsx';
import { actionProblems, OPERATORS_OF, VALUE_HINTS } from './draft.ts';
import { Lines, Pick, Problems, Several } from './lines.tsx';
import { OPERATORS } from './words.ts';

interface Props {
  alerting: Alerting;
  action: Action;
  /** fresh says that the action does not exist yet. */
  fresh: boolean;
  done: (saved: boolean) => void;
}

const EVALUATIONS = { and_or: 'one of each type', and: 'all', or: 'one of them', formula: 'a formula' };
const CONDITIONS = { '': 'always', acknowledged: 'if acknowledged', not_acknowledged: 'if not acknowledged' };

export function ActionForm({ alerting, action, fresh, done }: Props) {
  const [draft, setDraft] = useState<Action>(structuredClone(action));
  const put = (change: Partial<Action>): void => setDraft({ ...draft, ...change });
  const problems = actionProblems(draft);
  const conditions = draft.conditions ?? [];
  const ending = draft.recovery === null ? 'told' : draft.recovery.length === 0 ? 'nobody' : 'own';
  const [tried, setTried] = useState(!fresh);
  const run = async (): Promise<void> => {
    setTried(true);
    if (problems.length > 0) throw { detail: 'Put right what is named above first.' };
    if (fresh && (alerting.actions ?? []).some((one) => one.name === draft.name)) throw { detail: `there is an action ${draft.name} already; choose another name` };
    await putAlerting({ actions: [draft] });
    done(true);
  };
  const operation = (steps: boolean) => (one: Operation, set: (next: Operation) => void) => <OperationLine alerting={alerting} operation={one} steps={steps} put={set} />;
  return (
    <section aria-label={fresh ? 'New action' : `Action ${action.name}`} class="form-section">
      <h2>{fresh ? 'New action' : `Action ${action.name}`}</h2>
      <Form submit="Save action" tried={() => setTried(true)} run={run} cancel={() => done(false)}>
        {fresh && <Field label="Name of the action" value={draft.name} set={(name) => put({ name })} />}
        <Lines<Condition> legend="Condition" list={conditions} add="Add a condition" fresh={() => ({ type: 'severity', value: 'average' })} set={(list) => put({ conditions: list })}
          line={(one, set, i) => <ConditionLine condition={one} letter={one.label || String.fromCharCode(65 + i)} put={set} />} />
        {conditions.length === 0 && <p class="muted">Without a condition the action is for every problem.</p>}
        {conditions.length > 1 && <Pick label="Must hold" value={draft.evaluation || 'and_or'} options={EVALUATIONS} set={(evaluation) => put({ evaluation })} />}
        {draft.evaluation === 'formula' && <Field label="Formula" value={draft.formula ?? ''} set={(formula) => put({ formula })} hint="A and (B or not C)" />}
        <div class="form-line">
          <Field label="Begin after" value={draft.delay ?? ''} set={(delay) => put({ delay })} required={false} hint="Only problems that last so long: 1m" />
          <Field label="Time between steps" value={draft.step_duration ?? ''} set={(step_duration) => put({ step_duration })} required={false} hint="1h when empty" />
        </div>
        <Lines<Operation> legend="Step" list={draft.operations ?? []} add="Add a step" fresh={() => ({ from: nextStep(draft.operations ?? []), receivers: [] })} set={(list) => put({ operations: list })} line={operation(true)} />
        <Pick label="When it is over, tell" value={ending} options={{ told: 'all who were told', nobody: 'nobody', own: 'as follows' }}
          set={(to) => put({ recovery: to === 'told' ? null : to === 'nobody' ? [] : [{ involved: true }] })} />
        {ending === 'own' && <Lines<Operation> legend="Recovery" list={draft.recovery ?? []} add="Add to the recovery" fresh={() => ({ receivers: [] })} set={(list) => put({ recovery: list })} line={operation(false)} />}
        <Lines<Operation> legend="Update" list={draft.update ?? []} add="Tell acknowledgements" fresh={() => ({ involved: true })} set={(list) => put({ update: list })} line={operation(false)} />
        <Check label="No more steps once somebody acknowledged" value={draft.stop_when_acknowledged ?? false} set={(on) => put({ stop_when_acknowledged: on })} />
        <Check label="Send during maintenance too" value={draft.send_suppressed ?? false} set={(on) => put({ send_suppressed: on })} />
        <Check label="Tell every change of a trigger that flaps" value={draft.flapping?.off ?? false} set={(off) => put({ flapping: { ...draft.flapping, off } })} />
        {tried && <Problems list={problems} />}
      </Form>
    </section>
  );
}

const hintOf = (type: string): string | undefined => {
  const hint = VALUE_HINTS[type];
  return hint === undefined ? undefined : `such as ${hint}`;
};

const nextStep = (list: Operation[]): number => list.reduce((last, one) => Math.max(last, one.from ?? 1, one.to ?? 0), 0) + 1;

function ConditionLine({ condition, letter, put }: { condition: Condition; letter: string; put: (next: Condition) => void }) {
  const operators = OPERATORS_OF[condition.type] ?? [];
  const types = Object.fromEntries(Object.keys(OPERATORS_OF).map((type) => [type, type === 'tag_value' ? 'value of a tag' : type.replaceAll('_', ' ')]));
  const first: Record<string, string> = { severity: 'average', suppressed: 'true' };
  return (
    <>
      <span class="muted letter">{letter}</span>
      <Pick label="Of" value={condition.type} options={types} set={(type) => put({ label: condition.label, type, value: first[type] ?? '' })} />
      {condition.type === 'tag_value' && <Field label="Tag" value={condition.tag ?? ''} set={(tag) => put({ ...condition, tag })} />}
      <Pick label="Comparison" value={condition.operator || operators[0]!} options={Object.fromEntries(operators.map((one) => [one, OPERATORS[one] ?? one]))} set={(operator) => put({ ...condition, operator })} />
      {condition.type === 'severity' && <Pick label="Value" value={condition.value ?? ''} options={Object.fromEntries(SEVERITIES.map((one) => [one, one]))} set={(value) => put({ ...condition, value })} />}
      {condition.type === 'suppressed' && <Pick label="Value" value={condition.value ?? 'true'} options={{ true: 'yes', false: 'no' }} set={(value) => put({ ...condition, value })} />}
      {!(condition.type in first) && <Field label="Value" value={condition.value ?? ''} set={(value) => put({ ...condition, value })} required={condition.type !== 'tag_value'} hint={hintOf(condition.type)} />}
    </>
  );
}

function OperationLine({ alerting, operation, steps, put }: { alerting: Alerting; operation: Operation; steps: boolean; put: (next: Operation) => void }) {
  const number = (text: string): number | undefined => (/^-?\d+$/.test(text) ? Number(text) : undefined);
  return (
    <>
      {steps && (
        <>
          <Field label="From step" value={String(operation.from ?? 1)} set={(text) => put({ ...operation, from: number(text) })} />
          <Field label="To step" value={operation.to === undefined ? '' : String(operation.to)} set={(text) => put({ ...operation, to: number(text) })} required={false} hint="-1: until it is over" />
        </>
      )}
      <Several legend="Receivers" all={(alerting.receivers ?? []).map((one) => one.name)} chosen={operation.receivers ?? []} set={(receivers) => put({ ...operation, receivers })} />
      {!steps && <Check label="All who were told" value={operation.involved ?? false} set={(involved) => put({ ...operation, involved })} />}
      <Several legend="Only over" all={(alerting.media ?? []).map((one) => one.name)} chosen={operation.media ?? []} set={(media) => put({ ...operation, media })} />
      {steps && <Pick label="When" value={operation.if ?? ''} options={CONDITIONS} set={(text) => put({ ...operation, if: text })} />}
    </>
  );
}
