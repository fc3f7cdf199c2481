// Explore: a PromQL expression, its chart over the range, its values now.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { getMetricNames, type PromAnswer, type PromSeries, queryRange } from '../api/client.ts';
import { Board, Panel } from '../chart/board.ts';
import { Buffer } from '../chart/buffer.ts';
import { Chart } from '../chart/chart.tsx';
import { assignSlots } from '../chart/colour.ts';
import { digits, plural } from '../format/number.ts';
import { parseNumber } from '../item/reading.ts';
import type { ChartSpec } from '../item/sections.ts';
import { useLoad } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live, missed } from '../state/live.ts';
import { route, setParams } from '../state/route.ts';
import { type TimeWindow, windowKey, windowNow } from '../state/window.ts';
import { dateTime } from '../time/clock.ts';

const EXAMPLES = ['system_cpu_load', 'rate(net_if_in[1m]) * 8', 'max by (host) (system_cpu_util)', 'topk(5, avg_over_time(system_cpu_util[5m]))'];
const POINTS = 500;
const REFRESH_MS = 5_000;
const MAX_LINES = 100;

export function ExploreView() {
  const { params } = useCell(route);
  const query = params.get('q') ?? '';
  const [text, setText] = useState(query);
  const names = useLoad((signal) => getMetricNames(signal), []);
  useEffect(() => setText(query), [query]);
  useEffect(() => live.want({}), []);
  const run = (event: Event): void => {
    event.preventDefault();
    setParams({ q: text.trim() }, false);
  };
  return (
    <div class="page">
      <h1>Explore</h1>
      <form class="query" onSubmit={run}>
        <label class="unseen" for="promql">
          PromQL expression
        </label>
        <input id="promql" list="metric-names" value={text} placeholder="PromQL, for example rate(net_if_in[1m])" autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        <datalist id="metric-names">
          {(names.data?.data ?? []).slice(0, 2_000).map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
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
        <Answer query={query} />
      )}
    </div>
  );
}

interface Result {
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
      const answer = await queryRange(query, window.from, window.to, step, signal);
      return { answer, window, step, took: performance.now() - begun };
    },
    [query, key, lost],
  );
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && windowNow().live && loaded.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [query]);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return null;
  const series = seriesOf(loaded.data.answer);
  if (series.length === 0) return <Empty title="No series in this range." />;
  return (
    <>
      <PromChart series={series.slice(0, MAX_LINES)} result={loaded.data} />
      <p class="muted">
        {plural(series.length, 'series', 'series')}
        {series.length > MAX_LINES && `, the first ${MAX_LINES} are drawn`}, step {loaded.data.step / 1000} s, {digits(loaded.data.took, 3)} ms
      </p>
      <Table caption="Series" columns={COLUMNS} rows={series} rowKey={nameOf} sort="-value" />
    </>
  );
}

function seriesOf(answer: PromAnswer): PromSeries[] {
  const { result } = answer.data;
  return Array.isArray(result[0]) || typeof result[0] === 'number' ? [] : (result as PromSeries[]);
}

/** nameOf writes the labels of a series as PromQL does. */
function nameOf(series: PromSeries): string {
  const { __name__: name = '', ...labels } = series.metric;
  const inner = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(', ');
  return inner === '' ? name || 'value' : `${name}{${inner}}`;
}

// shortNames leaves out the labels that are the same for all series.
function shortNames(series: PromSeries[]): string[] {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))];
  const varied = labels.filter((label) => series.some((one) => one.metric[label] !== series[0].metric[label]));
  return series.map((one) => varied.map((label) => one.metric[label] ?? '').join(' ').trim() || nameOf(one));
}

function lastOf(series: PromSeries): [number, string] | null {
  return series.values?.[series.values.length - 1] ?? series.value ?? null;
}

const COLUMNS: Column<PromSeries>[] = [
  { id: 'name', title: 'Series', cell: (series) => <code>{nameOf(series)}</code>, sort: nameOf, class: 'wide' },
  { id: 'value', title: 'Last value', cell: (series) => lastOf(series)?.[1] ?? '–', sort: (series) => parseNumber(lastOf(series)?.[1] ?? '') ?? -Infinity, number: true },
  { id: 'at', title: 'At', cell: (series) => (lastOf(series) === null ? '–' : dateTime(lastOf(series)![0] * 1000)), number: true, minor: true },
];

// An answer is drawn by the same chart as everything else; its board gets the data instead of reading it.
class AnswerBoard extends Board {
  result: Result | null = null;
  series: PromSeries[] = [];
  private shown: Panel | null = null;

  override show(panel: Panel, visible: boolean): void {
    panel.visible = visible;
    this.shown = panel;
    if (visible) this.fill();
  }

  override window(): TimeWindow {
    return this.result?.window ?? windowNow();
  }

  fill(): void {
    const panel = this.shown;
    if (panel === null || this.result === null) return;
    const { step } = this.result;
    panel.buffers = panel.spec.series.map((_spec, n) => bufferOf(this.series[n], step));
    panel.loadedFor = 'answer';
    panel.status = 'ready';
    panel.onStatus();
    panel.onDraw();
  }
}

// A step without a value is a gap: PromQL already looked back as far as a value counts.
function bufferOf(series: PromSeries | undefined, step: number): Buffer {
  const buffer = new Buffer(null, 0, 0);
  let before = -Infinity;
  for (const [seconds, text] of series?.values ?? []) {
    const at = Math.round(seconds * 1000);
    if (at - before > step * 1.5 && before > -Infinity) {
      buffer.at.push(before + step);
      buffer.avg.push(null);
    }
    buffer.at.push(at);
    buffer.avg.push(parseNumber(text));
    before = at;
  }
  return buffer;
}

function PromChart({ series, result }: { series: PromSeries[]; result: Result }) {
  const board = useRef<AnswerBoard | null>(null);
  board.current ??= new AnswerBoard();
  const names = shortNames(series);
  const spec = useMemo<ChartSpec>(() => {
    const slots = assignSlots(names);
    return {
      id: 'explore',
      title: '',
      units: '',
      stack: false,
      series: names.map((name, n) => ({ sources: [{ item: String(n), interval: 0 }], name, slot: slots.get(name) ?? 0, mirror: false })),
    };
  }, [names.join('\n')]);
  board.current.series = series;
  board.current.result = result;
  useEffect(() => board.current!.fill(), [result]);
  return <Chart board={board.current} spec={spec} section="explore" height={320} />;
}
