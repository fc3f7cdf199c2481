// Server: how Tidemark itself is doing.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { getItems, getMetrics } from '../api/client.ts';
import type { Item, Overview } from '../api/types.ts';
import { Board } from '../chart/board.ts';
import { Chart } from '../chart/chart.tsx';
import { assignSlots } from '../chart/colour.ts';
import { type Figure, figuresOf, packageOf } from '../format/exposition.ts';
import { FIGURES, isWrong, PARTS, type Row } from '../format/figures.ts';
import { digits, formatAgo, formatDuration, formatShare, formatValue } from '../format/number.ts';
import type { ChartSpec } from '../item/sections.ts';
import { groupBy } from '../part/group.ts';
import { Failure, NotWhole } from '../part/notice.tsx';
import { useLoad, useSecond } from '../part/load.ts';
import { Sparkline } from '../part/sparkline.tsx';
import { useCell } from '../state/cell.ts';
import { live, overview, serverNow } from '../state/live.ts';
import { natural } from '../format/natural.ts';
import { dateTime } from '../time/clock.ts';
import { me } from '../state/me.ts';
import { Proxies } from './proxies.tsx';
import { QueueView } from './queue.tsx';
import { samples } from './samples.ts';

const READ_MS = 5_000;
const KEEP = 120;

export function ServerView() {
  const state = useCell(overview);
  const who = useCell(me);
  return (
    <div class="page">
      <h1>Server</h1>
      {state !== null && <Vital state={state} />}
      {who?.all_hosts ? <Own proxies={who.role === 'administrator'} /> : <Others />}
    </div>
  );
}

function Others() {
  useEffect(() => live.want({}), []);
  return (
    <>
      <QueueView />
      <NotWhole>The server's own figures and charts are about all hosts.</NotWhole>
    </>
  );
}

