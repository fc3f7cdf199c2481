// Explore: a PromQL expression, its chart over the range, its values now.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { getMetric, type PromAnswer, type PromSeries, queryRange } from '../api/client.ts';
import { lastOf, nameOf, PromChart, seriesOf, shortNames } from '../chart/answer.tsx';
import { explained } from '../explore/explain.ts';
import { csvOf, jsonOf, save } from '../explore/export.ts';
import { QueryInput } from '../explore/input.tsx';
import { metricsOf, unitsOf } from '../explore/units.ts';
import { digits, formatValue, plural } from '../format/number.ts';
import { parseNumber } from '../item/reading.ts';
import { useLoad } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live, missed } from '../state/live.ts';
import { route, setParams } from '../state/route.ts';
import { type TimeWindow, windowKey, windowNow } from '../state/window.ts';
import { dateTime, spanText } from '../time/clock.ts';

const EXAMPLES = ['system_cpu_load', 'rate(net_if_in[1m]) * 8', 'max by (host) (system_cpu_util)', 'topk(5, avg_over_time(system_cpu_util[5m]))'];
const POINTS = 500;
const REFRESH_MS = 5_000;
const MAX_LINES = 100;
// More series than this no browser holds with pleasure; the server would send them.
const MAX_SERIES = 2_000;
const MAX_METRICS = 8;

export function ExploreView() {
  const { params } = useCell(route);
  const query = params.get('q') ?? '';
  const [text, setText] = useState(query);
  useEffect(() => setText(query), [query]);
  useEffect(() => live.want({}), []);
  const ask = (expression: string): void => setParams({ q: expression.trim() }, false);
  const run = (event: Event): void => {
    event.preventDefault();
    ask(text);
  };
  return (
    <div class="page">
      <h1>Explore</h1>
      <form class="query" onSubmit={run}>
        <label class="unseen" for="promql">
          PromQL expression
        </label>
        <QueryInput value={text} set={setText} run={ask} />
        <button type="submit">Run</button>
      </form>
      {query === '' ? (
        <Empty title="Ask for anything that is stored.">
          <p>An item is a metric named by its key without parameters, for example:</p>
          <ul class="examples">
            {EXAMPLES.map((example) => (
              <li key={example}>
                <button type="button" class="quiet" onClick={() => setParams({ q: example }, false)}>
                  <code>{example}</code>
                </button>
              </li>
            ))}
          </ul>
        </Empty>
      ) : (
        <>
          <Explanation query={query} />
          <Answer query={query} />
        </>
      )}
    </div>
  );
}

