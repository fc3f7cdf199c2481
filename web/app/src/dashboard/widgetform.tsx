// The form of one widget. Which fields it has depends on the kind.

import { useState } from 'preact/hooks';
import { getGraphs, type ItemRef, type Query, type Threshold, type Variable, type Widget, WIDGET_KINDS, type WidgetKind } from '../api/dashboards.ts';
import { getItems } from '../api/client.ts';
import { getInstances } from '../api/mongo.ts';
import { type Host, SEVERITIES, type Severity } from '../api/types.ts';
import { Check, Field, Form } from '../part/form.tsx';
import { useLater, useLoad } from '../part/load.ts';
import { windowNow } from '../state/window.ts';
import { Dialog } from './dialog.tsx';
import { COLUMNS } from './grid.ts';
import { mistakeIn, single, takesItems, takesQueries, trimmed } from './tidy.ts';

export const KIND_WORDS: Record<WidgetKind, string> = {
  chart: 'Chart of items or PromQL',
  number: 'Number',
  table: 'Table of values',
  problems: 'Problems',
  requests: 'MongoDB requests',
  graph: 'Graph of a template',
  log: 'Lines of a log',
  timeline: 'States over time',
  text: 'Text',
};

/** SIZES are what new widgets begin with. */
export const SIZES: Record<WidgetKind, [number, number]> = { chart: [12, 7], number: [6, 4], table: [12, 7], problems: [12, 7], requests: [24, 8], graph: [12, 7], log: [24, 9], timeline: [24, 5], text: [8, 3] };

interface Props {
  widget: Widget;
  isNew: boolean;
  hosts: Host[];
  variables: Variable[];
  done: (widget: Widget) => void;
  close: () => void;
}

type Set = (change: Partial<Widget>) => void;

export function WidgetForm({ widget: first, isNew, hosts, variables, done, close }: Props) {
  const [widget, setWidget] = useState<Widget>(first);
  const set: Set = (change) => setWidget((old) => ({ ...old, ...change }));
  const run = async (): Promise<void> => {
    const mistake = mistakeIn(widget);
    if (mistake !== '') throw new Error(mistake);
    done(trimmed(widget));
  };
  const kind = widget.kind;
  return (
    <Dialog title={isNew ? 'Add a widget' : 'Change the widget'} close={close}>
      <Form submit={isNew ? 'Add' : 'Take over'} run={run} cancel={close}>
        <label class="field">
          <span>Kind</span>
          <select value={kind} autofocus onChange={(event) => set(kindChange(event.currentTarget.value as WidgetKind, widget, isNew))}>
            {WIDGET_KINDS.map((one) => (
              <option key={one} value={one}>
                {KIND_WORDS[one]}
              </option>
            ))}
          </select>
        </label>
        <Field label="Title" value={widget.title ?? ''} required={false} hint={titleHint(kind)} set={(title) => set({ title })} />
        {takesItems(kind) && <Items widget={widget} set={set} hosts={hosts} variables={variables} />}
        {takesQueries(kind) && <Queries widget={widget} set={set} />}
        {kind === 'chart' && <Check label="Stack the lines" value={widget.stack === true} set={(stack) => set({ stack })} />}
        {(kind === 'chart' || kind === 'number' || kind === 'table') && <Field label="Unit" value={widget.units ?? ''} required={false} hint="Such as B, %, s or req/s. Empty takes the item's own." set={(units) => set({ units })} />}
        {kind === 'number' && <Thresholds widget={widget} set={set} />}
        {(kind === 'problems' || kind === 'graph') && <HostField label="Host" value={widget.host ?? ''} empty={kind === 'problems'} hosts={hosts} variables={variables} set={(host) => set({ host })} />}
        {kind === 'problems' && <ProblemFields widget={widget} set={set} hosts={hosts} />}
        {kind === 'graph' && <GraphField widget={widget} set={set} hosts={hosts} />}
        {kind === 'requests' && <InstanceField widget={widget} set={set} />}
        {(kind === 'problems' || kind === 'requests' || kind === 'table') && <NumberField label="Rows at most" value={widget.limit ?? 0} low={0} high={100} set={(limit) => set({ limit })} />}
        {kind === 'text' && (
          <label class="field">
            <span>Text</span>
            <textarea rows={8} value={widget.text ?? ''} onInput={(event) => set({ text: event.currentTarget.value })} />
            <small class="muted"># heading, - list, **bold**, `code`, [link](/problems)</small>
          </label>
        )}
        <fieldset class="places">
          <legend>Place on the grid of {COLUMNS} columns</legend>
          <NumberField label="Column" value={widget.x} low={0} high={COLUMNS - widget.w} set={(x) => set({ x })} />
          <NumberField label="Row" value={widget.y} low={0} high={2_000} set={(y) => set({ y })} />
          <NumberField label="Width" value={widget.w} low={1} high={COLUMNS} set={(w) => set({ w })} />
          <NumberField label="Height" value={widget.h} low={1} high={60} set={(h) => set({ h })} />
        </fieldset>
      </Form>
    </Dialog>
  );
}