function Own({ proxies }: { proxies: boolean }) {
  const { readings, error, reload } = useReadings();
  const rows = useMemo(() => (readings.length === 0 ? [] : plainRows(readings)), [readings]);
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {rows.length > 0 && <WhatToDo rows={rows} />}
      <OverTime />
      <QueueView />
      {proxies && <Proxies />}
      {rows.length > 0 && (
        <>
          <PlainFigures rows={rows} />
          <RawFigures readings={readings} />
        </>
      )}
    </>
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
          {state.store.from !== null && state.store.from > 0 && `, oldest value ${formatAgo(serverNow() - state.store.from)}`}
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

// useReadings reads /metrics every few seconds.
function useReadings() {
  const loaded = useLoad(async (signal): Promise<Reading> => ({ at: Date.now(), figures: figuresOf(await getMetrics(signal)) }), []);
  const [readings, setReadings] = useState<Reading[]>([]);
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
  return { readings, error: loaded.error, reload: loaded.reload };
}

// plainRows gives the figures that have a name in plain words, those of one name with different labels added up.
function plainRows(readings: Reading[]): Row[] {
  const sums = readings.map((reading) => {
    const all = new Map<string, number>();
    for (const figure of reading.figures) all.set(figure.name, (all.get(figure.name) ?? 0) + figure.value);
    return all;
  });
  const newest = sums[sums.length - 1];
  return Object.entries(FIGURES)
    .filter(([name]) => newest.has(name))
    .map(([name, plain]) => {
      const column = sums.map((all) => all.get(name) ?? null);
      const counter = /_total$/.test(name);
      const values = counter ? rates(column, readings).map((value) => (value === null ? null : plain.units === '%' ? value * 100 : value)) : column;
      const now = values[values.length - 1] ?? null;
      const whole = plain.of === undefined ? undefined : newest.get(plain.of);
      const share = whole === undefined || whole <= 0 || now === null ? null : now / whole;
      return { id: name, plain, values, now, share, wrong: isWrong(plain, now, share) };
    })
    // What goes by the second is not known at the first reading; what has no value later says nothing.
    .filter((row) => readings.length < 2 || (row.now !== null && Number.isFinite(row.now)));
}

function WhatToDo({ rows }: { rows: Row[] }) {
  const wrong = rows.filter((row) => row.wrong);
  if (wrong.length === 0) {
    return (
      <p class="all-well">
        <i class="square ok" /> All figures are as they should be.
      </p>
    );
  }
  return (
    <section aria-labelledby="todo-title">
      <h2 id="todo-title">What to do</h2>
      <ul class="todo">
        {wrong.map((row) => (
          <li key={row.id}>
            <b>
              {row.plain.title}: {figureText(row)}.
            </b>{' '}
            {row.plain.advice}
          </li>
        ))}
      </ul>
    </section>
  );
}

function PlainFigures({ rows }: { rows: Row[] }) {
  return (
    <section class="own" aria-labelledby="figures-title">
      <h2 id="figures-title">Figures</h2>
      <div class="figure-parts">
        {PARTS.map((part) => {
          const own = rows.filter((row) => row.plain.part === part);
          return own.length === 0 ? null : <PlainTable key={part} part={part} rows={own} />;
        })}
      </div>
    </section>
  );
}

function figureText({ plain, now, share }: Row): string {
  const text = plain.units === '%' ? formatShare(now) : formatValue(now, plain.units, 4);
  return share === null ? text : `${text}, ${digits(share * 100, 3)} %`;
}

function PlainTable({ part, rows }: { part: string; rows: Row[] }) {
  return (
    <table class="list figures">
      <caption>{part}</caption>
      <thead class="unseen">
        <tr>
          <th scope="col">Figure</th>
          <th scope="col">Trend</th>
          <th scope="col">Now</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id} title={row.id}>
            <td class="wide">{row.plain.title}</td>
            <td class="trend minor">
              <Sparkline values={row.values} label={`${row.plain.title} since the page was opened`} width={90} height={18} />
            </td>
            <td class={row.wrong ? 'number problem-text' : 'number'}>{figureText(row)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// RawFigures are all that /metrics has, for those who write queries and triggers over them.
function RawFigures({ readings }: { readings: Reading[] }) {
  const [search, setSearch] = useState('');
  const [resting, setResting] = useState(false);
  const word = search.trim().toLowerCase();
  const { figures } = readings[readings.length - 1];
  const atRest = figures.filter((figure) => figure.value === 0).length;
  const groups = groupBy(
    figures.filter((figure) => (resting || figure.value !== 0) && figure.id.toLowerCase().includes(word)),
    (figure) => packageOf(figure.name),
  );
  return (
    <details class="raw-figures">
      <summary>All figures under their names in /metrics</summary>
      <section class="own">
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
    </details>
  );
}

const OWN_KEY = 'tidemark[disk_used_percent]';
const CHART_HEIGHT = 130;

interface OwnChart {
  title: string;
  units: string;
  top?: number;
  keys: RegExp;
}

const OWN_CHARTS: OwnChart[] = [
  { title: 'Values per second', units: '/s', keys: /^zabbix\[wcache,values\]$/ },
  { title: 'Busy by kind', units: '%', top: 10, keys: /^zabbix\[process,.*,busy\]$/ },
  { title: 'History cache used', units: '%', top: 10, keys: /^zabbix\[wcache,history,pused\]$/ },
  { title: 'Value cache', units: '/s', keys: /^zabbix\[vcache,cache,(hits|misses)\]$/ },
  { title: 'Items in the queue', units: '', keys: /^zabbix\[queue\]$/ },
  { title: 'Disk and store in use', units: '%', top: 100, keys: /^tidemark\[(disk_used_percent|storage_quota_used_percent)\]$/ },
];

// OverTime draws the internal items of the host on which the server runs: what its template gathers of it.
function OverTime() {
  const loaded = useLoad(async (signal) => {
    const [own] = (await getItems({ key: OWN_KEY, limit: 1 }, signal)).items;
    return own === undefined ? [] : (await getItems({ host: own.host_id, limit: 10_000 }, signal)).items;
  }, []);
  const board = useMemo(() => new Board(), []);
  useEffect(() => {
    board.start();
    return () => board.stop();
  }, [board]);
  const specs = useMemo(() => OWN_CHARTS.map((chart) => ownChart(chart, loaded.data ?? [])).filter((spec) => spec.series.length > 0), [loaded.data]);
  useEffect(() => live.want({ items: specs.flatMap((spec) => spec.series.map((series) => series.sources[0].item)) }), [specs]);
  if (loaded.data === null || specs.length === 0) return null;
  return (
    <section aria-labelledby="over-time-title">
      <h2 id="over-time-title">Over time</h2>
      <div class="charts">
        {specs.map((spec) => (
          <Chart key={spec.id} board={board} spec={spec} section="server" height={CHART_HEIGHT} />
        ))}
      </div>
    </section>
  );
}

function ownChart({ title, units, top, keys }: OwnChart, items: Item[]): ChartSpec {
  const own = items.filter((item) => keys.test(item.key));
  const names = own.map((item) => item.name.replace(/^(Busy|Value cache): /, '').replace(/ per second$/, ''));
  const slots = assignSlots(names);
  return {
    id: `server-${title.toLowerCase().replace(/ /g, '-')}`,
    title,
    units,
    top,
    stack: false,
    series: own.map((item, n) => ({ sources: [{ item: item.id, interval: item.interval_ms }], name: names[n], slot: own.length === 1 ? 0 : (slots.get(names[n]) ?? 0), mirror: false })),
  };
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
