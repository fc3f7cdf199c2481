// How busy the checks of each kind are, and which items are late.

import { useEffect } from 'preact/hooks';
import { getQueue, type Queue, type QueueKind } from '../api/queue.ts';
import { formatAge, formatShare, plural } from '../format/number.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { serverNow } from '../state/live.ts';

const LOOK_MS = 5_000;
const SHOWN = 10;

export function QueueView() {
  const queue = useLoad((signal) => getQueue(signal), []);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && queue.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  if (queue.error !== null) return <Failure error={queue.error} retry={queue.reload} />;
  if (queue.data === null) return null;
  const { late, items, kinds } = queue.data;
  return (
    <section class="queue" aria-labelledby="queue-title">
      <h2 id="queue-title">Checks and queue</h2>
      <p class={late > 0 ? 'problem-text' : ''}>{late === 0 ? 'No item is late.' : `${plural(late, 'item is', 'items are')} late by more than 6 s.`}</p>
      {kinds.length > 0 && <Table caption="Checks by kind" columns={KINDS} rows={kinds} rowKey={(kind) => kind.kind} sort="-busy" />}
      {late > 0 && items.length > 0 && <Table caption="Late items" columns={LATE} rows={items.slice(0, SHOWN)} rowKey={(item) => item.id} />}
    </section>
  );
}

const KINDS: Column<QueueKind>[] = [
  { id: 'kind', title: 'Checks', cell: (one) => one.kind, sort: (one) => one.kind },
  { id: 'busy', title: 'Busy', cell: (one) => <span class={one.busy_percent >= 75 ? 'problem-text' : ''}>{formatShare(one.busy_percent)}</span>, sort: (one) => one.busy_percent, number: true },
  { id: 'flight', title: 'Under way', cell: (one) => `${one.in_flight} of ${one.limit}`, sort: (one) => one.in_flight, number: true },
  { id: 'waiting', title: 'Waiting', cell: (one) => one.waiting.toLocaleString('en-US'), sort: (one) => one.waiting, number: true },
];

const LATE: Column<Queue['items'][number]>[] = [
  { id: 'host', title: 'Host', class: 'anywhere', cell: (item) => item.host },
  { id: 'key', title: 'Late item', class: 'anywhere', cell: (item) => <Link to={`/items/${item.id}`}>{item.key}</Link> },
  { id: 'late', title: 'Late by', cell: (item) => formatAge(serverNow() - item.due_at), number: true },
];
