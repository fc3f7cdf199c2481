// What a trigger would have done over the last days: how often it would have fired, and when, drawn over the values.

import { useState } from 'preact/hooks';
import { getChart } from '../api/client.ts';
import { type Kind, type Preview, previewTrigger } from '../api/configuration.ts';
import type { ChartAnswer } from '../api/types.ts';
import { formatDuration, formatValue, plural } from '../format/number.ts';
import { said } from '../part/form.tsx';
import { Refusal } from '../part/notice.tsx';
import { dateTime } from '../time/clock.ts';
import { type Doc, type Fields, text } from './document.ts';
import { HostChoice } from './try.tsx';

const DAY = 86_400_000;
const RANGES: [string, number][] = [
  ['the last day', DAY],
  ['the last 7 days', 7 * DAY],
  ['the last 30 days', 30 * DAY],
];
const POINTS = 600;
const WIDTH = 1000;
const HEIGHT = 160;
const MAX_LISTED = 20;
/** The shortest chart, for an item whose first value has just come. */
const MIN_SHOWN = 60_000;

/** Tried is what a trial gave; from is where its chart begins, in milliseconds. */
interface Tried {
  preview: Preview;
  chart: ChartAnswer;
  from: number;
}

/** beginOf is where the chart of a trial begins: at the first stored value when the range has nothing before it. */
export function beginOf(preview: Preview): number {
  const first = Math.min(...preview.items.map((item) => item.values_from ?? Infinity));
  if (!Number.isFinite(first)) return preview.from;
  return Math.max(preview.from, Math.min(Math.floor(first), preview.to - MIN_SHOWN));
}

