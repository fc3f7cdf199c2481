// The items of a host or template, or the item prototypes of a discovery rule.

import { useEffect, useRef } from 'preact/hooks';
import type { Kind, Remark } from '../api/configuration.ts';
import { Empty } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';
import { type Doc, type Fields, isFresh, list, mistakesOf, put, text } from './document.ts';
import { defaultDelay, fitsType, hasInterval, ITEM_TYPES, keyHint, TYPE_FIELDS, VALUE_TYPES } from './fields.ts';
import { KEYS } from './keys.ts';
import { Columns, Pairs, Pick, Switch, Tags, Text, TypeFields, Whole } from './parts.tsx';
import { Steps } from './steps.tsx';
import { TryItem } from './try.tsx';

const FIELDS = ['key', 'name', 'type', 'value_type', 'delay', 'history', 'trends', 'units', 'description', 'status', 'tags', 'preprocessing', 'master_item', 'url', 'snmp_oid', 'params'];

interface Props {
  /** Where the list is in the document, for mistakes. */
  path: string;
  items: Fields[];
  set: (items: Fields[]) => void;
  renamed?: (from: string, to: string) => void;
  remarks: Remark[];
  /** The parameter of the address that names the open one. */
  param: string;
  what: 'item' | 'item prototype';
  /** The keys of the items that the server has; all when missing. */
  kept?: string[];
  /** Saving was tried, so that all mistakes are shown. */
  tried?: boolean;
  /** For tests; prototypes have none. */
  tested?: { kind: Kind; doc: Doc; technical: string };
}

export function Items({ path, items, set, renamed, remarks, param, what, kept, tried = false, tested }: Props) {
  const { params } = useCell(route);
  const open = params.get(param);
  const at = open === null ? -1 : Number(open);
  useEffect(() => {
    if (at >= items.length) setParams({ [param]: '' });
  }, [at, items.length]);
  if (at >= 0 && at < items.length) {
    const change = (item: Fields): void => {
      set(items.map((one, n) => (n === at ? item : one)));
      if (text(items[at], 'key') !== text(item, 'key')) renamed?.(text(items[at], 'key'), text(item, 'key'));
    };
    return (
      <ItemForm
        item={items[at]}
        path={`${path}[${at}]`}
        set={change}
        remove={() => {
          set(items.filter((_, n) => n !== at));
          setParams({ [param]: '' });
        }}
        close={() => setParams({ [param]: '' })}
        remarks={remarks}
        keys={items.filter((_, n) => n !== at).map((one) => text(one, 'key'))}
        what={what}
        fresh={kept !== undefined && isFresh(items, at, kept)}
        tried={tried}
        tested={tested}
      />
    );
  }
  const add = (): void => {
    set([...items, { name: '', type: 'ZABBIX_ACTIVE', key: '', value_type: 'FLOAT' }]);
    setParams({ [param]: String(items.length) });
  };
  const rows = items.map((item, n) => ({ item, n, wrong: Object.values(mistakesOf(remarks, `${path}[${n}]`, FIELDS)).flat() }));
  const columns: Column<(typeof rows)[number]>[] = [
    {
      id: 'name',
      title: 'Name',
      class: 'anywhere',
      cell: ({ item, n }) => (
        <button type="button" class="as-link" onClick={() => setParams({ [param]: String(n) })}>
          {text(item, 'name') || text(item, 'key') || 'without name'}
        </button>
      ),
      sort: ({ item }) => text(item, 'name').toLowerCase(),
    },
    { id: 'key', title: 'Key', class: 'anywhere', cell: ({ item }) => <code>{text(item, 'key')}</code>, sort: ({ item }) => text(item, 'key') },
    { id: 'type', title: 'Type', cell: ({ item }) => titleOf(ITEM_TYPES, text(item, 'type', 'ZABBIX_PASSIVE')), sort: ({ item }) => text(item, 'type'), minor: true },
    { id: 'delay', title: 'Interval', cell: ({ item }) => (hasInterval(text(item, 'type')) ? text(item, 'delay', '1m') : '–'), minor: true, number: true },
    { id: 'steps', title: 'Steps', cell: ({ item }) => list(item, 'preprocessing').length || '', minor: true, number: true },
    { id: 'state', title: '', class: 'anywhere', cell: ({ item, wrong }) => (wrong.length > 0 ? <span class="problem-text">{wrong[0]}</span> : text(item, 'status') === 'DISABLED' ? 'off' : '') },
  ];
  return (
    <section aria-label={`${what}s`}>
      <div>
        <button type="button" onClick={add}>
          New {what}
        </button>
      </div>
      {items.length === 0 ? <Empty title={`There are no ${what}s of its own.`} /> : <Table caption={`${what}s`} columns={columns} rows={rows} rowKey={({ n }) => String(n)} sort="name" />}
    </section>
  );
}

export const titleOf = (options: [string, string][], name: string): string => options.find(([one]) => one === name)?.[1] ?? name;

