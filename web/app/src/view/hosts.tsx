// All hosts, with search and group, and the way to the latest values.

import { useEffect, useState } from 'preact/hooks';
import { getHosts } from '../api/client.ts';
import { type Host, SEVERITIES } from '../api/types.ts';
import { formatAge, plural } from '../format/number.ts';
import { SeverityShape } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useLater, useLoad, useSecond } from '../part/load.ts';
import { Command, Empty, Failure, NoMatch } from '../part/notice.tsx';
import { OnlyHere } from '../part/onlyhere.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live, missed, problemsChanged, serverNow } from '../state/live.ts';
import { route, setParams } from '../state/route.ts';
import { useTrapper } from '../state/trapper.ts';

const LIMIT = 10_000;
const REFRESH_MS = 10_000;

export function HostTabs({ current }: { current: 'hosts' | 'values' }) {
  return (
    <nav class="tabs" aria-label="Hosts">
      <Link to="/hosts" current={current === 'hosts'}>
        All hosts
      </Link>
      <Link to="/hosts/values" current={current === 'values'}>
        Latest values
      </Link>
    </nav>
  );
}

export function HostsView() {
  const { params } = useCell(route);
  const group = params.get('group') ?? '';
  const [search, setSearch] = useState(params.get('search') ?? '');
  const later = useLater(search.trim());
  useEffect(() => setParams({ search: later }), [later]);
  useEffect(() => live.want({}), []);
  const changed = useCell(problemsChanged);
  const lost = useCell(missed);
  const hosts = useLoad((signal) => getHosts({ search: later, group, limit: LIMIT }, signal), [later, group, lost], changed);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && hosts.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  useSecond();
  const narrowed = later !== '' || group !== '';
  const listed = hosts.data?.hosts.length ?? 0;

  return (
    <div class="page">
      <h1>Hosts</h1>
      <HostTabs current="hosts" />
      <div class="filters">
        <input type="search" value={search} placeholder="Search hosts" aria-label="Search hosts" onInput={(event) => setSearch(event.currentTarget.value)} />
        {group !== '' && (
          <button type="button" class="tag" title="Show all groups" onClick={() => setParams({ group: '' })}>
            {group} ×
          </button>
        )}
        <span class="muted filters-end" aria-live="polite">
          {hosts.data === null ? '' : plural(hosts.data.total, 'host')}
        </span>
      </div>
      {hosts.error !== null && <Failure error={hosts.error} retry={hosts.reload} />}
      {hosts.data !== null && hosts.data.hosts.length === 0 && hosts.error === null && (narrowed ? <NoMatch what="host" clear={() => (setSearch(''), setParams({ search: '', group: '' }))} /> : <NoHosts />)}
      {hosts.data !== null && hosts.data.hosts.length > 0 && (
        <Table caption="Hosts" columns={COLUMNS} rows={hosts.data.hosts} rowKey={(host) => host.id} rowLink={(host) => `/hosts/${host.id}`} sort="name" param="sort" dimmed={hosts.error !== null} />
      )}
      {listed > 0 && listed < hosts.data!.total && <p class="muted">The first {listed.toLocaleString('en-US')} of {hosts.data!.total.toLocaleString('en-US')} hosts; search for the others.</p>}
    </div>
  );
}

/** NoHosts tells how the first host comes. */
export function NoHosts() {
  const server = useTrapper().address;
  return (
    <Empty title="No host has reported yet.">
      <p>Start an agent on a machine; its charts appear here within seconds:</p>
      <Command text={`tidemark agent --server ${server} --host $(hostname)`} />
      <OnlyHere />
      <p class="muted">
        Agents register themselves with <code>tidemark up</code>, and with <code>tidemark server --autoregistration</code>. Without that,
        import the host first.
      </p>
    </Empty>
  );
}

/** squareClass gives the colour of a host's square: its worst problem, or its agent's state. */
export function squareClass(host: Host): string {
  if (host.worst !== '') return `square severity-${host.worst.replace(' ', '-')}`;
  return host.state === 'ok' ? 'square ok' : `square ${host.state}`;
}

const STATES: Record<Host['state'], string> = { ok: 'ok', silent: 'silent', unknown: 'not seen' };

const COLUMNS: Column<Host>[] = [
  {
    id: 'name',
    title: 'Host',
    cell: (host) => (
      <span class="host-name">
        <i class={squareClass(host)} />
        <Link to={`/hosts/${host.id}`}>{host.name}</Link>
        {host.name !== host.host && <span class="muted"> {host.host}</span>}
      </span>
    ),
    sort: (host) => host.name,
  },
  { id: 'state', title: 'Agent', cell: (host) => <span class={`agent-state ${host.state}`}>{host.enabled ? STATES[host.state] : 'off'}</span>, sort: (host) => host.state },
  {
    id: 'problems',
    title: 'Problems',
    cell: (host) =>
      host.worst === '' ? (
        <span class="muted">none</span>
      ) : (
        <Link to={`/hosts/${host.id}/problems`} class="severity">
          <SeverityShape severity={host.worst} /> {host.problems === 1 ? `1 ${host.worst}` : `${host.problems}, worst ${host.worst}`}
        </Link>
      ),
    sort: (host) => (host.worst === '' ? 100 : SEVERITIES.indexOf(host.worst) - host.problems / 1000),
  },
  { id: 'groups', title: 'Groups', cell: (host) => host.groups.join(', '), sort: (host) => host.groups.join(', '), minor: true },
  { id: 'templates', title: 'Templates', cell: (host) => host.templates.join(', '), minor: true },
  { id: 'items', title: 'Items', cell: (host) => host.items.toLocaleString('en-US'), sort: (host) => -host.items, number: true, minor: true },
  { id: 'seen', title: 'Last value', cell: (host) => (host.last_seen === null ? 'never' : formatAge(serverNow() - host.last_seen)), sort: (host) => -(host.last_seen ?? 0), number: true },
];
