// All dashboards, new ones, and those from a file.

import { useEffect, useRef, useState } from 'preact/hooks';
import { getHosts } from '../api/client.ts';
import { applyFile, type DashboardHead, getDashboards, planFile, type PlanStep } from '../api/dashboards.ts';
import { seenWords } from '../dashboard/settings.tsx';
import { said } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live } from '../state/live.ts';
import { mayEdit, mayEditSome, me } from '../state/me.ts';
import { go, href } from '../state/route.ts';
import { dateTime } from '../time/clock.ts';

export function DashboardsView() {
  const who = useCell(me);
  const loaded = useLoad((signal) => getDashboards(signal), []);
  useEffect(() => live.want({}), []);
  const changes = mayEdit(who);
  if (loaded.data === null) return loaded.error === null ? <div class="page loading" /> : <Failure error={loaded.error} retry={loaded.reload} />;
  const { dashboards } = loaded.data;
  return (
    <div class="page">
      <h1>Dashboards</h1>
      <New />
      {dashboards.length === 0 ? (
        <Empty title="There are no dashboards yet.">
          <p>Make one of a host with one click, or begin with an empty one.{!mayEditSome(who) && ' Yours are seen by you and by administrators.'}</p>
        </Empty>
      ) : (
        <Table caption="Dashboards" columns={COLUMNS} rows={dashboards} rowKey={(one) => one.id} rowLink={(one) => `/dashboards/${one.id}`} sort="name" param="sort" />
      )}
      {changes && <FromFile changed={loaded.reload} />}
    </div>
  );
}

const COLUMNS: Column<DashboardHead>[] = [
  { id: 'name', title: 'Dashboard', cell: (one) => <Link to={`/dashboards/${one.id}`}>{one.name}</Link>, sort: (one) => one.name, class: 'wide' },
  { id: 'version', title: 'Version', cell: (one) => one.version, sort: (one) => one.version, number: true, minor: true },
  { id: 'saved', title: 'Saved', cell: (one) => dateTime(one.saved_at), sort: (one) => one.saved_at, number: true },
  { id: 'by', title: 'By', cell: (one) => one.saved_by, sort: (one) => one.saved_by, class: 'anywhere', minor: true },
  { id: 'owner', title: 'Owner', cell: (one) => one.owner, sort: (one) => one.owner, class: 'anywhere', minor: true },
  { id: 'everyone', title: 'Seen by', cell: seenWords, minor: true },
];

function New() {
  const hosts = useLoad((signal) => getHosts({ limit: 10_000 }, signal), []);
  const [host, setHost] = useState('');
  const list = hosts.data?.hosts ?? [];
  return (
    <div class="filters">
      <button type="button" onClick={() => go(href('/dashboards/new'))}>
        New dashboard
      </button>
      {list.length > 0 && (
        <>
          <select aria-label="Host for a dashboard" value={host} onChange={(event) => setHost(event.currentTarget.value)}>
            <option value="">of a host …</option>
            {list.map((one) => (
              <option key={one.id} value={one.id}>
                {one.name}
              </option>
            ))}
          </select>
          <button type="button" disabled={host === ''} onClick={() => go(href('/dashboards/new', { 'from-host': host }))}>
            Make it
          </button>
        </>
      )}
    </div>
  );
}

const WHAT: Record<PlanStep['what'], string> = { create: 'new', change: 'changes', unchanged: 'stays as it is', delete: 'is deleted' };

// A file is read, what it would change is shown, and only then it is applied.
function FromFile({ changed }: { changed: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [steps, setSteps] = useState<PlanStep[] | null>(null);
  const [failure, setFailure] = useState('');
  const [done, setDone] = useState('');
  const read = async (file: File | undefined): Promise<void> => {
    setSteps(null);
    setFailure('');
    setDone('');
    if (file === undefined) return;
    try {
      const content = await file.text();
      setText(content);
      setSteps((await planFile(content)).steps);
    } catch (error) {
      setFailure(said(error));
    }
  };
  const apply = async (): Promise<void> => {
    try {
      await applyFile(text);
      setSteps(null);
      setDone('The file is in force.');
      input.current!.value = '';
      changed();
    } catch (error) {
      setFailure(said(error));
    }
  };
  return (
    <section class="from-file" aria-labelledby="from-file-title">
      <h2 id="from-file-title">As a file</h2>
      <p class="muted">
        <a class="markdown-link" href="/api/dashboard-file" download="dashboards.yaml">
          Export all as YAML
        </a>
        , or take a file over. The same with <code>tidemark dashboard export</code>, <code>plan</code> and <code>apply</code>.
      </p>
      <input type="file" ref={input} accept=".yaml,.yml,.json" aria-label="File with dashboards" onChange={(event) => void read(event.currentTarget.files?.[0])} />
      {failure !== '' && (
        <p class="problem-text" role="alert">
          {failure}
        </p>
      )}
      {done !== '' && <p role="status">{done}</p>}
      {steps !== null && (
        <>
          <ul class="steps">
            {steps.map((step) => (
              <li key={step.name}>
                <b>{step.name}</b> {WHAT[step.what]}
                {(step.differences ?? []).length > 0 && <pre class="differences">{step.differences!.join('\n')}</pre>}
              </li>
            ))}
            {steps.length === 0 && <li>The file has no dashboards.</li>}
          </ul>
          <button type="button" disabled={steps.every((step) => step.what === 'unchanged')} onClick={() => void apply()}>
            Apply the file
          </button>
        </>
      )}
    </section>
  );
}