interface FormProps {
  item: Fields;
  path: string;
  set: (item: Fields) => void;
  remove: () => void;
  close: () => void;
  remarks: Remark[];
  keys: string[];
  what: string;
  fresh: boolean;
  tried: boolean;
  tested?: Props['tested'];
}

function ItemForm({ item, path, set, remove, close, remarks, keys, what, fresh, tried, tested }: FormProps) {
  const quiet = fresh && !tried;
  // What was said of the item when it had another type is not shown until the server has looked again.
  const before = useRef<Remark[] | null>(null);
  const mistakes = remarks === before.current ? {} : mistakesOf(remarks, path, FIELDS);
  const type = text(item, 'type', 'ZABBIX_PASSIVE');
  const valueType = text(item, 'value_type', 'UNSIGNED');
  const change = (key: string, value: unknown, missing = ''): void => set(put(item, key, value, missing));
  const changeType = (next: string): void => {
    before.current = remarks;
    // What only the type before had would not be looked at.
    let kept = item;
    for (const { key } of TYPE_FIELDS[type] ?? []) if (!fitsType(next, key, text(item, key))) kept = put(kept, key, '');
    if (type === 'DEPENDENT') kept = put(kept, 'master_item', undefined);
    kept = put(kept, 'delay', hasInterval(next) && hasInterval(type) ? text(item, 'delay') : '');
    set(put(kept, 'type', next, 'ZABBIX_PASSIVE'));
  };
  return (
    <section class="object" aria-label={`${what} ${text(item, 'name')}`}>
      <div class="object-head">
        <h2>{text(item, 'name') || text(item, 'key') || `New ${what}`}</h2>
        <span class="row-buttons">
          <button type="button" class="small" onClick={close}>
            Back to the list
          </button>
          <button type="button" class="small danger" onClick={remove}>
            Remove
          </button>
        </span>
      </div>
      {!(quiet && text(item, 'key') === '') && <Whole mistakes={mistakes} />}
      <Columns>
        <div class="form">
          <Text label="Name" value={text(item, 'name')} set={(value) => change('name', value)} mistakes={mistakes.name} quiet={quiet} focus={text(item, 'key') === ''} />
          <Text label="Key" value={text(item, 'key')} set={(value) => change('key', value)} mistakes={mistakes.key} quiet={quiet} mono known={KEYS[type]} hint={fresh ? keyHint(type) : 'An item with another key is another item: the values of the old one are deleted with it.'} />
          <Pick label="Type" value={type} options={ITEM_TYPES} set={changeType} mistakes={mistakes.type} />
          {type === 'DEPENDENT' && (
            <Text
              label="Master item"
              value={text((item.master_item as Fields | undefined) ?? {}, 'key')}
              set={(value) => set(put(item, 'master_item', value === '' ? undefined : { key: value }))}
              known={keys}
              mono
              quiet={quiet}
              mistakes={mistakes.master_item}
              hint="The key of the item whose value it is made of."
            />
          )}
          <TypeFields specs={TYPE_FIELDS[type] ?? []} fields={item} set={set} mistakes={mistakes} quiet={quiet} />
          {type === 'SCRIPT' && <Pairs title="Parameters of the script" fields={item} of="parameters" names={['name', 'value']} labels={['Name', 'Value']} set={set} />}
          {type === 'HTTP_AGENT' && <Pairs title="Request headers" fields={item} of="headers" names={['name', 'value']} labels={['Header', 'Content']} set={set} />}
          <Pick label="Value" value={valueType} options={VALUE_TYPES} set={(value) => change('value_type', value, 'UNSIGNED')} mistakes={mistakes.value_type} />
          {(valueType === 'FLOAT' || valueType === 'UNSIGNED') && <Text label="Units" value={text(item, 'units')} set={(value) => change('units', value)} hint="Such as B, %, s, !requests." />}
          {hasInterval(type) && (
            <Text label="Interval" value={text(item, 'delay', defaultDelay(type))} set={(value) => set({ ...item, delay: value })} mistakes={mistakes.delay} hint="Such as 10s or 1m; 1m;10s/1-5,9:00-18:00 for other times." />
          )}
          <Text label="Keep values for" value={text(item, 'history', '31d')} set={(value) => set({ ...item, history: value })} mistakes={mistakes.history} />
          {(valueType === 'FLOAT' || valueType === 'UNSIGNED') && <Text label="Keep trends for" value={text(item, 'trends', '365d')} set={(value) => set({ ...item, trends: value })} mistakes={mistakes.trends} />}
          <Text label="Description" value={text(item, 'description')} set={(value) => change('description', value)} lines={2} />
          <Tags fields={item} set={set} />
          <Switch fields={item} set={set} />
        </div>
        <div class="form">
          <Steps item={item} set={set} mistakes={mistakes} tried={tried} />
          {tested !== undefined && <TryItem {...tested} item={item} />}
        </div>
      </Columns>
    </section>
  );
}