const titleHint = (kind: WidgetKind): string | undefined => (kind === 'graph' ? 'Empty takes the name of the graph.' : undefined);

// A new widget takes the size that its kind needs; one that stands already keeps its own.
function kindChange(kind: WidgetKind, old: Widget, isNew: boolean): Partial<Widget> {
  const [w, h] = SIZES[kind];
  const items = takesItems(kind) ? (old.items ?? []).slice(0, single(kind) ? 1 : undefined) : [];
  return { kind, items: takesItems(kind) && items.length === 0 ? [{ host: '', key: '' }] : items, queries: takesQueries(kind) ? old.queries : [], ...(isNew ? { w, h, x: 0 } : {}) };
}

function Items({ widget, set, hosts, variables }: { widget: Widget; set: Set; hosts: Host[]; variables: Variable[] }) {
  const items = widget.items ?? [];
  const change = (n: number, part: Partial<ItemRef>): void => set({ items: items.map((item, at) => (at === n ? { ...item, ...part } : item)) });
  return (
    <fieldset>
      <legend>Items</legend>
      {items.map((item, n) => (
        <div class="item-line" key={n}>
          <HostField label={`Host of item ${n + 1}`} value={item.group ? `group:${item.group}` : (item.host ?? '')} groups hosts={hosts} variables={variables} set={(value) => change(n, value.startsWith('group:') ? { host: undefined, group: value.slice(6) } : { host: value, group: undefined })} />
          <KeyField n={n} item={item} set={(key) => change(n, { key })} />
          {widget.kind === 'chart' && <Check label="downwards" value={item.mirror === true} set={(mirror) => change(n, { mirror })} />}
          <button type="button" class="small" aria-label={`Remove item ${n + 1}`} onClick={() => set({ items: items.filter((_item, at) => at !== n) })}>
            Remove
          </button>
        </div>
      ))}
      {(!single(widget.kind) || items.length === 0) && items.length < 20 && (
        <button type="button" class="small" onClick={() => set({ items: [...items, { host: items[items.length - 1]?.host ?? '', key: '' }] })}>
          Add an item
        </button>
      )}
    </fieldset>
  );
}

const MAX_KEYS = 200;

// The keys of the host that was chosen; of a variable those of any host that has been named.
function KeyField({ n, item, set }: { n: number; item: ItemRef; set: (key: string) => void }) {
  const text = useLater(item.key, 200);
  const known = useLoad(
    async (signal) => {
      const place = item.group && !item.group.includes('$') ? { group: item.group } : item.host && !item.host.includes('$') ? { host_name: item.host } : {};
      return (await getItems({ ...place, search: text.replace(/\*.*$/, ''), limit: MAX_KEYS }, signal)).items;
    },
    [item.host, item.group, text],
  );
  const keys = [...new Set((known.data ?? []).map((one) => one.key))];
  return (
    <label class="field key-field">
      <span>Key of item {n + 1}</span>
      <input value={item.key} list={`keys-${n}`} placeholder="system.cpu.load[all,avg1]" autocomplete="off" spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />
      <datalist id={`keys-${n}`}>
        {keys.map((key) => (
          <option key={key} value={key} />
        ))}
      </datalist>
      <small class="muted">* stands for anything: net.if.in[*]</small>
    </label>
  );
}

interface HostProps {
  label: string;
  value: string;
  hosts: Host[];
  variables: Variable[];
  /** Groups can be chosen too, as "group:NAME". */
  groups?: boolean;
  /** Nothing need be chosen. */
  empty?: boolean;
  set: (value: string) => void;
}

function HostField({ label, value, hosts, variables, groups = false, empty = false, set }: HostProps) {
  const names = groupNames(hosts);
  const offered = [...variables.filter((one) => one.kind === 'host').map((one) => `$${one.name}`), ...hosts.map((host) => host.host)];
  const ofGroups = groups ? [...variables.filter((one) => one.kind === 'group').map((one) => `$${one.name}`), ...names] : [];
  const known = offered.includes(value) || ofGroups.includes(value.replace(/^group:/, ''));
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        <option value="">{empty ? 'all hosts' : 'choose …'}</option>
        {!known && value !== '' && <option value={value}>{value}</option>}
        {offered.map((host) => (
          <option key={host} value={host}>
            {host}
          </option>
        ))}
        {ofGroups.map((group) => (
          <option key={`group:${group}`} value={`group:${group}`}>
            all of group {group}
          </option>
        ))}
      </select>
    </label>
  );
}

/** groupNames are the names of all host groups. */
export function groupNames(hosts: Host[]): string[] {
  return [...new Set(hosts.flatMap((host) => host.groups))].sort();
}

