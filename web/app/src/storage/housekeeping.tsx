// Housekeeping of PostgreSQL: what is kept how long, what goes next, what went.

import { type Dropped, getHousekeeping, type HousekeptTable } from '../api/storage.ts';
import { formatDuration, formatValue, plural } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';

export function HousekeepingView() {
  const state = useLoad((signal) => getHousekeeping(signal), []);
  if (state.error !== null) return <Failure error={state.error} retry={state.reload} />;
  if (state.data === null) return null;
  const { tables, dropped, size_bytes: size, limit_bytes: limit, mode } = state.data;
  return (
    <section aria-labelledby="housekeeping-title">
      <h2 id="housekeeping-title">Housekeeping</h2>
      <p class="muted">
        {formatValue(size, 'B')} in tables, {limit > 0 ? `at most ${formatValue(limit, 'B')}` : 'no limit'}; new tables are kept as {mode}.
      </p>
      <Table caption="Tables of values" columns={TABLES} rows={tables} rowKey={(table) => table.name} sort="-bytes" />
      <h3>{dropped.length === 0 ? 'Nothing was dropped since the server started.' : `${plural(dropped.length, 'piece')} dropped since the server started`}</h3>
      {dropped.length > 0 && <Table caption="Dropped" columns={DROPPED} rows={dropped} rowKey={(one) => `${one.name} ${one.at}`} sort="-at" />}
    </section>
  );
}

const TABLES: Column<HousekeptTable>[] = [
  { id: 'name', title: 'Table', class: 'anywhere', cell: (table) => table.name, sort: (table) => table.name },
  { id: 'keep', title: 'Keeps', cell: (table) => (table.keep_seconds > 0 ? formatDuration(table.keep_seconds) : 'for ever'), sort: (table) => table.keep_seconds || Infinity },
  { id: 'bytes', title: 'Size', cell: (table) => formatValue(table.bytes, 'B'), sort: (table) => table.bytes, number: true },
  { id: 'pieces', title: 'Pieces', cell: (table) => (table.pieces === 0 ? 'plain' : String(table.pieces)), sort: (table) => table.pieces, number: true, minor: true },
  {
    id: 'next',
    title: 'Goes next',
    minor: true,
    cell: (table) => (table.next === undefined ? 'nothing' : `${table.next.name}, ${formatValue(table.next.bytes, 'B')}${table.next.due_at > 0 ? `, ${formatClock(table.next.due_at * 1000)}` : ''}`),
  },
];

const DROPPED: Column<Dropped>[] = [
  { id: 'at', title: 'When', cell: (one) => formatClock(one.at * 1000), sort: (one) => one.at },
  { id: 'name', title: 'What', class: 'anywhere', cell: (one) => one.name || one.table, sort: (one) => one.name },
  { id: 'reason', title: 'Because of', cell: (one) => one.reason, sort: (one) => one.reason },
  { id: 'bytes', title: 'Freed', cell: (one) => (one.rows ? plural(one.rows, 'row') : formatValue(one.bytes, 'B')), sort: (one) => one.bytes, number: true },
];
