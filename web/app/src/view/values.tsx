// Latest values: every item with its newest value, searchable, moving.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { getHosts, getItems } from '../api/client.ts';
import type { Item } from '../api/types.ts';
import { formatAge, formatDuration, plural } from '../format/number.ts';
import { shownValue } from '../item/reading.ts';
import { chartUnits } from '../item/sections.ts';
import { Link } from '../part/link.tsx';
import { useLater, useLoad, useSecond } from '../part/load.ts';
import { Empty, Failure, NoMatch } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live, serverNow } from '../state/live.ts';
import { route, setParams } from '../state/route.ts';
import { useLiveReadings } from './facts.tsx';
import { HostTabs, NoHosts } from './hosts.tsx';

const LIMIT = 200;

export function ValuesView() {
  const { params } = useCell(route);
  const host = params.get('host') ?? '';
  const hosts = useLoad((signal) => getHosts({ limit: 10_000 }, signal), []);
  return (
    <div class="page">
      <h1>Hosts</h1>
      <HostTabs current="values" />
      {hosts.data !== null && hosts.data.total === 0 ? (
        <NoHosts />
      ) : (
        <ValueList host={host} all>
          <select aria-label="Host" value={host} onChange={(event) => setParams({ host: event.currentTarget.value })}>
            <option value="">all hosts</option>
            {(hosts.data?.hosts ?? []).map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </select>
        </ValueList>
      )}
    </div>
  );
}

interface ListProps {
  host: string;
  /** Values of several hosts are listed, so each row says whose it is. */
  all?: boolean;
  children?: preact.ComponentChildren;
}

/** ValueList is the searchable table; host "" means all hosts. */
export function ValueList({ host, all = false, children }: ListProps) {
  const { params } = useCell(route);
  const [search, setSearch] = useState(params.get('search') ?? '');
  const later = useLater(search.trim());
  useEffect(() => setParams({ search: later }), [later]);
  const [more, setMore] = useState(1);
  const loaded = useLoad((signal) => getItems({ host, search: later, limit: LIMIT * more }, signal), [host, later, more]);
  const items = useMemo(() => loaded.data?.items ?? [], [loaded.data]);
  const shown = useLiveReadings(items);
  useEffect(() => live.want(host !== '' ? { host } : { items: items.map((item) => item.id) }), [host, items]);
  useSecond();
  const columns = all && host === '' ? COLUMNS : COLUMNS.filter((column) => column.id !== 'host');

  return (
    <>
      <div class="filters">
        {children}
        <input type="search" value={search} placeholder="Search names and keys" aria-label="Search names and keys" onInput={(event) => setSearch(event.currentTarget.value)} />
        <span class="muted filters-end" aria-live="polite">
          {loaded.data === null ? '' : plural(loaded.data.total, 'item')}
        </span>
      </div>
      {loaded.error !== null && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data !== null && items.length === 0 && loaded.error === null && (later === '' ? <NoItems /> : <NoMatch what="item" clear={() => (setSearch(''), setParams({ search: '' }))} />)}
      {items.length > 0 && <Table caption="Latest values" columns={columns} rows={shown} rowKey={(item) => item.id} rowLink={(item) => `/items/${item.id}`} param="sort" whole dimmed={loaded.loading && later !== search.trim()} />}
      {loaded.data !== null && items.length < loaded.data.total && (
        <button type="button" class="more" onClick={() => setMore(more + 4)}>
          Show more of {loaded.data.total.toLocaleString('en-US')}
        </button>
      )}
    </>
  );
}

function NoItems() {
  return (
    <Empty title="No items yet.">
      <p class="muted">
        Items come with an agent or a template, or are made by hand: see <Link to="/configuration">Configuration</Link>.
      </p>
    </Empty>
  );
}

const COLUMNS: Column<Item>[] = [
  { id: 'host', title: 'Host', cell: (item) => <Link to={`/hosts/${item.host_id}`}>{item.host}</Link>, sort: (item) => item.host, class: 'host-cell' },
  {
    id: 'name',
    title: 'Item',
    cell: (item) => (
      <>
        <Link to={`/items/${item.id}`}>{item.name}</Link>
        <span class="muted item-key">{item.key}</span>
      </>
    ),
    sort: (item) => item.name,
    class: 'wide',
  },
  {
    id: 'value',
    title: 'Value',
    cell: (item) => {
      const value = shownValue(item, chartUnits(item));
      return item.state === 'unsupported' ? (
        <span class="problem-text" title={item.error}>
          not supported
        </span>
      ) : (
        <span class="value-cell" title={value.exact}>
          {value.text}
        </span>
      );
    },
    sort: (item) => shownValue(item, chartUnits(item)).number ?? shownValue(item, chartUnits(item)).text,
    number: true,
  },
  { id: 'age', title: 'Age', cell: (item) => (item.last === null ? '–' : formatAge(serverNow() - item.last.at)), sort: (item) => -(item.last?.at ?? 0), number: true },
  { id: 'interval', title: 'Every', cell: (item) => (item.interval_ms > 0 ? formatDuration(item.interval_ms / 1000) : '–'), sort: (item) => item.interval_ms, number: true, minor: true },
  { id: 'kind', title: 'Kind', cell: (item) => item.kind, sort: (item) => item.kind, minor: true },
];
