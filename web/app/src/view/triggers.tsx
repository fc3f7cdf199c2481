// The triggers of one host and what they say now.

import { useState } from 'preact/hooks';
import { getTriggers } from '../api/client.ts';
import { SEVERITIES, type Trigger } from '../api/types.ts';
import { formatAge } from '../format/number.ts';
import { SeverityShape } from '../part/icon.tsx';
import { useLoad } from '../part/load.ts';
import { Command, Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { problemsChanged, serverNow } from '../state/live.ts';

const COLUMNS: Column<Trigger>[] = [
  {
    id: 'state',
    title: 'State',
    cell: (t) => <span class={`trigger-state ${t.state}`} title={t.error}>{t.enabled ? t.state : 'off'}</span>,
    sort: (t) => ['problem', 'unknown', 'ok'].indexOf(t.state),
  },
  {
    id: 'severity',
    title: 'Severity',
    cell: (t) => (
      <span class="severity">
        <SeverityShape severity={t.severity} /> {t.severity}
      </span>
    ),
    sort: (t) => SEVERITIES.indexOf(t.severity),
    minor: true,
  },
  { id: 'name', title: 'Trigger', cell: (t) => t.name, sort: (t) => t.name },
  { id: 'expression', title: 'Expression', cell: (t) => <code>{t.expression}</code>, minor: true, class: 'wide' },
  { id: 'changed', title: 'Changed', cell: (t) => (t.changed_at === null ? '–' : formatAge(serverNow() - t.changed_at)), sort: (t) => -(t.changed_at ?? 0), number: true },
];

export function HostTriggers({ host }: { host: string }) {
  const [search, setSearch] = useState('');
  const changed = useCell(problemsChanged);
  const triggers = useLoad((signal) => getTriggers({ host }, signal), [host], changed);
  if (triggers.data === null) return triggers.error === null ? null : <Failure error={triggers.error} retry={triggers.reload} />;
  const word = search.trim().toLowerCase();
  const rows = triggers.data.triggers.filter((t) => word === '' || `${t.name} ${t.expression}`.toLowerCase().includes(word));
  if (triggers.data.triggers.length === 0) {
    return (
      <Empty title="This host has no triggers.">
        <p>Triggers come with templates. Import one:</p>
        <Command text="tidemark import template.yaml" />
      </Empty>
    );
  }
  return (
    <>
      <div class="filters">
        <input type="search" value={search} placeholder="Search triggers" aria-label="Search triggers" onInput={(event) => setSearch(event.currentTarget.value)} />
      </div>
      <Table caption="Triggers" columns={COLUMNS} rows={rows} rowKey={(t) => t.id} sort="state" dimmed={triggers.loading} />
    </>
  );
}