export function TryTrigger({ kind, doc, technical, trigger }: { kind: Kind; doc: Doc; technical: string; trigger: Fields }) {
  const [host, setHost] = useState(kind === 'host' ? technical : '');
  const [range, setRange] = useState(7 * DAY);
  const [result, setResult] = useState<Tried | null>(null);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    setFailure('');
    try {
      const to = Date.now();
      const preview = await previewTrigger({ document: doc, host, trigger: text(trigger, 'name'), expression: text(trigger, 'expression'), from: to - range, to });
      const from = beginOf(preview);
      const chart = await getChart(preview.items.map((item) => item.id), from, preview.to, POINTS);
      setResult({ preview, chart, from });
    } catch (error) {
      setResult(null);
      setFailure(said(error));
    }
    setBusy(false);
  };
  return (
    <fieldset class="try" aria-busy={busy}>
      <legend>Try it on stored values</legend>
      {kind === 'template' && <HostChoice value={host} set={setHost} />}
      <label class="field">
        <span>Over</span>
        <select value={String(range)} onChange={(event) => setRange(Number(event.currentTarget.value))}>
          {RANGES.map(([title, ms]) => (
            <option key={ms} value={String(ms)}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <div>
        <button type="button" disabled={busy || host === ''} onClick={() => void run()}>
          Preview
        </button>
      </div>
      <Refusal text={failure} />
      {result !== null && <Outcome {...result} />}
    </fieldset>
  );
}

/** times is how often something happens, in words. */
export const times = (n: number): string => (n === 0 ? 'not' : n === 1 ? 'once' : n === 2 ? 'twice' : `${n} times`);

function Outcome({ preview, chart, from }: Tried) {
  const first = Math.min(...preview.items.map((item) => item.values_from ?? Infinity));
  return (
    <div role="status" class="tested">
      <p class="outcome">
        Would {preview.fired === 0 ? 'not have fired' : `have fired ${times(preview.fired)}`}.{' '}
        <span class="muted">
          {plural(preview.values, 'value')} from {dateTime(preview.from)} to {dateTime(preview.to)}.
          {Number.isFinite(first) && first > preview.from + DAY / 24 && ` The first stored value is of ${dateTime(first)}.`}
        </span>
      </p>
      {preview.unknown !== undefined && preview.unknown !== '' && <p class="problem-text">Its state would be unknown now: {preview.unknown}</p>}
      <Drawing preview={preview} chart={chart} from={from} />
      {preview.problems.length > 0 && (
        <table class="list">
          <caption class="unseen">When it would have fired</caption>
          <thead>
            <tr>
              <th scope="col">Begins</th>
              <th scope="col">Ends</th>
              <th scope="col" class="number">
                Lasts
              </th>
            </tr>
          </thead>
          <tbody>
            {preview.problems.slice(0, MAX_LISTED).map((problem, n) => (
              <tr key={n}>
                <td>{dateTime(problem.from)}</td>
                <td>{problem.to === undefined ? 'still open' : dateTime(problem.to)}</td>
                <td class="number">{formatDuration(((problem.to ?? preview.to) - problem.from) / 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {preview.fired > MAX_LISTED && <p class="muted">The first {MAX_LISTED}.</p>}
    </div>
  );
}

/** lineOf is a series as a path: each in its own height, gaps stay gaps. */
export function lineOf(series: { at: number[]; avg: (number | null)[] }, from: number, to: number): { path: string; low: number; high: number } {
  const values = series.avg.filter((v): v is number => v !== null);
  const low = values.reduce((left, v) => Math.min(left, v), Infinity);
  const high = values.reduce((left, v) => Math.max(left, v), -Infinity);
  const scale = high > low ? (HEIGHT - 16) / (high - low) : 0;
  let path = '';
  let gap = true;
  series.at.forEach((at, n) => {
    const v = series.avg[n];
    if (v === null) {
      gap = true;
      return;
    }
    const x = ((at - from) / (to - from)) * WIDTH;
    const y = scale === 0 ? HEIGHT / 2 : HEIGHT - 8 - (v - low) * scale;
    path += `${gap ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
    gap = false;
  });
  return { path, low, high };
}

const MAX_VALUES = 500;

// ValueTable is the lines as text, newest first.
function ValueTable({ chart }: { chart: ChartAnswer }) {
  const [open, setOpen] = useState(false);
  const at = open ? [...new Set(chart.series.flatMap((series) => series.at))].sort((a, b) => b - a).slice(0, MAX_VALUES) : [];
  const values = chart.series.map((series) => new Map(series.at.map((time, n) => [time, series.avg[n]])));
  return (
    <details class="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && (
        <div class="chart-table" tabIndex={0}>
          <table>
            <caption class="unseen">Values</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {chart.series.map((series) => (
                  <th scope="col" class="number" key={series.id}>
                    {series.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {at.map((time) => (
                <tr key={time}>
                  <td>{dateTime(time)}</td>
                  {chart.series.map((series, n) => (
                    <td class="number" key={series.id}>
                      {formatValue(values[n].get(time) ?? null, series.units)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

/** Heights is the axis of the values. Several series have each its own height: their ranges stand in the legend. */
function Heights({ lines }: { lines: { series: { units: string }; low: number; high: number }[] }) {
  const [one] = lines;
  const shown = lines.length === 1 && one !== undefined && Number.isFinite(one.low);
  return (
    <div class="preview-heights" aria-hidden="true">
      {shown && (one.high > one.low ? [one.high, one.low] : [one.low]).map((v) => <span key={v}>{formatValue(v, one.series.units)}</span>)}
    </div>
  );
}

function Drawing({ preview, chart, from }: Tried) {
  const { to } = preview;
  const x = (at: number): number => Math.max(0, Math.min(WIDTH, ((at - from) / (to - from)) * WIDTH));
  const lines = chart.series.map((series) => ({ series, ...lineOf(series, from, to) }));
  return (
    <figure class="preview">
      <div class="preview-chart">
        <Heights lines={lines} />
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`Values from ${dateTime(from)} to ${dateTime(to)}; it would have fired ${times(preview.fired)}`}>
          {preview.problems.map((problem, n) => (
            <rect key={n} class="fired" x={x(problem.from)} width={Math.max(2, x(problem.to ?? to) - x(problem.from))} y="0" height={HEIGHT}>
              <title>{`${dateTime(problem.from)} to ${problem.to === undefined ? 'now' : dateTime(problem.to)}`}</title>
            </rect>
          ))}
          {lines.map(({ series, path }, n) => (
            <path key={series.id} class={`line series-${n % 8}`} d={path} />
          ))}
        </svg>
        <div class="preview-times">
          <span>{dateTime(from)}</span>
          <span class="not-narrow">{dateTime((from + to) / 2)}</span>
          <span>{dateTime(to)}</span>
        </div>
      </div>
      <figcaption class="muted">
        {lines.map(({ series, low, high }, n) => (
          <span key={series.id} class="legend-entry">
            <i class={`swatch series-${n % 8}`} /> {series.name}
            {Number.isFinite(low) && `: ${formatValue(low, series.units)} to ${formatValue(high, series.units)}`}
          </span>
        ))}
        <span class="legend-entry">
          <i class="swatch fired" /> problem
        </span>
      </figcaption>
      <ValueTable chart={chart} />
    </figure>
  );
}