function Queries({ widget, set }: { widget: Widget; set: Set }) {
  const queries = widget.queries ?? [];
  const change = (n: number, part: Partial<Query>): void => set({ queries: queries.map((query, at) => (at === n ? { ...query, ...part } : query)) });
  return (
    <fieldset>
      <legend>Or PromQL, instead of items</legend>
      {queries.map((query, n) => (
        <div class="item-line" key={n}>
          <label class="field key-field">
            <span>Query {n + 1}</span>
            <input value={query.expr} spellcheck={false} autocomplete="off" placeholder={'rate(net_if_in{host="$host"}[5m]) * 8'} onInput={(event) => change(n, { expr: event.currentTarget.value })} />
          </label>
          <label class="field">
            <span>Legend {n + 1}</span>
            <input value={query.legend ?? ''} placeholder="{{host}}" autocomplete="off" onInput={(event) => change(n, { legend: event.currentTarget.value })} />
          </label>
          <button type="button" class="small" aria-label={`Remove query ${n + 1}`} onClick={() => set({ queries: queries.filter((_query, at) => at !== n) })}>
            Remove
          </button>
        </div>
      ))}
      {queries.length < (widget.kind === 'number' ? 1 : 10) && (
        <button type="button" class="small" onClick={() => set({ queries: [...queries, { expr: '' }] })}>
          Add a query
        </button>
      )}
    </fieldset>
  );
}

function Thresholds({ widget, set }: { widget: Widget; set: Set }) {
  const list = widget.thresholds ?? [];
  const change = (n: number, part: Partial<Threshold>): void => set({ thresholds: list.map((one, at) => (at === n ? { ...one, ...part } : one)) });
  return (
    <fieldset>
      <legend>Coloured from</legend>
      {list.map((one, n) => (
        <div class="item-line" key={n}>
          <NumberField label={`Value ${n + 1}`} value={one.value} step="any" set={(value) => change(n, { value })} />
          <label class="field">
            <span>like</span>
            <select value={one.severity} onChange={(event) => change(n, { severity: event.currentTarget.value as Severity })}>
              {SEVERITIES.map((severity) => (
                <option key={severity}>{severity}</option>
              ))}
            </select>
          </label>
          <button type="button" class="small" aria-label={`Remove value ${n + 1}`} onClick={() => set({ thresholds: list.filter((_one, at) => at !== n) })}>
            Remove
          </button>
        </div>
      ))}
      {list.length < 5 && (
        <button type="button" class="small" onClick={() => set({ thresholds: [...list, { value: 0, severity: 'warning' }] })}>
          Add a value
        </button>
      )}
    </fieldset>
  );
}

function ProblemFields({ widget, set, hosts }: { widget: Widget; set: Set; hosts: Host[] }) {
  const chosen = widget.severities ?? [];
  return (
    <>
      <label class="field">
        <span>Host group</span>
        <input value={widget.group ?? ''} list="widget-groups" placeholder="all groups" onInput={(event) => set({ group: event.currentTarget.value })} />
        <datalist id="widget-groups">
          {groupNames(hosts).map((group) => (
            <option key={group} value={group} />
          ))}
        </datalist>
      </label>
      <fieldset class="checks">
        <legend>Severities; all if none is chosen</legend>
        {SEVERITIES.map((severity) => (
          <Check key={severity} label={severity} value={chosen.includes(severity)} set={(on) => set({ severities: SEVERITIES.filter((one) => (one === severity ? on : chosen.includes(one))) })} />
        ))}
      </fieldset>
    </>
  );
}

function GraphField({ widget, set, hosts }: { widget: Widget; set: Set; hosts: Host[] }) {
  // Graphs of a variable are those of the first host that has any; which one that will be nobody knows yet.
  const host = hosts.find((one) => one.host === widget.host) ?? hosts.find((one) => one.templates.length > 0);
  const loaded = useLoad(async (signal) => (host === undefined ? { graphs: [] } : getGraphs(host.id, '', signal)), [host?.id]);
  const names = (loaded.data?.graphs ?? []).map((graph) => graph.name);
  return (
    <label class="field">
      <span>Graph</span>
      <input value={widget.graph ?? ''} list="widget-graphs" autocomplete="off" onInput={(event) => set({ graph: event.currentTarget.value })} />
      <datalist id="widget-graphs">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {loaded.data !== null && names.length === 0 && <small class="muted">{host === undefined ? 'Choose the host first.' : `The templates of ${host.host} have no graphs.`}</small>}
    </label>
  );
}

function InstanceField({ widget, set }: { widget: Widget; set: Set }) {
  const loaded = useLoad((signal) => getInstances(windowNow(), signal), []);
  const instances = loaded.data?.instances ?? [];
  return (
    <label class="field">
      <span>MongoDB server</span>
      <input value={widget.instance ?? ''} list="widget-instances" autocomplete="off" onInput={(event) => set({ instance: event.currentTarget.value })} />
      <datalist id="widget-instances">
        {instances.map((one) => (
          <option key={one.id} value={one.id} />
        ))}
      </datalist>
      {loaded.data !== null && instances.length === 0 && <small class="muted">No agent watches a MongoDB server at present.</small>}
    </label>
  );
}

function NumberField({ label, value, low, high, step = '1', set }: { label: string; value: number; low?: number; high?: number; step?: string; set: (value: number) => void }) {
  return (
    <label class="field number-field">
      <span>{label}</span>
      <input type="number" value={value} min={low} max={high} step={step} required onInput={(event) => event.currentTarget.value !== '' && set(Number(event.currentTarget.value))} />
    </label>
  );
}
