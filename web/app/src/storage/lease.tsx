// Servers on one database: which of them works, since when, and which wait.

import { useEffect, useState } from 'preact/hooks';
import { getLease, handOver, type Lease } from '../api/storage.ts';
import { formatAge } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { serverNow } from '../state/live.ts';

const LOOK_MS = 2_000;

export function Servers({ changes }: { changes: boolean }) {
  const state = useLoad((signal) => getLease(signal), []);
  const [said, setSaid] = useState('');
  const [failure, setFailure] = useState('');
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && state.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const run = async (): Promise<void> => {
    await handOver();
    setSaid('This server stores what it has and gives its work to the one that waits. The page there goes on in a moment.');
  };
  if (state.data !== null && !state.data.shared) return null;
  return (
    <section aria-labelledby="servers-title">
      <h2 id="servers-title">Servers on this database</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {state.data !== null && <Part lease={state.data} />}
      {said !== '' && <p role="status">{said}</p>}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {changes && state.data !== null && state.data.waiting.length > 0 && (
        <div>
          <Sure label="Hand the work over" again="Stop here and let the other server work?" run={run} failed={setFailure} />
        </div>
      )}
    </section>
  );
}

interface Row {
  name: string;
  address: string;
  role: string;
  since: number;
}

const ms = (ns: string): number => Number(ns) / 1e6;

function Part({ lease }: { lease: Lease }) {
  const rows: Row[] = [
    { name: lease.holder, address: lease.address, role: lease.role === 'working' ? 'works (this server)' : 'works', since: ms(lease.since) },
    ...lease.waiting.map((one) => ({ name: one.holder, address: one.address, role: 'waits', since: ms(one.since) })),
  ];
  return (
    <>
      {lease.problem !== undefined && <p class="problem-text">{lease.problem}</p>}
      {lease.waiting.length === 0 && <p class="problem-text">No other server waits: if this one fails, nobody takes over. Start the second server, or look at its log.</p>}
      <p class="muted">
        One server works, the others wait and take over when its lease is not renewed. Epoch {lease.epoch}, {Math.round(lease.left_seconds)} s left until the next renewal is due at the latest.
      </p>
      <Table caption="Servers" columns={COLUMNS} rows={rows} rowKey={(row) => `${row.name} ${row.address}`} />
    </>
  );
}

const COLUMNS: Column<Row>[] = [
  { id: 'name', title: 'Server', class: 'anywhere', cell: (row) => row.name },
  { id: 'role', title: 'Role', cell: (row) => row.role },
  { id: 'since', title: 'Since', cell: (row) => (row.since === 0 ? '–' : `${formatClock(row.since)} (${formatAge(serverNow() - row.since)})`) },
  { id: 'address', title: 'Page', class: 'anywhere', cell: (row) => (/^https?:/.test(row.address) ? <a href={row.address}>{row.address}</a> : row.address || '–'), minor: true },
];
