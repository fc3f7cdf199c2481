// The audit log: who changed what, with what was before and after.

import { useEffect, useState } from 'preact/hooks';
import { type AuditEntry, getAudit } from '../api/people.ts';
import { formatClock } from '../format/when.ts';
import { useLater, useLoad } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';

export function AuditView() {
  const { params } = useCell(route);
  const [search, setSearch] = useState(params.get('search') ?? '');
  const later = useLater(search.trim());
  useEffect(() => setParams({ search: later }), [later]);
  const [more, setMore] = useState<AuditEntry[]>([]);
  const [next, setNext] = useState<string | undefined>(undefined);
  const log = useLoad((signal) => getAudit({ search: later, limit: 100 }, signal), [later]);
  useEffect(() => {
    setMore([]);
    setNext(log.data?.next);
  }, [log.data]);
  const [failure, setFailure] = useState<Error | null>(null);
  const older = async (): Promise<void> => {
    setFailure(null);
    try {
      const page = await getAudit({ search: later, limit: 100, cursor: next ?? '' });
      setMore([...more, ...page.entries]);
      setNext(page.next);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  const rows = [...(log.data?.entries ?? []), ...more];
  return (
    <div class="page">
      <h1>Audit</h1>
      <div class="filters">
        <input type="search" value={search} placeholder="Search actions and objects" aria-label="Search actions and objects" onInput={(event) => setSearch(event.currentTarget.value)} />
      </div>
      {log.error !== null && <Failure error={log.error} retry={log.reload} />}
      {log.data !== null && rows.length === 0 && (
        <Empty title={later === '' ? 'Nothing has been changed yet.' : 'No entry matches.'}>
          <p class="muted">Every change stands here for a year, with who made it and what was before and after.</p>
        </Empty>
      )}
      {rows.length > 0 && <Table caption="Audit log" columns={COLUMNS} rows={rows} rowKey={(entry) => entry.id} />}
      {failure !== null && <Failure error={failure} retry={() => void older()} />}
      {next !== undefined && failure === null && (
        <button type="button" class="more" onClick={() => void older()}>
          Older entries
        </button>
      )}
    </div>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  { id: 'at', title: 'Time', cell: (entry) => <span class="host-cell">{formatClock(entry.at)}</span> },
  {
    id: 'actor',
    title: 'Who',
    class: 'anywhere',
    cell: (entry) => (
      <>
        {entry.actor} <span class="muted audit-via">{[entry.via, entry.address].filter((part) => part !== '' && part !== entry.actor).join(', ')}</span>
      </>
    ),
  },
  {
    id: 'object',
    title: 'What',
    class: 'wide',
    cell: (entry) => (
      <>
        {entry.object !== '' && <span>{entry.object} </span>}
        <span class="muted">{entry.action}</span>
        {(entry.before !== null || entry.after !== null) && (
          <details>
            <summary>What became different</summary>
            {entry.before !== null && <Side title="before" value={entry.before} />}
            {entry.after !== null && <Side title="after" value={entry.after} />}
          </details>
        )}
      </>
    ),
  },
];

function Side({ title, value }: { title: string; value: unknown }) {
  return (
    <>
      <p class="muted">{title}</p>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </>
  );
}
