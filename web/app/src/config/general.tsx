// What a host or template is besides its items: names, groups, templates, interfaces, macros, tags.

import { type Configuration, deleteDocument, exportAddress, type Kind, type Remark } from '../api/configuration.ts';
import { Sure } from '../part/form.tsx';
import { useCell } from '../state/cell.ts';
import { me } from '../state/me.ts';
import { go, href } from '../state/route.ts';
import { type Fields, list, mistakesOf, names, put, putNames, text } from './document.ts';
import { Columns, Names, Pick, Switch, Tags, Text, Whole } from './parts.tsx';
import { Purge } from './purge.tsx';

const FIELDS = ['host', 'template', 'name', 'description', 'groups', 'templates', 'interfaces', 'proxy', 'tags', 'macros'];

const INTERFACES: [string, string][] = [
  ['ZABBIX', 'Agent'],
  ['SNMP', 'SNMP'],
  ['IPMI', 'IPMI'],
  ['JMX', 'JMX'],
];
const PORTS: Record<string, string> = { ZABBIX: '10050', SNMP: '161', IPMI: '623', JMX: '12345' };

interface Props {
  kind: Kind;
  fields: Fields;
  set: (fields: Fields) => void;
  remarks: Remark[];
  known: Configuration;
  failed: (text: string) => void;
}

export function General({ kind, fields, set, remarks, known, failed }: Props) {
  const who = useCell(me);
  const path = `${kind}s[0]`;
  const mistakes = mistakesOf(remarks.filter((remark) => !/\.(items|discovery_rules)\[/.test(remark.at ?? '')), path, FIELDS);
  const technical = text(fields, kind);
  const change = (key: string, value: string): void => set(put(fields, key, value));
  const remove = async (): Promise<void> => {
    await deleteDocument(kind, technical);
    go(href(kind === 'host' ? '/configuration' : '/configuration/templates'));
  };
  return (
    <>
      <Whole mistakes={mistakes} />
      <Columns>
        <div class="form">
          <div class="field">
            <span>Technical name</span>
            <code>{technical}</code>
          </div>
          <Text label="Visible name" value={text(fields, 'name', technical)} set={(value) => change('name', value)} mistakes={mistakes.name} />
          <Names label={kind === 'host' ? 'Host groups' : 'Template groups'} value={names(fields, 'groups')} set={(value) => set(putNames(fields, 'groups', value))} known={kind === 'host' ? known.host_groups : []} mistakes={mistakes.groups} />
          <Names
            label="Templates"
            value={names(fields, 'templates')}
            set={(value) => set(putNames(fields, 'templates', value))}
            known={known.templates.map((one) => one.template).filter((one) => one !== technical)}
            mistakes={mistakes.templates}
            hint="Without a template its items and triggers go, with their values."
          />
          <Text label="Description" value={text(fields, 'description')} set={(value) => change('description', value)} lines={2} />
          {kind === 'host' && <Switch fields={fields} set={set} />}
        </div>
        <div class="form">
          {kind === 'host' && <AskedBy fields={fields} set={set} proxies={known.proxies} mistakes={mistakes.proxy} />}
          {kind === 'host' && <Interfaces fields={fields} set={set} />}
          <Tags fields={fields} set={set} />
        </div>
      </Columns>
      <section class="ends" aria-label="Export and delete">
        <div class="row-buttons">
          <a class="button" href={exportAddress(kind, technical)} download={`${technical}.yaml`}>
            Export as YAML
          </a>
          <Sure label={`Delete the ${kind}`} again={`Delete ${technical} with all its items?`} run={remove} failed={failed} />
        </div>
        {kind === 'host' && who?.role === 'administrator' && <Purge host={technical} />}
      </section>
    </>
  );
}

/** AskedBy chooses between the server and the proxies; without a proxy there is nothing to choose. */
function AskedBy({ fields, set, proxies, mistakes }: { fields: Fields; set: (fields: Fields) => void; proxies: string[]; mistakes?: string[] }) {
  const now = text((fields.proxy as Fields | undefined) ?? {}, 'name');
  if (proxies.length === 0 && now === '') return null;
  const options = proxies.map((one): [string, string] => [one, `proxy ${one}`]);
  return <Pick label="Asked by" value={now} options={[['', 'the server'], ...options]} set={(name) => set(put(fields, 'proxy', name === '' ? undefined : { name }))} mistakes={mistakes} />;
}

/** address is where an interface is, a name or an IP address. */
export const address = (one: Fields): string => (text(one, 'useip') === 'NO' ? text(one, 'dns') : text(one, 'ip', '127.0.0.1'));

/** putAddress keeps a name and an IP address apart, as exports do. */
export function putAddress(one: Fields, value: string): Fields {
  const ip = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:.]*)$/i.test(value);
  return put(put(put(one, 'useip', ip ? '' : 'NO'), 'ip', ip ? value : ''), 'dns', ip ? '' : value);
}

