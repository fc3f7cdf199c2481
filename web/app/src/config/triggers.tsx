// The triggers of a host or template, or the trigger prototypes of a discovery rule.

import { useEffect } from 'preact/hooks';
import type { Kind, Remark } from '../api/configuration.ts';
import { Check } from '../part/form.tsx';
import { Empty } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';
import { asDependency, changeTrigger, dependsOn, type Doc, type Fields, isFresh, list, mistakesOf, put, removeTrigger, text } from './document.ts';
import { RECOVERY, SEVERITY_NAMES } from './fields.ts';
import { titleOf } from './items.tsx';
import { Columns, Pick, Switch, Tags, Text, Whole } from './parts.tsx';
import { TryTrigger } from './preview.tsx';

const FIELDS = ['name', 'expression', 'recovery_expression', 'recovery_mode', 'priority', 'dependencies', 'tags'];

interface Props {
  path: string;
  triggers: Fields[];
  set: (triggers: Fields[]) => void;
  remarks: Remark[];
  param: string;
  what: 'trigger' | 'trigger prototype';
  technical: string;
  /** An item's key for the expression of a new trigger. */
  example?: string;
  /** The names of the triggers that the server has. */
  kept: string[];
  /** Saving was tried, so that all mistakes are shown. */
  tried: boolean;
  tested?: { kind: Kind; doc: Doc };
}

export function Triggers({ path, triggers, set, remarks, param, what, technical, example, kept, tried, tested }: Props) {
  const { params } = useCell(route);
  const open = params.get(param);
  const at = open === null ? -1 : Number(open);
  useEffect(() => {
    if (at >= triggers.length) setParams({ [param]: '' });
  }, [at, triggers.length]);
  if (at >= 0 && at < triggers.length) {
    return (
      <TriggerForm
        trigger={triggers[at]}
        others={triggers.filter((_, n) => n !== at)}
        path={`${path}[${at}]`}
        set={(trigger) => set(changeTrigger(triggers, at, trigger))}
        remove={() => {
          set(removeTrigger(triggers, at));
          setParams({ [param]: '' });
        }}
        close={() => setParams({ [param]: '' })}
        remarks={remarks}
        what={what}
        technical={technical}
        quiet={!tried && isFresh(triggers, at, kept, 'name')}
        tested={tested}
      />
    );
  }
  const add = (): void => {
    set([...triggers, { expression: `last(/${technical}/${example ?? 'KEY'})>0`, name: '', priority: 'WARNING' }]);
    setParams({ [param]: String(triggers.length) });
  };
  const rows = triggers.map((trigger, n) => ({ trigger, n, wrong: Object.values(mistakesOf(remarks, `${path}[${n}]`, FIELDS)).flat() }));
  const columns: Column<(typeof rows)[number]>[] = [
    {
      id: 'name',
      title: 'Name',
      class: 'anywhere',
      cell: ({ trigger, n }) => (
        <button type="button" class="as-link" onClick={() => setParams({ [param]: String(n) })}>
          {text(trigger, 'name') || 'without name'}
        </button>
      ),
      sort: ({ trigger }) => text(trigger, 'name').toLowerCase(),
    },
    {
      id: 'severity',
      title: 'Severity',
      cell: ({ trigger }) => titleOf(SEVERITY_NAMES, text(trigger, 'priority', 'NOT_CLASSIFIED')),
      sort: ({ trigger }) => -SEVERITY_NAMES.findIndex(([name]) => name === text(trigger, 'priority', 'NOT_CLASSIFIED')),
    },
    { id: 'expression', title: 'Expression', class: 'anywhere', cell: ({ trigger }) => <code>{text(trigger, 'expression')}</code>, minor: true },
    { id: 'state', title: '', class: 'anywhere', cell: ({ trigger, wrong }) => (wrong.length > 0 ? <span class="problem-text">{wrong[0]}</span> : text(trigger, 'status') === 'DISABLED' ? 'off' : '') },
  ];
  return (
    <section aria-label={`${what}s`}>
      <div>
        <button type="button" onClick={add}>
          New {what}
        </button>
      </div>
      {triggers.length === 0 ? <Empty title={`There are no ${what}s of its own.`} /> : <Table caption={`${what}s`} columns={columns} rows={rows} rowKey={({ n }) => String(n)} sort="name" />}
    </section>
  );
}

