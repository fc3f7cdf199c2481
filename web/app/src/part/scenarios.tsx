// The web scenarios of a host: how the last run went, step by step.

import { useEffect } from 'preact/hooks';
import { getItems } from '../api/client.ts';
import { getScenarios, type Scenario } from '../api/network.ts';
import { formatAgo, formatValue, plural } from '../format/number.ts';
import { serverNow } from '../state/live.ts';
import { Link } from './link.tsx';
import { useLoad } from './load.ts';
import { Empty, Failure } from './notice.tsx';
import { type Known, outcome, stepThatFailed } from './outcome.ts';
import { type Column, Table } from './table.tsx';

const MAX_ITEMS = 10_000;
const AGAIN_MS = 10_000;

type Step = Scenario['steps'][number];

export function Scenarios({ host, edit }: { host: string; edit?: string }) {
  const loaded = useLoad(async (signal) => {
    const [{ scenarios }, { items }] = await Promise.all([getScenarios(host, signal), getItems({ host, search: 'web.test', limit: MAX_ITEMS }, signal)]);
    return { scenarios, known: new Map(items.map((item) => [item.id, item])) };
  }, [host]);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && loaded.reload(), AGAIN_MS);
    return () => clearInterval(timer);
  }, [loaded.reload]);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return null;
  const { scenarios, known } = loaded.data;
  const how = edit !== undefined && (
    <p class="muted">
      Scenarios are changed <Link to={edit}>as text</Link>, under httptests; those of a template there.
    </p>
  );
  if (scenarios.length === 0) {
    return (
      <Empty title="This host has no web scenarios.">
        <p class="muted">A web scenario makes requests one after another, as a person would open pages, and says which step failed.</p>
        {how}
      </Empty>
    );
  }
  return (
    <>
      {how}
      {scenarios.map((one) => (
        <ScenarioSection key={one.name} scenario={one} known={known} />
      ))}
    </>
  );
}

function ScenarioSection({ scenario, known }: { scenario: Scenario; known: Known }) {
  const ended = outcome(scenario, known);
  const last = known.get(scenario.items.fail ?? '')?.last ?? null;
  const failedAt = last === null ? 0 : stepThatFailed(last);
  const rows = scenario.steps.map((step, n) => ({ step, n: n + 1 }));
  const figure = (id: string | undefined, units: string) => {
    const item = known.get(id ?? '');
    if (item === undefined || item.last === null) return '–';
    return <Link to={`/items/${item.id}`}>{units === '' ? item.last.value.v : formatValue(Number(item.last.value.v), units)}</Link>;
  };
  const behind = (n: number): boolean => failedAt > 0 && n > failedAt;
  const cell = (name: string, units: string) => ({ step, n }: { step: Step; n: number }) => (behind(n) ? '–' : figure(step.items[name], units));
  const columns: Column<{ step: Step; n: number }>[] = [
    { id: 'n', title: 'Step', cell: ({ n }) => n, sort: ({ n }) => n, number: true },
    { id: 'name', title: 'Name', class: 'anywhere', cell: ({ step }) => step.name },
    { id: 'result', title: 'Last result', cell: ({ n }) => (ended.at === undefined ? '–' : n === failedAt ? <span class="problem-text">failed</span> : behind(n) ? <span class="muted">not reached</span> : 'as expected') },
    { id: 'status', title: 'Status', cell: cell('rspcode', ''), number: true },
    { id: 'time', title: 'Time', cell: cell('time', 's'), number: true },
    { id: 'speed', title: 'Speed', cell: cell('in', 'Bps'), number: true, minor: true },
    { id: 'timeout', title: 'Timeout', cell: ({ step }) => formatValue(step.timeout_seconds, 's'), number: true, minor: true },
  ];
  return (
    <section aria-label={`Web scenario ${scenario.name}`}>
      <h2>{scenario.name}</h2>
      <p>
        <span class={ended.failed ? 'problem-text' : undefined}>{ended.words}</span>
        {ended.at !== undefined && <span class="muted">, {formatAgo(serverNow() - ended.at)}</span>}
        <span class="muted">
          {' '}
          · every {scenario.delay} · {plural(scenario.attempts, 'attempt')}
          {!scenario.enabled && ended.at !== undefined && ' · off'}
        </span>
      </p>
      <Table caption={`Steps of ${scenario.name}`} columns={columns} rows={rows} rowKey={({ n }) => String(n)} sort="n" />
    </section>
  );
}
