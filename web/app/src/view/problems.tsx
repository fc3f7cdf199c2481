// Problems: open ones or all of the time range, worst and oldest first, live.

import { useEffect, useState } from 'preact/hooks';
import { getProblems } from '../api/client.ts';
import { type Problem, SEVERITIES, type Severity } from '../api/types.ts';
import { formatAge, formatDuration, plural } from '../format/number.ts';
import { Check } from '../part/form.tsx';
import { SeverityShape } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useLater, useLoad, useSecond } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live, missed, problemsChanged, serverNow } from '../state/live.ts';
import { me } from '../state/me.ts';
import { route, setParams } from '../state/route.ts';
import { ProblemPart } from './problemdetail.tsx';
import { mayOperate, ProblemForm } from './problemform.tsx';
import { problemGroup } from './problemwishes.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { dateTime } from '../time/clock.ts';

const LIMIT = 1_000;
// The value of a problem changes without the list of problems changing.
const REFRESH_MS = 5_000;

export function ProblemsView() {
  useEffect(() => live.want({}), []);
  return (
    <div class="page">
      <h1>Problems</h1>
      <ProblemTable fixed={{}} />
    </div>
  );
}

/** ProblemTable is the list with its filters; fixed narrows it to a host. */
export function ProblemTable({ fixed }: { fixed: { host?: string } }) {
  const { params } = useCell(route);
  const all = params.get('show') === 'all';
  const severity = params.get('severity') ?? '';
  const open = params.get('problem') ?? '';
  const toggle = (p: Problem): void => setParams({ problem: open === p.event_id ? '' : p.event_id }, false);
  const group = params.get('group') ?? '';
  const hides = params.get('suppressed') === 'hide';
  const operates = mayOperate(useCell(me));
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [search, setSearch] = useState(params.get('search') ?? '');
  const later = useLater(search.trim());
  useEffect(() => setParams({ search: later }), [later]);
  const changed = useCell(problemsChanged);
  const lost = useCell(missed);
  const key = useCell(windowKey);
  const loaded = useLoad(
    (signal) => {
      const { from, to, live: follows } = windowNow();
      const range = all ? { from: Math.floor(from), to: follows ? undefined : Math.ceil(to) } : { open: true };
      return getProblems({ ...fixed, ...range, severity, search: later, limit: LIMIT }, signal);
    },
    [fixed.host, all, severity, later, lost, all ? key : ''],
    changed,
  );
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && loaded.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  useSecond();
  const listed = loaded.data?.problems ?? [];
  const shown = worstFirst(hides ? listed.filter((p) => p.suppression === undefined) : listed);
  const chosen = shown.filter((p) => picked.has(p.event_id));
  const columns = columnsOf(open, toggle, fixed.host !== undefined);
  if (operates) columns.unshift(pickColumn(shown, picked, setPicked));

  return (
    <>
      <div class="filters">
        <div class="choice" role="group" aria-label="Which problems">
          <button type="button" aria-pressed={!all} onClick={() => setParams({ show: '' })}>
            Open
          </button>
          <button type="button" aria-pressed={all} onClick={() => setParams({ show: 'all' })}>
            All in the range
          </button>
        </div>
        <select aria-label="Severity" value={severity} onChange={(event) => setParams({ severity: event.currentTarget.value })}>
          <option value="">any severity</option>
          {SEVERITIES.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <input type="search" value={search} placeholder="Search problems" aria-label="Search problems" onInput={(event) => setSearch(event.currentTarget.value)} />
        <GroupChoice group={group} problems={listed} host={fixed.host === undefined} />
        <Check label="Hide suppressed" value={hides} set={(hide) => setParams({ suppressed: hide ? 'hide' : '' })} />
        <span class="muted filters-end" aria-live="polite">
          {loaded.data === null ? '' : plural(loaded.data.total, 'problem')}
        </span>
      </div>
      {loaded.error !== null && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data !== null && shown.length === 0 && loaded.error === null && <NoProblems all={all} narrowed={severity !== '' || later !== '' || listed.length > 0} />}
      {chosen.length > 0 && (
        <section class="chosen" aria-label="Chosen problems">
          <h2>{plural(chosen.length, 'problem')} chosen</h2>
          <ProblemForm
            key={chosen.length === 1 ? 'one' : 'many'}
            problems={chosen}
            done={() => {
              setPicked(new Set());
              loaded.reload();
            }}
          />
        </section>
      )}
      {shown.length > 0 && (
        <Table
          caption="Problems"
          columns={fixed.host === undefined ? columns : columns.filter((column) => column.id !== 'host')}
          rows={shown}
          groupOf={problemGroup(group)}
          rowKey={(problem) => problem.event_id}
          rowClick={toggle}
          detail={(problem) => (problem.event_id === open ? <ProblemPart id={open} seen={loaded.reload} /> : null)}
          dimmed={loaded.error !== null}
        />
      )}
    </>
  );
}

function GroupChoice({ group, problems, host }: { group: string; problems: Problem[]; host: boolean }) {
  const tags = new Set(problems.flatMap((p) => p.tags.map((tag) => tag.tag)));
  if (group.startsWith('tag:')) tags.add(group.slice('tag:'.length));
  return (
    <select aria-label="Group by" value={group} onChange={(event) => setParams({ group: event.currentTarget.value })}>
      <option value="">not grouped</option>
      {host && <option value="host">by host</option>}
      <option value="trigger">by trigger</option>
      {[...tags].sort().map((tag) => (
        <option key={tag} value={`tag:${tag}`}>
          by tag {tag}
        </option>
      ))}
    </select>
  );
}

/** pickColumn is the boxes that choose problems to do something to. */
function pickColumn(shown: Problem[], picked: ReadonlySet<string>, set: (ids: ReadonlySet<string>) => void): Column<Problem> {
  const every = shown.length > 0 && shown.every((p) => picked.has(p.event_id));
  const toggle = (id: string): void => {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    set(next);
  };
  return {
    id: 'pick',
    title: 'Choose',
    head: <input type="checkbox" aria-label="Choose all problems" checked={every} onChange={() => set(every ? new Set() : new Set(shown.map((p) => p.event_id)))} />,
    cell: (p) => <input type="checkbox" aria-label={`Choose ${p.name}`} checked={picked.has(p.event_id)} onChange={() => toggle(p.event_id)} />,
    class: 'pick-cell',
  };
}

/** suppressedText tells until when messages of a problem are held back. */
export function suppressedText(p: Problem): string {
  if (p.suppression === undefined) return '';
  const { until, maintenance = '' } = p.suppression;
  return `suppressed ${until === null ? 'until somebody ends it' : `until ${dateTime(until)}`}${maintenance === '' ? '' : ` by ${maintenance}`}`;
}

function NoProblems({ all, narrowed }: { all: boolean; narrowed: boolean }) {
  if (narrowed) return <Empty title="No problem matches these filters." />;
  return (
    <Empty title={all ? 'Nothing was wrong in this range.' : 'Nothing is wrong.'}>
      <p class="muted">{all ? 'Choose a longer range above to look further back.' : 'A problem appears here within a second of the value that made it.'}</p>
    </Empty>
  );
}

/** worstFirst sorts open before recovered, then by severity, then the oldest first. */
export function worstFirst(problems: Problem[]): Problem[] {
  const rank = (p: Problem): number => (p.recovered_at === null ? 0 : 10) + SEVERITIES.indexOf(p.severity);
  return [...problems].sort((a, b) => rank(a) - rank(b) || (a.recovered_at === null ? a.at - b.at : b.at - a.at));
}

/** lasted is how long a problem has been open, or was. */
export function lasted(problem: Problem): string {
  return problem.recovered_at === null ? formatAge(serverNow() - problem.at) : formatDuration((problem.recovered_at - problem.at) / 1000);
}

export function SeverityWord({ severity }: { severity: Severity }) {
  return (
    <span class="severity">
      <SeverityShape severity={severity} /> <span class="severity-word">{severity}</span>
    </span>
  );
}

// On a narrow screen host and value stand below the name, so that it has the width.
const columnsOf = (open: string, toggle: (p: Problem) => void, fixedHost: boolean): Column<Problem>[] => [
  { id: 'severity', title: 'Severity', cell: (p) => <SeverityWord severity={p.severity} />, sort: (p) => SEVERITIES.indexOf(p.severity), class: 'severity-cell' },
  {
    id: 'host',
    title: 'Host',
    cell: (p) => <Link to={`/hosts/${p.host_id}`}>{p.host_name || p.host}</Link>,
    sort: (p) => p.host_name || p.host,
    class: 'host-cell not-narrow',
  },
  {
    id: 'name',
    title: 'Problem',
    cell: (p) => (
      <>
        <button type="button" class="row-button beside" aria-expanded={p.event_id === open} onClick={() => toggle(p)}>
          <span class="problem-name">{p.name}</span>
        </button>
        <span class="only-narrow muted">
          {fixedHost ? '' : <Link to={`/hosts/${p.host_id}`}>{p.host_name || p.host}</Link>}
          {!fixedHost && p.value_now !== '' && ' · '}
          {p.value_now}
        </span>
        {p.acknowledged && <span class="muted"> seen</span>}
        {p.suppression !== undefined && <span class="muted"> {suppressedText(p)}</span>}
        {p.opdata !== '' && <span class="muted problem-opdata">{p.opdata}</span>}
        {p.links?.map((link) => (
          <a key={link.url} class="problem-link" href={link.url} target="_blank" rel="noopener noreferrer">
            {link.name}
          </a>
        ))}
      </>
    ),
    sort: (p) => p.name,
    class: 'wide',
  },
  { id: 'value', title: 'Value now', cell: (p) => p.value_now || '–', number: true, class: 'not-narrow' },
  { id: 'since', title: 'Since', cell: (p) => dateTime(p.at), sort: (p) => p.at, number: true, minor: true },
  {
    id: 'lasted',
    title: 'For',
    cell: (p) => (p.recovered_at === null ? lasted(p) : <span class="recovered">recovered after {lasted(p)}</span>),
    sort: (p) => (p.recovered_at ?? serverNow()) - p.at,
    number: true,
  },
];
