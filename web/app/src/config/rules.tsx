// Discovery rules: how they find things, and the prototypes of what they make. Filters, overrides and host prototypes are edited as text.

import { useEffect } from 'preact/hooks';
import type { Remark } from '../api/configuration.ts';
import { Link } from '../part/link.tsx';
import { Empty } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { mayEdit, me } from '../state/me.ts';
import { route, setParams } from '../state/route.ts';
import { type Fields, isFresh, list, mistakesOf, put, text } from './document.ts';
import { hasInterval, ITEM_TYPES, TYPE_FIELDS } from './fields.ts';
import { Items, titleOf } from './items.tsx';
import { Columns, Pairs, Pick, Switch, Text, TypeFields, Whole } from './parts.tsx';
import { Steps } from './steps.tsx';
import { Triggers } from './triggers.tsx';

const FIELDS = ['key', 'name', 'type', 'delay', 'lifetime', 'filter', 'description'];

interface Props {
  path: string;
  rules: Fields[];
  set: (rules: Fields[]) => void;
  remarks: Remark[];
  technical: string;
  keys: string[];
  /** The rules that the server has. */
  kept: Fields[];
  /** Saving was tried, so that all mistakes are shown. */
  tried: boolean;
}

export function Rules({ path, rules, set, remarks, technical, keys, kept, tried }: Props) {
  const { params } = useCell(route);
  const open = params.get('rule');
  const at = open === null ? -1 : Number(open);
  useEffect(() => {
    if (at >= rules.length) setParams({ rule: '', prototype: '', trigger: '' });
  }, [at, rules.length]);
  if (at >= 0 && at < rules.length) {
    const remove = (): void => {
      set(rules.filter((_, n) => n !== at));
      setParams({ rule: '', prototype: '', trigger: '' });
    };
    const fresh = isFresh(rules, at, kept.map((one) => text(one, 'key')));
    const before = fresh ? undefined : kept.find((one) => text(one, 'key') === text(rules[at], 'key')) ?? kept[at];
    return (
      <Rule
        rule={rules[at]}
        path={`${path}[${at}]`}
        set={(rule) => set(rules.map((one, n) => (n === at ? rule : one)))}
        remove={remove}
        remarks={remarks}
        technical={technical}
        keys={keys}
        before={before}
        tried={tried}
      />
    );
  }
  const add = (): void => {
    set([...rules, { name: '', type: 'ZABBIX_ACTIVE', key: '', delay: '1h' }]);
    setParams({ rule: String(rules.length) });
  };
  const rows = rules.map((rule, n) => ({ rule, n, wrong: Object.values(mistakesOf(remarks, `${path}[${n}]`, FIELDS)).flat() }));
  const columns: Column<(typeof rows)[number]>[] = [
    {
      id: 'name',
      title: 'Name',
      class: 'anywhere',
      cell: ({ rule, n }) => (
        <button type="button" class="as-link" onClick={() => setParams({ rule: String(n) })}>
          {text(rule, 'name') || text(rule, 'key') || 'without name'}
        </button>
      ),
      sort: ({ rule }) => text(rule, 'name').toLowerCase(),
    },
    { id: 'key', title: 'Key', class: 'anywhere', cell: ({ rule }) => <code>{text(rule, 'key')}</code>, sort: ({ rule }) => text(rule, 'key') },
    { id: 'type', title: 'Type', cell: ({ rule }) => titleOf(ITEM_TYPES, text(rule, 'type', 'ZABBIX_PASSIVE')), minor: true },
    { id: 'items', title: 'Item prototypes', cell: ({ rule }) => list(rule, 'item_prototypes').length, number: true, minor: true },
    { id: 'state', title: '', class: 'anywhere', cell: ({ rule, wrong }) => (wrong.length > 0 ? <span class="problem-text">{wrong[0]}</span> : text(rule, 'status') === 'DISABLED' ? 'off' : '') },
  ];
  return (
    <section aria-label="Discovery rules">
      <div>
        <button type="button" onClick={add}>
          New discovery rule
        </button>
      </div>
      {rules.length === 0 ? (
        <Empty title="There are no discovery rules of its own.">
          <p class="muted">A rule finds things such as file systems and makes items and triggers for each of them.</p>
        </Empty>
      ) : (
        <Table caption="Discovery rules" columns={columns} rows={rows} rowKey={({ n }) => String(n)} sort="name" />
      )}
    </section>
  );
}

interface RuleProps {
  rule: Fields;
  path: string;
  set: (rule: Fields) => void;
  remove: () => void;
  remarks: Remark[];
  technical: string;
  keys: string[];
  /** The rule as the server has it; missing for a new one. */
  before?: Fields;
  tried: boolean;
}