function Explanation({ query }: { query: string }) {
  const lines = useMemo(() => explained(query), [query]);
  if (lines.length === 0) return null;
  return (
    <details class="explanation">
      <summary>What this means</summary>
      <dl>
        {lines.map((line, n) => (
          <div key={n}>
            <dt>
              <code>{line.code}</code>
            </dt>
            <dd>{line.text}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

interface Result {
  query: string;
  answer: PromAnswer;
  window: TimeWindow;
  step: number;
  took: number;
}

function Answer({ query }: { query: string }) {
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const loaded = useLoad<Result>(
    async (signal) => {
      const window = windowNow();
      const step = Math.max(1_000, Math.ceil((window.to - window.from) / POINTS / 1_000) * 1_000);
      const begun = performance.now();
      const answer = await queryRange(query, window.from, window.to, step, signal, MAX_SERIES);
      return { query, answer, window, step, took: performance.now() - begun };
    },
    [query, key, lost],
  );
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && windowNow().live && loaded.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [query]);
  const units = useUnits(loaded.data?.query ?? '');
  const columns = useMemo(() => columnsOf(units), [units]);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return <div class="loading" />;
  const { answer, window } = loaded.data;
  const series = seriesOf(answer);
  if (series.length === 0) return <Nothing query={loaded.data.query} window={window} />;
  const drawn = series.slice(0, MAX_LINES);
  return (
    <div class={loaded.data.query === query ? 'answer' : 'answer dimmed'}>
      <PromChart id="explore" title={drawn.length === 1 ? nameOf(drawn[0]) : loaded.data.query} series={drawn} names={shortNames(drawn)} result={loaded.data} height={320} units={units} />
      <p class="muted">
        {plural(series.length, 'series', 'series')}
        {series.length > MAX_LINES && `, the first ${MAX_LINES} are drawn`}, step {loaded.data.step / 1000} s, {digits(loaded.data.took, 3)} ms
      </p>
      {[...(answer.warnings ?? []).filter((one) => !/truncated/.test(one)), ...(answer.infos ?? [])].map((note) => (
        <p class="notice" key={note}>
          {note}
        </p>
      ))}
      {series.length >= MAX_SERIES && <p class="notice">Only {MAX_SERIES.toLocaleString('en-US')} series are read: narrow the labels, or put them together with sum by (…) or topk(…).</p>}
      <div class="filters">
        <button type="button" class="small" onClick={() => save('tidemark.csv', 'text/csv', csvOf(series))}>
          CSV
        </button>
        <button type="button" class="small" onClick={() => save('tidemark.json', 'application/json', jsonOf(query, series))}>
          JSON
        </button>
        <CopyLink />
        <span class="muted">of {series.length >= MAX_SERIES ? 'these' : 'all'} {plural(series.length, 'series', 'series')} in this range</span>
      </div>
      <Table caption="Series" columns={columns} rows={series} rowKey={nameOf} sort="-value" param="sort" />
    </div>
  );
}

// useUnits is the unit of what a query gives, where that can be told.
function useUnits(query: string): string {
  const names = useMemo(() => metricsOf(query).slice(0, MAX_METRICS), [query]);
  const asked = names.join();
  const known = useLoad(
    async (signal) => ({ asked, units: new Map(await Promise.all(names.map(async (name): Promise<[string, string]> => [name, (await getMetric(name, signal))?.unit ?? '']))) }),
    [asked],
  );
  return useMemo(() => (known.data?.asked === asked ? unitsOf(query, known.data.units) : ''), [query, asked, known.data]);
}

// Nothing says what may be the reason that there is no series.
function Nothing({ query, window }: { query: string; window: TimeWindow }) {
  const names = useMemo(() => metricsOf(query).slice(0, MAX_METRICS), [query]);
  const unknown = useLoad(async (signal) => (await Promise.all(names.map(async (name) => ((await getMetric(name, signal)) === undefined ? name : '')))).filter(Boolean), [names.join()]);
  const missing = unknown.data ?? [];
  return (
    <Empty title="No series in this range.">
      {missing.length > 0 ? (
        <p>
          No item gives a metric {missing.join(' or ')}. Type the first letters of a name, and the field offers those that there are.
        </p>
      ) : (
        <p>Nothing was measured between {spanText(window.from, window.to)}, or no series has these labels. Choose a longer range, or take labels away.</p>
      )}
    </Empty>
  );
}

// The link holds the range as two instants, so that somebody else sees what is seen here.
function CopyLink() {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    const { from, to } = windowNow();
    const address = new URL(location.href);
    address.searchParams.delete('last');
    address.searchParams.set('from', new Date(from).toISOString());
    address.searchParams.set('to', new Date(to).toISOString());
    try {
      await navigator.clipboard.writeText(address.href);
      setCopied(true);
      setTimeout(() => setCopied(false), 1_500);
    } catch {
      // The address line has it too, but for a range that follows the clock.
    }
  };
  return (
    <button type="button" class="small" onClick={() => void copy()}>
      <span aria-live="polite">{copied ? 'Link copied' : 'Copy a link'}</span>
    </button>
  );
}

// Four digits are read at a glance; the whole number is in the title, in the CSV and in the JSON.
function LastValue({ text, units }: { text: string | undefined; units: string }) {
  if (text === undefined) return <>–</>;
  const value = parseNumber(text);
  return <span title={text}>{value === null ? text : units === '' ? digits(value) : formatValue(value, units, 4)}</span>;
}

const columnsOf = (units: string): Column<PromSeries>[] => [
  { id: 'name', title: 'Series', cell: (series) => <code>{nameOf(series)}</code>, sort: nameOf, class: 'wide' },
  { id: 'value', title: 'Last value', cell: (series) => <LastValue text={lastOf(series)?.[1]} units={units} />, sort: (series) => parseNumber(lastOf(series)?.[1] ?? '') ?? -Infinity, number: true },
  { id: 'at', title: 'At', cell: (series) => (lastOf(series) === null ? '–' : dateTime(lastOf(series)![0] * 1000)), number: true, minor: true },
];
