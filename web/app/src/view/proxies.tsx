// Proxies: which there are, and how they are doing. For administrators, as the list is.

import { getProxies, type Proxy } from '../api/network.ts';
import { formatAgo } from '../format/number.ts';
import { useLoad } from '../part/load.ts';
import { type Column, Table } from '../part/table.tsx';
import { serverNow } from '../state/live.ts';

const COLUMNS: Column<Proxy>[] = [
  { id: 'name', title: 'Proxy', class: 'anywhere', cell: (one) => one.name, sort: (one) => one.name.toLowerCase() },
  { id: 'mode', title: 'Mode', class: 'anywhere', cell: (one) => (one.ask_at ? `passive, asked at ${one.ask_at}` : 'active'), minor: true },
  { id: 'seen', title: 'Last seen', class: 'anywhere', cell: seen, sort: (one) => -one.seen_at },
  { id: 'version', title: 'Version', class: 'anywhere', cell: (one) => one.version || '–', minor: true },
  { id: 'hosts', title: 'Hosts', cell: (one) => one.hosts.toLocaleString('en-US'), sort: (one) => -one.hosts, number: true },
  { id: 'backlog', title: 'Backlog', cell: (one) => (one.backlog ? <span class="problem-text">has more to send</span> : 'none') },
];

function seen(one: Proxy) {
  if (one.failure) return <span class="problem-text">{one.failure}</span>;
  return one.seen_at === 0 ? 'not since the server started' : formatAgo(serverNow() - one.seen_at);
}

export function Proxies() {
  const loaded = useLoad((signal) => getProxies(signal), []);
  const rows = loaded.data?.proxies ?? [];
  if (rows.length === 0) return null; // most have none
  return (
    <section aria-labelledby="proxies-title">
      <h2 id="proxies-title">Proxies</h2>
      <Table caption="Proxies" columns={COLUMNS} rows={rows} rowKey={(one) => one.id} sort="name" />
    </section>
  );
}
