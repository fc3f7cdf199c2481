// Configuration: lists of hosts and templates, and the way to each.

import { useEffect, useState } from 'preact/hooks';
import { getHosts } from '../api/client.ts';
import { type Configuration, createDocument, getConfiguration, type TemplateRow } from '../api/configuration.ts';
import type { Host } from '../api/types.ts';
import { plural } from '../format/number.ts';
import { Form } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLater, useLoad } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live } from '../state/live.ts';
import { mayEdit, mayEditSome, me } from '../state/me.ts';
import { go, href, route } from '../state/route.ts';
import { NoHosts } from '../view/hosts.tsx';
import { AddHost } from './addhost.tsx';
import { EDIT_TABS, EditView } from './edit.tsx';
import { Import } from './import.tsx';
import { GlobalMacros } from './macros.tsx';
import { Network } from './network.tsx';
import { Text } from './parts.tsx';
import { GlobalRegexps } from './regexps.tsx';

const TABS: Record<string, string> = { '': 'Hosts', templates: 'Templates', macros: 'Macros and expressions', network: 'Network discovery', import: 'Import' };
const LIMIT = 1_000;

/** ConfigurationView shows what the address behind /configuration names. */
export function ConfigurationView({ path }: { path: string }) {
  const who = useCell(me);
  useEffect(() => live.want({}), []);
  const [, , first = '', name = '', tab = ''] = path.split('/');
  const all = mayEdit(who);
  if (!mayEditSome(who)) {
    return (
      <div class="page config">
        <h1>Configuration</h1>
        <Empty title="Your role cannot change hosts and templates.">
          <p class="muted">Ask an administrator for the role editor, on all hosts or on some host groups.</p>
        </Empty>
      </div>
    );
  }
  if (!all && !FOR_SOME.includes(first)) {
    return (
      <div class="page config">
        <h1>Configuration</h1>
        <Empty title="This concerns hosts that you may not change.">
          <p class="muted">Templates, macros, rules and imports hold for all hosts; they need the role editor on all of them.</p>
          <p>
            <Link to="/configuration">Your hosts</Link>
          </p>
        </Empty>
      </div>
    );
  }
  if ((first === 'hosts' || first === 'templates') && name !== '' && tab in EDIT_TABS) {
    const technical = decodeURIComponent(name);
    const kind = first === 'hosts' ? 'host' : 'template';
    return <EditView key={`${kind} ${technical}`} kind={kind} name={technical} tab={tab} />;
  }
  return <Lists tab={first} all={all} />;
}

/** What those find here who may change only the hosts of some host groups. */
const FOR_SOME = ['', 'add', 'hosts'];

function Lists({ tab, all }: { tab: string; all: boolean }) {
  const known = useLoad((signal) => getConfiguration(signal), [tab]);
  const { params } = useCell(route);
  const opened = ['regexp', 'macro'].find((one) => params.has(one) || params.get('fresh') === one) ?? '';
  return (
    <div class="page config">
      <h1>Configuration</h1>
      <nav class="tabs" aria-label="Configuration">
        {Object.entries(TABS).filter(([path]) => all || FOR_SOME.includes(path)).map(([path, title]) => (
          <Link key={path} to={path === '' ? '/configuration' : `/configuration/${path}`} current={tab === path}>
            {title}
          </Link>
        ))}
        {all && <Link to="/alerting">Actions and media</Link>}
      </nav>
      {known.error !== null && <Failure error={known.error} retry={known.reload} />}
      {tab === '' && <Hosts all={all} />}
      {known.data !== null && tab === 'add' && <AddHost known={known.data} />}
      {known.data !== null && tab === 'templates' && <Templates known={known.data} />}
      {known.data !== null && tab === 'macros' && (
        <>
          {opened !== 'regexp' && <GlobalMacros macros={known.data.global_macros} changed={known.reload} />}
          {opened === '' && <h2>Global regular expressions</h2>}
          {opened !== 'macro' && <GlobalRegexps />}
        </>
      )}
      {tab === 'network' && <Network />}
      {tab === 'import' && <Import />}
      {!(tab in TABS) && tab !== 'add' && <Empty title="There is no such page." />}
    </div>
  );
}

