// The log of messages: whom what was sent, what waits, what went wrong.

import { useEffect, useState } from 'preact/hooks';
import { type Alert, getAlerts } from '../api/alerting.ts';
import { formatClock } from '../format/when.ts';
import { SeverityShape } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { mayEdit, me } from '../state/me.ts';
import { route, setParams } from '../state/route.ts';

const LOOK_MS = 5_000;
const STATES: [string, string][] = [
  ['', 'All'],
  ['waiting', 'Waiting'],
  ['sent', 'Sent'],
  ['failed', 'Failed'],
];

export function Messages() {
  const { params } = useCell(route);
  const state = params.get('state') ?? '';
  const [older, setOlder] = useState<Alert[]>([]);
  const [next, setNext] = useState<string | undefined>(undefined);
  const log = useLoad((signal) => getAlerts({ state, limit: 100 }, signal), [state]);
  useEffect(() => setOlder([]), [state]);
  useEffect(() => {
    if (older.length > 0) return; // What was paged to stays as it is.
    setNext(log.data?.next);
    const timer = setInterval(() => !document.hidden && log.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, [log.data, older.length]);
  const [failure, setFailure] = useState<Error | null>(null);
  const more = async (): Promise<void> => {
    setFailure(null);
    try {
      const page = await getAlerts({ state, limit: 100, cursor: next ?? '' });
      setOlder([...older, ...page.alerts]);
      setNext(page.next);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  const edits = mayEdit(useCell(me));
  const rows = [...(log.data?.alerts ?? []), ...older];
  return (
    <>
      <div class="filters">
        <span class="choice" role="group" aria-label="State">
          {STATES.map(([value, title]) => (
            <button key={value} type="button" aria-pressed={state === value} onClick={() => setParams({ state: value })}>
              {title}
            </button>
          ))}
        </span>
      </div>
      {log.error !== null && <Failure error={log.error} retry={log.reload} />}
      {log.data !== null && rows.length === 0 && (
        <Empty title={state === '' ? 'No message was sent yet.' : 'There is none.'}>
          <p class="muted">Messages are sent when an action fits a problem: it needs a media type, a receiver, and an action.</p>
          {edits && (
            <p class="row-links">
              <Link to="/alerting/media">Set up a media type and a receiver</Link>
              <Link to="/alerting/actions">Add an action</Link>
            </p>
          )}
        </Empty>
      )}
      {rows.length > 0 && <Table caption="Messages" columns={COLUMNS} rows={rows} rowKey={(alert) => alert.id} dimmed={log.loading && log.data === null} />}
      {failure !== null && <Failure error={failure} retry={() => void more()} />}
      {next !== undefined && failure === null && (
        <button type="button" class="more" onClick={() => void more()}>
          Older messages
        </button>
      )}
    </>
  );
}

const COLUMNS: Column<Alert>[] = [
  { id: 'at', title: 'Time', cell: (alert) => <span class="host-cell">{formatClock(alert.sent_at ?? alert.created_at)}</span> },
  {
    id: 'what',
    title: 'About',
    class: 'words wider',
    cell: (alert) => (
      <>
        <span class="severity" title={alert.severity}>
          <SeverityShape severity={alert.severity} />
        </span>{' '}
        {alert.kind === 'problem' ? '' : `${alert.kind}: `}
        {alert.name} <span class="muted">{alert.host}</span>
      </>
    ),
  },
  {
    id: 'to',
    title: 'To',
    class: 'words',
    cell: (alert) => (
      <>
        {alert.receiver} <span class="muted">{[alert.media, alert.to].filter(Boolean).join(', ')}</span>
      </>
    ),
  },
  { id: 'action', title: 'Action', class: 'words', minor: true, cell: (alert) => `${alert.action}${alert.step ? `, step ${alert.step}` : ''}` },
  {
    id: 'state',
    title: 'State',
    class: 'words',
    cell: (alert) => (
      <>
        <span class={alert.state === 'failed' ? 'problem-text' : ''}>{alert.state}</span>
        {alert.attempts > 1 && <span class="muted"> after {alert.attempts} attempts</span>}
        {alert.error !== undefined && alert.error !== '' && <div class="muted">{alert.error}</div>}
      </>
    ),
  },
];
