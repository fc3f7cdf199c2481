// Housekeeping of PostgreSQL: what is kept how long, what goes next, what went.

import { type Dropped, getHousekeeping, type HousekeptTable, type Room } from '../api/storage.ts';
import { digits, formatDuration, formatValue, plural } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';

export function HousekeepingView() {
  const state = useLoad((signal) => getHousekeeping(signal), []);
  if (state.error !== null) return <Failure error={state.error} retry={state.reload} />;
  if (state.data === null) return null;
  const { room, tables, dropped, size_bytes: size, limit_bytes: limit, mode } = state.data;
  return (
    <>
      {room.measured_at > 0 && <RoomView room={room} />}
      <section aria-labelledby="housekeeping-title">
        <h2 id="housekeeping-title">Housekeeping</h2>
        <p class="muted">
          {formatValue(size, 'B')} in tables, {limit > 0 ? `at most ${formatValue(limit, 'B')}` : 'no limit'}; new tables are kept as {mode}.
        </p>
        <Table caption="Tables of values" columns={TABLES} rows={tables} rowKey={(table) => table.name} sort="-bytes" />
        <h3>{dropped.length === 0 ? 'Nothing was dropped since the server started.' : `${plural(dropped.length, 'piece')} dropped since the server started`}</h3>
        {dropped.length > 0 && <Table caption="Dropped" columns={DROPPED} rows={dropped} rowKey={(one) => `${one.name} ${one.at}`} sort="-at" />}
      </section>
    </>
  );
}

/** How large the database is, how fast it grows and when its room is used up. */
function RoomView({ room }: { room: Room }) {
  const place = room.source === 'setting' ? 'storage.database_space' : 'its disk';
  const share = room.used_percent ?? 0;
  return (
    <section aria-labelledby="room-title">
      <h2 id="room-title">Room for the database</h2>
      <div class="numbers">
        <div>
          <h3>Database</h3>
          <b class="big">{formatValue(room.database_bytes, 'B')}</b>
          <span class="muted big-note">{room.wal_bytes === null ? 'its log may not be asked for: grant pg_monitor' : `and ${formatValue(room.wal_bytes, 'B')} of write-ahead log`}</span>
        </div>
        <div>
          <h3>Room used</h3>
          <b class="big">{room.used_percent === null ? '–' : `${digits(share, 3)} %`}</b>
          {room.used_percent !== null && (
            <>
              <span class="meter" role="img" aria-label={`The room for the database is ${digits(share, 3)} % used`}>
                <i style={{ width: `${Math.min(100, share)}%` }} />
              </span>
              <span class="muted big-note">
                {formatValue(room.free_bytes, 'B')} of {formatValue(room.total_bytes, 'B')} free ({place})
              </span>
            </>
          )}
        </div>
        <div>
          <h3>Grows a day</h3>
          <b class="big">{room.growth_per_day_bytes === null ? '–' : formatValue(room.growth_per_day_bytes, 'B')}</b>
          <span class="muted big-note">{room.wal_per_day_bytes === null ? 'known after an hour' : `${formatValue(room.wal_per_day_bytes, 'B')} a day to the write-ahead log`}</span>
        </div>
      </div>
      <p class={`outlook${share >= 85 ? ' problem-text' : ''}`}>{outlookOfRoom(room)}</p>
    </section>
  );
}

function outlookOfRoom(room: Room): string {
  const early =
    room.early_drop_percent > 0 ? ` Beyond ${room.early_drop_percent} % the oldest values go before their time (storage.early_drop).` : ' Nothing is dropped before its time: storage.early_drop is off.';
  if (room.used_percent === null) return 'The room is not known, because the database is on another machine or hides its folder: set storage.database_space.';
  if (room.growth_per_day_bytes === null) return `When it is used up can be told after an hour.${early}`;
  if (room.full_days === null) return `It does not grow.${early}`;
  if (room.full_days > 3650) return `At the growth of the last week the room lasts for more than ten years.${early}`;
  return `At the growth of the last week the room is used up in ${digits(room.full_days, 2)} days.${early}`;
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
  { id: 'took', title: 'Took', cell: (one) => formatDuration(one.took_ms / 1000), sort: (one) => one.took_ms, number: true, minor: true },
  { id: 'bytes', title: 'Freed', cell: (one) => (one.rows ? plural(one.rows, 'row') : formatValue(one.bytes, 'B')), sort: (one) => one.bytes, number: true },
];