const HOST_COLUMNS: Column<Host>[] = [
  { id: 'name', title: 'Host', class: 'anywhere', cell: (host) => <Link to={`/configuration/hosts/${encodeURIComponent(host.host)}`}>{host.name}</Link>, sort: (host) => host.name.toLowerCase() },
  { id: 'host', title: 'Technical name', class: 'anywhere', cell: (host) => host.host, sort: (host) => host.host, minor: true },
  { id: 'templates', title: 'Templates', class: 'anywhere', cell: (host) => host.templates.join(', ') || '–', minor: true },
  { id: 'groups', title: 'Groups', class: 'anywhere', cell: (host) => host.groups.join(', '), minor: true },
  { id: 'items', title: 'Items', cell: (host) => host.items.toLocaleString('en-US'), sort: (host) => -host.items, number: true },
  { id: 'state', title: 'State', cell: (host) => (host.enabled ? 'on' : 'off'), sort: (host) => (host.enabled ? 0 : 1) },
];

function Hosts({ all }: { all: boolean }) {
  const [search, setSearch] = useState('');
  const later = useLater(search.trim());
  const hosts = useLoad((signal) => getHosts({ search: later, limit: LIMIT, editable: true }, signal), [later]);
  return (
    <section aria-label="Hosts">
      <div class="filters">
        <Link to="/configuration/add" class="button primary">
          Add a host
        </Link>
        <input type="search" value={search} placeholder="Search hosts" aria-label="Search hosts" onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="muted filters-end" aria-live="polite">
          {hosts.data === null ? '' : plural(hosts.data.total, 'host')}
        </span>
      </div>
      {!all && <p class="muted">The hosts that you may change: those of the host groups in which you are editor. Others are not listed.</p>}
      {hosts.error !== null && <Failure error={hosts.error} retry={hosts.reload} />}
      {hosts.data !== null && hosts.data.hosts.length === 0 && (later !== '' ? <Empty title="No host matches." /> : all ? <NoHosts /> : <NoneOfTheirs />)}
      {hosts.data !== null && hosts.data.hosts.length > 0 && (
        <Table caption="Hosts" columns={HOST_COLUMNS} rows={hosts.data.hosts} rowKey={(host) => host.id} rowLink={(host) => `/configuration/hosts/${encodeURIComponent(host.host)}`} sort="name" />
      )}
    </section>
  );
}

/** NoneOfTheirs stands where somebody may change the hosts of some groups, and there are none. */
function NoneOfTheirs() {
  return (
    <Empty title="There is no host that you may change.">
      <p class="muted">Add one to a host group in which you are editor, or ask an administrator for the role editor on a host group.</p>
    </Empty>
  );
}

const TEMPLATE_COLUMNS: Column<TemplateRow>[] = [
  { id: 'name', title: 'Template', class: 'anywhere', cell: (row) => <Link to={`/configuration/templates/${encodeURIComponent(row.template)}`}>{row.name || row.template}</Link>, sort: (row) => (row.name || row.template).toLowerCase() },
  { id: 'items', title: 'Items', cell: (row) => row.items, sort: (row) => -row.items, number: true },
  { id: 'triggers', title: 'Triggers', cell: (row) => row.triggers, sort: (row) => -row.triggers, number: true, minor: true },
  { id: 'hosts', title: 'Hosts', cell: (row) => row.hosts, sort: (row) => -row.hosts, number: true },
];

function Templates({ known }: { known: Configuration }) {
  const [search, setSearch] = useState('');
  const [adding, setAdding] = useState(false);
  const words = search.trim().toLowerCase();
  const rows = known.templates.filter((row) => `${row.name} ${row.template}`.toLowerCase().includes(words));
  return (
    <section aria-label="Templates">
      <div class="filters">
        <button type="button" onClick={() => setAdding(true)}>
          New template
        </button>
        <input type="search" value={search} placeholder="Search templates" aria-label="Search templates" onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="muted filters-end" aria-live="polite">
          {plural(rows.length, 'template')}
        </span>
      </div>
      {adding && <AddTemplate cancel={() => setAdding(false)} />}
      {rows.length === 0 ? <Empty title="No template matches." /> : <Table caption="Templates" columns={TEMPLATE_COLUMNS} rows={rows} rowKey={(row) => row.id} rowLink={(row) => `/configuration/templates/${encodeURIComponent(row.template)}`} sort="name" />}
    </section>
  );
}

function AddTemplate({ cancel }: { cancel: () => void }) {
  const [name, setName] = useState('');
  const run = async (): Promise<void> => {
    const answer = await createDocument('template', { zabbix_export: { version: '7.0', templates: [{ uuid: crypto.randomUUID().replaceAll('-', ''), template: name, name, groups: [{ name: 'Templates' }] }] } });
    if (answer.refused !== undefined) throw { detail: answer.refused };
    go(href(`/configuration/templates/${encodeURIComponent(name)}`));
  };
  return (
    <Form submit="Make the template" run={run} cancel={cancel}>
      <Text label="Template name" value={name} set={setName} focus required />
    </Form>
  );
}
