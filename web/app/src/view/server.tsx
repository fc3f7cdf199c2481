// Server: how Tidemark itself is doing.

import { useEffect, useRef, useState } from 'preact/hooks';
import { getMetrics } from '../api/client.ts';
import type { Overview } from '../api/types.ts';
import { type Figure, figuresOf, packageOf } from '../format/exposition.ts';
import { digits, formatAge, formatDuration, formatValue } from '../format/number.ts';
import { groupBy } from '../part/group.ts';
import { Failure } from '../part/notice.tsx';
import { useLoad, useSecond } from '../part/load.ts';
import { Sparkline } from '../part/sparkline.tsx';
import { useCell } from '../state/cell.ts';
import { live, overview, serverNow } from '../state/live.ts';
import { natural } from '../format/natural.ts';
import { dateTime } from '../time/clock.ts';
import { QueueView } from './queue.tsx';
import { samples } from './samples.ts';

const READ_MS = 5_000;
const KEEP = 120;

export function ServerView() {
  const state = useCell(overview);
  useEffect(() => live.want({}), []);
  return (
    <div class="page">
      <h1>Server</h1>
      {state !== null && <Vital state={state} />}
      <QueueView />
      <OwnFigures />
    </div>
  );
}

function Vital({ state }: { state: Overview }) {
  const history = useCell(samples);
  useSecond();
  return (
    <section class="numbers" aria-label="The server now">
      <div>
        <h3>Values per second</h3>
        <b class="big">{digits(state.values_per_second, 4)}</b>
        <Sparkline values={history.map((sample) => sample.valuesPerSecond)} label="Values per second since the page was opened" />
      </div>
      <div>
        <h3>History cache used</h3>
        <b class="big">{digits(state.history_cache_used * 100, 3)} %</b>
        <Sparkline values={history.map((sample) => sample.historyCacheUsed)} top={1} label="Share of the history cache in use since the page was opened" />
      </div>
      <div>
        <h3>Store</h3>
        <b class="big">{formatValue(state.store.used_bytes, 'B')}</b>
        <span class="muted big-note">
          of {formatValue(state.store.quota_bytes, 'B')}
          {state.store.from !== null && state.store.from > 0 && `, oldest value ${formatAge(serverNow() - state.store.from)} ago`}
        </span>
      </div>
      <div>
        <h3>Running for</h3>
        <b class="big">{formatDuration((serverNow() - state.started_at) / 1000)}</b>
        <span class="muted big-note">
          version {state.version || 'unknown'}, since {dateTime(state.started_at)}
        </span>
      </div>
    </section>
  );
}

interface Reading {
  at: number;
  figures: Figure[];
}

// OwnFigures reads /metrics every few seconds; counters are shown as what they did per second.
function OwnFigures() {
  const loaded = useLoad(async (signal): Promise<Reading> => ({ at: Date.now(), figures: figuresOf(await getMetrics(signal)) }), []);
  const [readings, setReadings] = useState<Reading[]>([]);
  const [search, setSearch] = useState('');
  const [resting, setResting] = useState(false);
  const last = useRef<Reading | null>(null);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && loaded.reload(), READ_MS);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (loaded.data === null || loaded.data === last.current) return;
    last.current = loaded.data;
    setReadings((old) => [...old, loaded.data!].slice(-KEEP));
  }, [loaded.data]);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (readings.length === 0) return null;
  const word = search.trim().toLowerCase();
  const { figures } = readings[readings.length - 1];
  const atRest = figures.filter((figure) => figure.value === 0).length;
  const groups = groupBy(
    figures.filter((figure) => (resting || figure.value !== 0) && figure.id.toLowerCase().includes(word)),
    (figure) => packageOf(figure.name),
  );
  return (
    <section class="own">
      <h2>Own figures</h2>
      <div class="filters">
        <input type="search" value={search} placeholder="Search figures" aria-label="Search figures" onInput={(event) => setSearch(event.currentTarget.value)} />
        {(atRest > 0 || resting) && <label class="check">
          <input type="checkbox" checked={resting} onChange={(event) => setResting(event.currentTarget.checked)} />
          also the {atRest} that are zero
        </label>}
      </div>
      {[...groups].sort(([a], [b]) => groupRank(a) - groupRank(b) || natural(a, b)).map(([name, figures]) => (
        <FigureTable key={name} name={name} figures={figures} readings={readings} />
      ))}
    </section>
  );
}

function groupRank(name: string): number {
  return ['api', 'process', 'go'].indexOf(name) + 1;
}

function FigureTable({ name, figures, readings }: { name: string; figures: Figure[]; readings: Reading[] }) {
  return (
    <table class="list figures">
      <caption>{name}</caption>
      <thead class="unseen">
        <tr>
          <th scope="col">Figure</th>
          <th scope="col">Trend</th>
          <th scope="col">Now</th>
        </tr>
      </thead>
      <tbody>
        {figures.map((figure) => {
          const column = readings.map((reading) => reading.figures.find((other) => other.id === figure.id)?.value ?? null);
          const shown = figure.counter ? rates(column, readings) : column;
          const units = /_bytes(_total)?$/.test(figure.name) ? 'B' : /_seconds(_total)?$/.test(figure.name) ? 's' : '';
          const now = shown[shown.length - 1] ?? null;
          return (
            <tr key={figure.id}>
              <td class="wide">
                <code title={figure.id}>{figure.id.replace(`tidemark_${name}_`, '')}</code>
              </td>
              <td class="trend minor">
                <Sparkline values={shown} label={`${figure.id} since the page was opened`} width={90} height={18} />
              </td>
              <td class="number" title={String(figure.value)}>
                {figure.counter ? formatValue(now, units === 's' ? 's/s' : `${units}/s`) : formatValue(now, units, 4)}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function rates(column: (number | null)[], readings: Reading[]): (number | null)[] {
  return column.map((value, i) => {
    const before = i === 0 ? null : column[i - 1];
    if (value === null || before === null || value < before) return null;
    return (value - before) / ((readings[i].at - readings[i - 1].at) / 1000);
  });
}
