// Overview: what is wrong, the fleet, four numbers. Nothing else.

import { useEffect, useState } from 'preact/hooks';
import { getHosts, getHour, getProblems } from '../api/client.ts';
import { type Host, type Overview, type Problem, SEVERITIES } from '../api/types.ts';
import { natural } from '../format/natural.ts';
import { digits, formatValue, plural } from '../format/number.ts';
import { groupBy } from '../part/group.ts';
import { SeverityShape } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useLoad, useSecond } from '../part/load.ts';
import { Bars, Sparkline } from '../part/sparkline.tsx';
import { useCell } from '../state/cell.ts';
import { contact, live, missed, overview, problemsChanged, serverNow } from '../state/live.ts';
import { dateTime } from '../time/clock.ts';
import { RequestCard } from '../requests/card.tsx';
import { Guide } from './guide.tsx';
import { HostRows, MAX_ROWS } from './hostrows.tsx';
import { NoHosts, squareClass } from './hosts.tsx';
import { lasted } from './problems.tsx';
import { samples } from './samples.ts';

const REFRESH_MS = 5_000;

export function OverviewView() {
  const state = useCell(overview);
  const link = useCell(contact);
  const changed = useCell(problemsChanged);
  const lost = useCell(missed);
  const hosts = useLoad((signal) => getHosts({ limit: 10_000 }, signal), [lost, state?.hosts.total], changed);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && hosts.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const few = hosts.data !== null && hosts.data.hosts.length > 0 && hosts.data.hosts.length <= MAX_ROWS;
  useEffect(() => {
    if (!few) live.want({});
  }, [few]);

  if (state === null) {
    return link === 'lost' ? (
      <div class="page">
        <div class="failure" role="alert">
          <p>
            <b>The server cannot be reached.</b> <span class="muted">The page tries again by itself.</span>
          </p>
          <button type="button" onClick={() => live.retry()}>
            Try now
          </button>
        </div>
      </div>
    ) : (
      <div class="page loading" />
    );
  }
  return (
    <div class="page overview">
      <h1 class="unseen">Overview</h1>
      <Wrong state={state} />
      <section class="fleet" aria-labelledby="fleet-title">
        <h2 id="fleet-title">
          Fleet <span class="muted">{fleetText(state)}</span>
        </h2>
        {few ? <HostRows hosts={hosts.data!.hosts} /> : <Squares hosts={hosts.data?.hosts ?? []} />}
      </section>
      <Guide hosts={state.hosts.total}>{state.hosts.total === 0 && hosts.data !== null && <NoHosts />}</Guide>
      <RequestCard />
      <Numbers state={state} />
    </div>
  );
}

function fleetText({ hosts }: Overview): string {
  const parts = [plural(hosts.total, 'host')];
  if (hosts.problem > 0) parts.push(`${hosts.problem} with problems`);
  if (hosts.unknown > 0) parts.push(`${hosts.unknown} silent or not seen`);
  return parts.join(', ');
}

