// One item: its chart, and its stored values exactly as they are.

import { useEffect, useMemo } from 'preact/hooks';
import { getItem, getValues } from '../api/client.ts';
import { isNumeric, type Item, type Reading } from '../api/types.ts';
import { Board } from '../chart/board.ts';
import { Chart } from '../chart/chart.tsx';
import { marksOf, useMarks } from '../chart/usemarks.ts';
import { Timeline } from '../chart/timeline.tsx';
import { formatDuration } from '../format/number.ts';
import { isCounter, isState } from '../item/reading.ts';
import { type ChartSpec, chartUnits } from '../item/sections.ts';
import { Link } from '../part/link.tsx';
import { useLoad, useTitle } from '../part/load.ts';
import { LogView } from '../part/log.tsx';
import { Empty, Failure } from '../part/notice.tsx';
import { route, setParams } from '../state/route.ts';
import { useCell } from '../state/cell.ts';
import { live, missed } from '../state/live.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { clockTime, dateText } from '../time/clock.ts';

const LIMIT = 500;
const REFRESH_MS = 5_000;

export function ItemView({ id }: { id: string }) {
  const item = useLoad((signal) => getItem(id, signal), [id]);
  useEffect(() => live.want({ items: [id] }), [id]);
  useTitle(item.data === null ? 'Item' : `${item.data.name}, ${item.data.host}`);
  if (item.data === null) return item.error === null ? <div class="page loading" /> : <Failure error={item.error} retry={item.reload} />;
  return (
    <div class="page">
      <div class="title-line">
        <h1>{item.data.name}</h1>
        <Link to={`/hosts/${item.data.host_id}`}>{item.data.host}</Link>
        <code class="muted">{item.data.key}</code>
        <span class="muted title-end">
          {item.data.value_type}
          {item.data.interval_ms > 0 && `, every ${formatDuration(item.data.interval_ms / 1000)}`}
        </span>
      </div>
      {item.data.state === 'unsupported' && <p class="problem-text">{item.data.error || 'This item is not supported.'}</p>}
      {item.data.description && <p class="muted">{item.data.description}</p>}
      {isState(item.data) && <Timeline id="item-states" title="States" items={[{ id, name: item.data.name }]} />}
      {isNumeric(item.data) && <ItemChart item={item.data} />}
      {isLog(item.data) ? <ItemLog id={id} /> : <StoredValues id={id} />}
    </div>
  );
}

// Longer texts are read like a log: by words, and as they come.
const isLog = (item: Item): boolean => item.value_type === 'log' || item.value_type === 'text';

function ItemLog({ id }: { id: string }) {
  const { params } = route.value;
  return (
    <section>
      <h2>Lines</h2>
      <LogView item={id} search={params.get('search') ?? ''} level={params.get('level') ?? ''} onFilter={(search, level) => setParams({ search, level })} />
    </section>
  );
}

function ItemChart({ item }: { item: Item }) {
  const board = useMemo(() => new Board(isCounter(item) ? new Set([item.id]) : new Set()), [item]);
  useEffect(() => {
    board.start();
    return () => board.stop();
  }, [board]);
  const items = useMemo(() => [item], [item]);
  const spec = useMemo<ChartSpec>(
    () => ({
      id: `item-${item.id}`,
      title: isCounter(item) ? 'Change per second' : 'Value',
      units: chartUnits(item),
      stack: false,
      series: [{ sources: [{ item: item.id, interval: item.interval_ms }], name: item.name, slot: 0, mirror: false }],
    }),
    [item],
  );
  const marks = useMarks(item.host_id, items);
  return <Chart board={board} spec={spec} section="item" height={320} marks={marksOf(spec, marks)} />;
}

function StoredValues({ id }: { id: string }) {
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const values = useLoad(
    (signal) => {
      const { from, to } = windowNow();
      return getValues({ item: id, from: Math.floor(from), to: Math.ceil(to), limit: LIMIT, order: 'desc' }, signal);
    },
    [id, key, lost],
  );
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && windowNow().live && values.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [id]);
  if (values.data === null) return values.error === null ? null : <Failure error={values.error} retry={values.reload} />;
  if (values.data.values.length === 0) return <Empty title="No value is stored in this range." />;
  return (
    <section>
      <h2>Stored values</h2>
      <table class="list stored">
        <caption class="unseen">Stored values, newest first</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col" class={isNumeric(values.data.item) ? 'number' : 'wide'}>
              Value
            </th>
          </tr>
        </thead>
        <tbody>
          {values.data.values.map((reading) => (
            <tr key={reading.at_ns}>
              <td title={`${reading.at_ns} ns`}>{exactTime(reading)}</td>
              <td class={isNumeric(values.data!.item) ? 'number' : 'wide text-value'}>{reading.value.mapped === undefined ? reading.value.v : `${reading.value.mapped} (${reading.value.v})`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {values.data.next !== undefined && <p class="muted">The newest {LIMIT} of this range.</p>}
    </section>
  );
}

function exactTime(reading: Reading): string {
  const at = Number(BigInt(reading.at_ns) / 1_000_000n);
  return `${dateText(at)} ${clockTime(at, true)}`;
}