export function Interfaces({ fields, set }: { fields: Fields; set: (fields: Fields) => void }) {
  const rows = list(fields, 'interfaces');
  const change = (next: Fields[]): void => set(put(fields, 'interfaces', next));
  const one = (at: number, next: Fields): void => change(rows.map((row, n) => (n === at ? next : row)));
  const add = (): void => {
    let n = rows.length + 1;
    while (rows.some((row) => text(row, 'interface_ref') === `if${n}`)) n++;
    change([...rows, { ip: '127.0.0.1', interface_ref: `if${n}` }]);
  };
  return (
    <fieldset>
      <legend>Interfaces: where the host is asked</legend>
      {rows.length === 0 && <p class="muted">None. An agent that sends by itself needs none.</p>}
      {rows.map((row, n) => {
        const type = text(row, 'type', 'ZABBIX');
        const details = (row.details as Fields | undefined) ?? {};
        return (
          <div class="interface" key={n}>
            <Pick label="Type" value={type} options={INTERFACES} set={(value) => one(n, put(put(row, 'type', value, 'ZABBIX'), 'port', PORTS[value], '10050'))} />
            <Text label="Address" value={address(row)} set={(value) => one(n, putAddress(row, value))} />
            <Text label="Port" value={text(row, 'port', PORTS[type])} set={(value) => one(n, { ...row, port: value })} />
            {type === 'SNMP' && <Text label="Community" value={text(details, 'community')} set={(value) => one(n, put(row, 'details', { ...details, community: value }))} hint="SNMPv2; other settings as text." />}
            <button type="button" class="small" aria-label={`Remove interface ${n + 1}`} onClick={() => change(rows.filter((_, other) => other !== n))}>
              Remove
            </button>
          </div>
        );
      })}
      <button type="button" class="small" onClick={add}>
        Add an interface
      </button>
    </fieldset>
  );
}

export function Macros({ fields, set, remarks, path }: { fields: Fields; set: (fields: Fields) => void; remarks: Remark[]; path: string }) {
  const mistakes = mistakesOf(remarks, `${path}.macros`);
  const rows = list(fields, 'macros');
  const one = (at: number, next: Fields): void => set(put(fields, 'macros', rows.map((row, n) => (n === at ? next : row))));
  return (
    <form class="macros" aria-label="Macros" onSubmit={(event) => event.preventDefault()}>
      <p class="muted">A macro stands for a value in items, triggers and interfaces. Those of the host go before those of its templates, and these before the global ones.</p>
      {Object.values(mistakes).length > 0 && (
        <p class="problem-text" role="alert">
          {Object.values(mistakes).flat().join(' ')}
        </p>
      )}
      {rows.map((row, n) => {
        const secret = text(row, 'type') === 'SECRET_TEXT';
        return (
          <div class="macro" key={n}>
            <Text label="Macro" value={text(row, 'macro')} set={(value) => one(n, { ...row, macro: value })} mono />
            <Text
              label={secret ? 'Secret value' : 'Value'}
              value={text(row, 'value')}
              set={(value) => one(n, put(row, 'value', value))}
              secret={secret}
              hint={secret ? 'Empty keeps the one that there is.' : undefined}
              mono
            />
            <label class="check">
              <input type="checkbox" checked={secret} onChange={(event) => one(n, put(row, 'type', event.currentTarget.checked ? 'SECRET_TEXT' : ''))} />
              <span>Secret</span>
            </label>
            <button type="button" class="small" aria-label={`Remove macro ${text(row, 'macro')}`} onClick={() => set(put(fields, 'macros', rows.filter((_, other) => other !== n)))}>
              Remove
            </button>
          </div>
        );
      })}
      <div>
        <button type="button" onClick={() => set(put(fields, 'macros', [...rows, { macro: '{$NAME}', value: '' }]))}>
          Add a macro
        </button>
      </div>
    </form>
  );
}