interface FormProps {
  trigger: Fields;
  others: Fields[];
  path: string;
  set: (trigger: Fields) => void;
  remove: () => void;
  close: () => void;
  remarks: Remark[];
  what: string;
  technical: string;
  /** Mistakes of a field are not shown before it was touched. */
  quiet: boolean;
  tested?: Props['tested'];
}

function TriggerForm({ trigger, others, path, set, remove, close, remarks, what, technical, quiet, tested }: FormProps) {
  const mistakes = mistakesOf(remarks, path, FIELDS);
  const change = (key: string, value: unknown, missing = ''): void => set(put(trigger, key, value, missing));
  const mode = text(trigger, 'recovery_mode', 'EXPRESSION');
  const depend = (other: Fields, on: boolean): void => {
    const kept = list(trigger, 'dependencies').filter((one) => !dependsOn({ dependencies: [one] }, other));
    change('dependencies', on ? [...kept, asDependency(other)] : kept);
  };
  return (
    <section class="object" aria-label={`${what} ${text(trigger, 'name')}`}>
      <div class="object-head">
        <h2>{text(trigger, 'name') || `New ${what}`}</h2>
        <span class="row-buttons">
          <button type="button" class="small" onClick={close}>
            Back to the list
          </button>
          <button type="button" class="small danger" onClick={remove}>
            Remove
          </button>
        </span>
      </div>
      {!(quiet && text(trigger, 'name') === '') && <Whole mistakes={mistakes} />}
      <Columns>
        <div class="form">
          <Text label="Name" value={text(trigger, 'name')} set={(value) => change('name', value)} mistakes={mistakes.name} quiet={quiet} focus={text(trigger, 'name') === ''} />
          <Text
            label="Expression"
            value={text(trigger, 'expression')}
            set={(value) => set({ ...trigger, expression: value })}
            mistakes={mistakes.expression}
            quiet={quiet}
            lines={4}
            mono
            hint={`Such as avg(/${technical}/system.cpu.load,5m)>4. It is a problem while this is true.`}
          />
          <Pick label="Severity" value={text(trigger, 'priority', 'NOT_CLASSIFIED')} options={SEVERITY_NAMES} set={(value) => change('priority', value, 'NOT_CLASSIFIED')} mistakes={mistakes.priority} />
          <Pick
            label="The problem is over"
            value={mode}
            options={RECOVERY}
            set={(value) => set(put(value === 'RECOVERY_EXPRESSION' ? trigger : put(trigger, 'recovery_expression', ''), 'recovery_mode', value, 'EXPRESSION'))}
          />
          {mode === 'RECOVERY_EXPRESSION' && (
            <Text label="Recovery expression" value={text(trigger, 'recovery_expression')} set={(value) => change('recovery_expression', value)} mistakes={mistakes.recovery_expression} quiet={quiet} lines={2} mono hint="The expression must be false too." />
          )}
          <Check label="A problem for each value, as for log lines" value={text(trigger, 'type') === 'MULTIPLE'} set={(on) => change('type', on ? 'MULTIPLE' : '')} />
          <Check label="May be closed by hand" value={text(trigger, 'manual_close') === 'YES'} set={(on) => change('manual_close', on ? 'YES' : '')} />
          <Text label="Shown beside the problem" value={text(trigger, 'opdata')} set={(value) => change('opdata', value)} hint="Such as Load: {ITEM.LASTVALUE}." />
          <Text label="Description" value={text(trigger, 'description')} set={(value) => change('description', value)} lines={2} />
          <Tags fields={trigger} set={set} />
          {others.length > 0 && (
            <details class="depends">
              <summary>Depends on {list(trigger, 'dependencies').length} others: it is silent while one of them is a problem</summary>
              {others.map((other, n) => (
                <Check key={n} label={text(other, 'name')} value={dependsOn(trigger, other)} set={(on) => depend(other, on)} />
              ))}
            </details>
          )}
          <Switch fields={trigger} set={set} />
        </div>
        <div class="form">{tested !== undefined && <TryTrigger {...tested} technical={technical} trigger={trigger} />}</div>
      </Columns>
    </section>
  );
}