function Wrong({ state }: { state: Overview }) {
  useSecond();
  const unseen = state.oldest.filter((problem) => !problem.acknowledged);
  const total = SEVERITIES.reduce((sum, severity) => sum + (state.problems[severity] ?? 0), 0);
  return (
    <section class="wrong" aria-label="What is wrong">
      {total === 0 ? (
        <p class="all-well">
          <i class="square ok" /> Nothing is wrong.
        </p>
      ) : (
        <ul class="severity-counts">
          {SEVERITIES.filter((severity) => state.problems[severity] > 0).map((severity) => (
            <li key={severity}>
              <Link to="/problems" query={{ severity }}>
                <SeverityShape severity={severity} />
                <b>{state.problems[severity]}</b> {severity}
              </Link>
            </li>
          ))}
        </ul>
      )}
      {unseen.length > 0 && (
        <ol class="oldest" aria-label="Oldest problems that nobody has seen">
          {unseen.slice(0, 3).map((problem) => (
            <li key={problem.event_id}>
              <OldestLine problem={problem} />
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function OldestLine({ problem }: { problem: Problem }) {
  return (
    <Link to={`/hosts/${problem.host_id}/problems`} query={{ problem: problem.event_id }} class={`oldest-line severity-${problem.severity.replace(' ', '-')}`} title={`${problem.severity}, since ${dateTime(problem.at)}`}>
      <span class="unseen">{problem.severity}</span>
      <span class="oldest-host">{problem.host_name || problem.host}</span>
      <span class="oldest-name">{problem.name}</span>
      <span class="oldest-value">{problem.value_now}</span>
      <span class="oldest-age">{lasted(problem)}</span>
    </Link>
  );
}

function Squares({ hosts }: { hosts: Host[] }) {
  const groups = groupBy(hosts, (host) => host.groups[0] ?? 'No group');
  return (
    <div class="groups">
      {[...groups].sort(([a], [b]) => natural(a, b)).map(([name, members]) => (
        <div class="group" key={name}>
          <Link to="/hosts" query={{ group: name }} class="group-name">
            {name} <span class="muted">{members.length}</span>
          </Link>
          <div class="squares">
            {members.map((host) => (
              <Link key={host.id} to={`/hosts/${host.id}`} class={squareClass(host)} title={hostText(host)} label={hostText(host)}>
                {''}
              </Link>
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

function hostText(host: Host): string {
  if (host.worst !== '') return `${host.name}: ${plural(host.problems, 'problem')}, worst is ${host.worst}`;
  return `${host.name}: ${host.state === 'ok' ? 'ok' : host.state === 'silent' ? (host.seen_by === 'values' ? 'no new value' : 'agent is silent') : 'nothing came yet'}`;
}

const HOUR = 3_600_000;
const SLICES = 24;

function Numbers({ state }: { state: Overview }) {
  const history = useCell(samples);
  const changed = useCell(problemsChanged);
  const [minute, setMinute] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setMinute((n) => n + 1), 60_000);
    return () => clearInterval(timer);
  }, []);
  const recent = useLoad((signal) => getProblems({ from: Math.floor(serverNow() - HOUR), limit: 10_000 }, signal), [minute], changed);
  const hour = useLoad((signal) => getHour(signal), [minute]);
  // Before the server has noted two moments, the line begins with the page.
  const past = hour.data?.points ?? [];
  const rates = past.length < 2 ? history.map((sample) => sample.valuesPerSecond) : [...past.map((point) => point.values_per_second), state.values_per_second];
  const now = serverNow();
  const problems = recent.data?.problems ?? [];
  const opened = slices(problems.map((problem) => problem.at), now);
  const closed = slices(problems.flatMap((problem) => problem.recovered_at ?? []), now);
  const sum = (counts: number[]): number => counts.reduce((left, count) => left + count, 0);
  const fullness = state.store.quota_bytes > 0 ? state.store.used_bytes / state.store.quota_bytes : 0;
  const days = state.store.retention_days;
  return (
    <section class="numbers" aria-label="Numbers">
      <div>
        <h3>Values per second</h3>
        <b class="big" data-number="values-per-second">{digits(state.values_per_second, 4)}</b>
        <Sparkline values={rates} label={past.length < 2 ? 'Values per second since the page was opened' : 'Values per second in the last hour'} />
      </div>
      <div>
        <h3>Problems opened and closed, last hour</h3>
        <b class="big">
          {sum(opened)} <span class="muted">/</span> {sum(closed)}
        </b>
        <Bars values={opened} label="Problems opened in the last hour" />
      </div>
      <div>
        <h3>Store</h3>
        <b class="big">{digits(fullness * 100, 3)} %</b>
        <span class="muted big-note">
          {formatValue(state.store.used_bytes, 'B')} of {formatValue(state.store.quota_bytes, 'B')}
        </span>
        <span class="meter" role="img" aria-label={`Store is ${Math.round(fullness * 100)} % full`}>
          <i ref={(element) => void (element && (element.style.width = `${Math.min(100, fullness * 100)}%`))} />
        </span>
        {past.length > 1 && <Sparkline values={[...past.map((point) => point.used_bytes), state.store.used_bytes]} top={state.store.quota_bytes} label="Room that the store took in the last hour" />}
      </div>
      <div>
        <h3>History fits for</h3>
        <b class="big">{days === null ? '–' : `${digits(days, days < 10 ? 2 : 3)} ${days === 1 ? 'day' : 'days'}`}</b>
        <span class="muted big-note">{days === null ? 'known after some minutes of data' : "at today's rate"}</span>
        {past.filter((point) => point.retention_days !== null).length > 1 && <Sparkline values={[...past.map((point) => point.retention_days), days]} label="Days that the history fits for, in the last hour" />}
      </div>
    </section>
  );
}

function slices(times: number[], now: number): number[] {
  const counts = new Array<number>(SLICES).fill(0);
  for (const at of times) {
    const slice = SLICES - 1 - Math.floor((now - at) / (HOUR / SLICES));
    if (slice >= 0 && slice < SLICES) counts[slice]++;
  }
  return counts;
}