/** conditions is the filter of a rule in words. */
export function conditions(rule: Fields): string {
  const filter = (rule.filter as Fields | undefined) ?? {};
  return list(filter, 'conditions')
    .map((one) => `${text(one, 'macro')} ${text(one, 'operator', 'MATCHES_REGEX').replace('_REGEX', '').replaceAll('_', ' ').toLowerCase()} ${text(one, 'value')}`.trim())
    .join(filter.evaltype === 'OR' ? ' or ' : filter.evaltype === 'FORMULA' ? '; ' : ' and ');
}

function Rule({ rule, path, set, remove, remarks, technical, keys, before, tried }: RuleProps) {
  const { params } = useCell(route);
  const all = mayEdit(useCell(me));
  const quiet = before === undefined && !tried;
  const kept = before ?? {};
  const mistakes = mistakesOf(
    remarks.filter((remark) => !/\.(item|trigger)_prototypes\[/.test(remark.at ?? '')),
    path,
    FIELDS,
  );
  const type = text(rule, 'type', 'ZABBIX_PASSIVE');
  const change = (key: string, value: unknown, missing = ''): void => set(put(rule, key, value, missing));
  const open = params.get('prototype') !== null || params.get('trigger') !== null;
  const prototypes = (
    <>
      {params.get('trigger') === null && (
        <>
          {!open && <h2>Item prototypes</h2>}
          <Items path={`${path}.item_prototypes`} items={list(rule, 'item_prototypes')} set={(items) => change('item_prototypes', items)} remarks={remarks} param="prototype" what="item prototype" kept={list(kept, 'item_prototypes').map((one) => text(one, 'key'))} tried={tried} />
        </>
      )}
      {params.get('prototype') === null && (
        <>
          {!open && <h2>Trigger prototypes</h2>}
          <Triggers
            path={`${path}.trigger_prototypes`}
            triggers={list(rule, 'trigger_prototypes')}
            set={(triggers) => change('trigger_prototypes', triggers)}
            remarks={remarks}
            param="trigger"
            what="trigger prototype"
            technical={technical}
            example={text(list(rule, 'item_prototypes')[0] ?? {}, 'key')}
            kept={list(kept, 'trigger_prototypes').map((one) => text(one, 'name'))}
            tried={tried}
          />
        </>
      )}
    </>
  );
  if (open) return prototypes;
  const filter = conditions(rule);
  return (
    <>
      <section class="object" aria-label={`discovery rule ${text(rule, 'name')}`}>
        <div class="object-head">
          <h2>{text(rule, 'name') || 'New discovery rule'}</h2>
          <span class="row-buttons">
            <button type="button" class="small" onClick={() => setParams({ rule: '' })}>
              Back to the list
            </button>
            <button type="button" class="small danger" onClick={remove}>
              Remove
            </button>
          </span>
        </div>
        {!(quiet && text(rule, 'key') === '') && <Whole mistakes={mistakes} />}
        <Columns>
          <div class="form">
            <Text label="Name" value={text(rule, 'name')} set={(value) => change('name', value)} focus={text(rule, 'key') === ''} mistakes={mistakes.name} quiet={quiet} />
            <Text label="Key" value={text(rule, 'key')} set={(value) => change('key', value)} mistakes={mistakes.key} quiet={quiet} mono />
            <Pick label="Type" value={type} options={ITEM_TYPES} set={(value) => change('type', value, 'ZABBIX_PASSIVE')} mistakes={mistakes.type} />
            {type === 'DEPENDENT' && (
              <Text label="Master item" value={text((rule.master_item as Fields | undefined) ?? {}, 'key')} set={(value) => change('master_item', value === '' ? undefined : { key: value })} known={keys} mono />
            )}
            <TypeFields specs={TYPE_FIELDS[type] ?? []} fields={rule} set={set} mistakes={mistakes} quiet={quiet} />
            {hasInterval(type) && <Text label="Interval" value={text(rule, 'delay', '1m')} set={(value) => set({ ...rule, delay: value })} mistakes={mistakes.delay} />}
            <Text label="Keep what is lost for" value={text(rule, 'lifetime', '7d')} set={(value) => set({ ...rule, lifetime: value })} mistakes={mistakes.lifetime} />
            <Switch fields={rule} set={set} />
          </div>
          <div class="form">
            <Steps item={rule} set={set} mistakes={mistakes} tried={tried} />
            <Pairs title="Macros out of JSON" fields={rule} of="lld_macro_paths" names={['lld_macro', 'path']} labels={['Macro', 'JSONPath']} set={set} />
            <p class="muted">
              {filter === '' ? 'No filter: everything that is found is taken.' : `Taken when ${filter}.`} {all && <>Filters, overrides and host prototypes: <Link to={`${location.pathname.replace(/\/rules$/, '')}/text`}>edit as text</Link>.</>}
            </p>
          </div>
        </Columns>
      </section>
      {prototypes}
    </>
  );
}
