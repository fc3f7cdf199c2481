// What each host takes of the store, and what it may take before its oldest values go first.

import { getHostShares, type HostShare } from '../api/storage.ts';
import { digits, formatValue } from '../format/number.ts';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { Link } from '../part/link.tsx';

const COLUMNS: Column<HostShare>[] = [
  { id: 'host', title: 'Host', class: 'anywhere', cell: (row) => (row.host === '' ? <span class="muted">deleted items</span> : <Link to={`/hosts/${row.host_id}`}>{row.host}</Link>), sort: (row) => row.host.toLowerCase() },
  { id: 'bytes', title: 'Size', cell: (row) => formatValue(row.bytes + row.summary_bytes, 'B'), sort: (row) => row.bytes + row.summary_bytes, number: true },
  { id: 'share', title: 'Of the room', cell: (row) => `${digits(row.percent, 2)} %`, sort: (row) => row.percent, number: true },
  { id: 'values', title: 'Its values', cell: (row) => formatValue(row.bytes, 'B'), sort: (row) => row.bytes, number: true, minor: true },
  { id: 'limit', title: 'They may take', cell: (row) => (row.limit_bytes === 0 ? '–' : formatValue(row.limit_bytes, 'B')), sort: (row) => row.limit_bytes, number: true },
  { id: 'over', title: 'When it is full', cell: (row) => (row.over ? <b>its oldest go first</b> : 'the oldest of all go'), sort: (row) => (row.over ? 1 : 0) },
];

export function HostShares() {
  const state = useLoad((signal) => getHostShares(signal), []);
  const { data } = state;
  return (
    <section aria-labelledby="host-shares-title">
      <h2 id="host-shares-title">What hosts take</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {data !== null && data.hosts.length === 0 && <p class="muted">Known once a file pair of values is closed.</p>}
      {data !== null && data.hosts.length > 0 && (
        <>
          <Table caption="Room by host" columns={COLUMNS} rows={data.hosts} rowKey={(row) => row.host_id} sort="-bytes" />
          <p class="muted">
            Closed file pairs{data.count > data.hosts.length ? `, the ${data.hosts.length} hosts with most of ${data.count}` : ''}.{' '}
            {data.factor === 0
              ? 'When the store is full the oldest values of all hosts go.'
              : `A host whose values take more than ${data.factor} times what other hosts have on average loses its oldest ones before others do.`}
          </p>
        </>
      )}
    </section>
  );
}
