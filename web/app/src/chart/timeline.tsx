// States over time: a bar for each item, cut where its value changed. The same time axis as the charts, so that they can be read together.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { getStates, type ItemStates, type State } from '../api/dashboards.ts';
import { plural } from '../format/number.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { missed, serverNow } from '../state/live.ts';
import { type TimeWindow, windowKey, windowNow, zoomBack, zoomTo } from '../state/window.ts';
import { axisTimes, dateTime } from '../time/clock.ts';
import { aheadOfUTC } from '../time/zone.ts';
import { assignSlots } from './colour.ts';
import { TableButton } from './table.tsx';

export interface StateItem {
  id: string;
  name: string;
}

interface Props {
  id: string;
  title: string;
  items: StateItem[];
  /** Items that kept one value for the whole range are left out. */
  changedOnly?: boolean;
}

const REFRESH_MS = 5_000;
const MAX_ITEMS = 20;
const MAX_ROWS = 200;
const MIN_DRAG = 6;

export function Timeline({ id, title, items, changedOnly = false }: Props) {
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const [asTable, setAsTable] = useState(false);
  const ids = items.slice(0, MAX_ITEMS).map((item) => item.id);
  const loaded = useLoad(
    async (signal) => {
      const window = windowNow();
      return { window, answer: ids.length === 0 ? { items: [] } : await getStates(ids, window.from, window.to, signal) };
    },
    [ids.join(), key, lost],
  );
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && windowNow().live && loaded.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  if (loaded.data === null) return loaded.error === null ? null : <Failure error={loaded.error} retry={loaded.reload} />;
  const { window } = loaded.data;
  const rows = loaded.data.answer.items.filter((row) => !changedOnly || row.states.length > 1);
  if (rows.length === 0) return changedOnly ? null : <p class="muted">No values in this range.</p>;
  return (
    <figure class={items.length === 1 ? 'timeline single' : 'timeline'} data-chart={id} data-status="ready" aria-label={describe(title, rows, items)}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <TableButton on={asTable} set={setAsTable} picture="bars" />
      </figcaption>
      {asTable ? <StateTable rows={rows} items={items} /> : <Bars rows={rows} items={items} window={window} />}
      {rows.some((row) => row.truncated) && <p class="muted timeline-note">Too many values for the whole range; the newest are shown.</p>}
    </figure>
  );
}

const textOf = (state: State): string => state.mapped ?? state.value;
const nameOf = (items: StateItem[], id: string): string => items.find((item) => item.id === id)?.name ?? id;

function describe(title: string, rows: ItemStates[], items: StateItem[]): string {
  const parts = rows.map((row) => {
    const last = row.states[row.states.length - 1];
    return `${nameOf(items, row.id)}: ${last === undefined ? 'no values' : `${textOf(last)} now, ${plural(row.states.length - 1, 'change')}`}`;
  });
  return `${title}. ${parts.join('; ')}.`;
}

function Bars({ rows, items, window }: { rows: ItemStates[]; items: StateItem[]; window: TimeWindow }) {
  const slots = useMemo(() => assignSlots(rows.flatMap((row) => row.states.map(textOf))), [rows]);
  const share = (at: number): number => (100 * (at - window.from)) / (window.to - window.from);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const place = useRef<HTMLDivElement>(null);
  // All bars stand below each other, so the first one tells where the time axis is.
  const at = (event: PointerEvent): number => {
    const bar = place.current!.querySelector('.timeline-bar')!.getBoundingClientRect();
    return Math.min(bar.width, Math.max(0, event.clientX - bar.left));
  };
  const begin = (event: PointerEvent): void => {
    if (event.button !== 0 || !(event.target as Element).closest('.timeline-bar')) return;
    place.current!.setPointerCapture(event.pointerId);
    setDrag({ from: at(event), to: at(event) });
  };
  const end = (): void => {
    setDrag(null);
    if (drag === null || Math.abs(drag.to - drag.from) < MIN_DRAG) return;
    const time = (x: number): number => window.from + (x / place.current!.querySelector('.timeline-bar')!.clientWidth) * (window.to - window.from);
    zoomTo(time(Math.min(drag.from, drag.to)), time(Math.max(drag.from, drag.to)));
  };
  return (
    <div class="timeline-rows" ref={place} onPointerDown={begin} onPointerMove={(event) => drag !== null && setDrag({ ...drag, to: at(event) })} onPointerUp={end} onPointerCancel={() => setDrag(null)} onDblClick={zoomBack}>
      {rows.map((row) => (
        <div class="timeline-row" key={row.id}>
          <Link to={`/items/${row.id}`} class="timeline-name">
            {nameOf(items, row.id)}
          </Link>
          <div class="timeline-bar">
            {row.states.map((state, n) => {
              // What holds now goes on to the end of a range that follows the clock.
              const end = n === row.states.length - 1 && window.live ? Math.min(window.to, serverNow()) : Math.max(state.to, state.from);
              const left = Math.max(0, share(state.from));
              const width = Math.max(0.15, Math.min(100, share(end)) - left);
              return (
                <span
                  key={state.from}
                  class={`timeline-state series-${slots.get(textOf(state)) ?? 0}`}
                  style={{ left: `${left}%`, width: `${width}%` }}
                  title={`${textOf(state)}${state.mapped === undefined ? '' : ` (${state.value})`}\nfrom ${dateTime(state.from)} to ${dateTime(end)}, ${plural(state.count, 'value')}`}
                >
                  {width > 4 && <span>{textOf(state)}</span>}
                </span>
              );
            })}
            {drag !== null && <span class="timeline-drag" style={{ left: `${Math.min(drag.from, drag.to)}px`, width: `${Math.abs(drag.to - drag.from)}px` }} />}
          </div>
        </div>
      ))}
      <Axis window={window} />
    </div>
  );
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000].map((seconds) => seconds * 1000);

function Axis({ window }: { window: TimeWindow }) {
  const span = window.to - window.from;
  const step = STEPS.find((one) => span / one <= 8) ?? STEPS[STEPS.length - 1];
  const zone = -aheadOfUTC(window.from);
  const marks: number[] = [];
  for (let at = Math.ceil((window.from - zone) / step) * step + zone; at < window.to - span * 0.05; at += step) marks.push(at);
  const labels = axisTimes(marks, step);
  return (
    <div class="timeline-axis" aria-hidden="true">
      {marks.map((at, n) => (
        <span key={at} style={{ left: `${(100 * (at - window.from)) / span}%` }}>
          {labels[n]}
        </span>
      ))}
    </div>
  );
}

function StateTable({ rows, items }: { rows: ItemStates[]; items: StateItem[] }) {
  const all = rows.flatMap((row) => row.states.map((state) => ({ name: nameOf(items, row.id), state }))).sort((a, b) => b.state.from - a.state.from);
  return (
    <div class="chart-table" tabIndex={0}>
      <table>
        <caption class="unseen">States, newest first</caption>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">Item</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {all.slice(0, MAX_ROWS).map(({ name, state }) => (
            <tr key={`${name} ${state.from}`}>
              <td>{dateTime(state.from)}</td>
              <td>{dateTime(state.to)}</td>
              <td>{name}</td>
              <td>{textOf(state)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
