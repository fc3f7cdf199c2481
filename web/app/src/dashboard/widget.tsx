// One widget: what it shows, whatever its kind.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { queryRange } from '../api/client.ts';
import { type Dashboard, getGraphs, type Widget } from '../api/dashboards.ts';
import type { Host } from '../api/types.ts';
import { nameOf, PromChart, type Result, seriesOf, shortNames } from '../chart/answer.tsx';
import type { Board } from '../chart/board.ts';
import { Chart } from '../chart/chart.tsx';
import { CROWD } from '../chart/plot.ts';
import { Timeline } from '../chart/timeline.tsx';
import { type ChartSpec } from '../item/sections.ts';
import { useLoad } from '../part/load.ts';
import { LogView } from '../part/log.tsx';
import { Failure } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { missed } from '../state/live.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { chartOf, legendOf } from './chartspec.ts';
import { ROW_PX } from './grid.ts';
import { queries } from './limiter.ts';
import { Markdown } from './markdown.tsx';
import { NumberWidget } from './number.tsx';
import { ProblemsWidget, RequestsWidget, TableWidget } from './tables.tsx';
import type { Found, ItemSource } from './source.ts';
import { noHost, type Values } from './variables.ts';

/** What all widgets of a dashboard share. */
export interface Surroundings {
  board: Board;
  source: ItemSource;
  hosts: Host[];
  /** Of variables that no host fits, why. */
  empty: Values;
  refreshMs: number;
  /** While it is edited a bar takes room from each widget. */
  editing: boolean;
  /** Tells which items a widget shows, for the live stream. */
  watch: (id: string, items: Found['items']) => void;
}

interface Props {
  id: string;
  /** With variables replaced. */
  widget: Widget;
  around: Surroundings;
}

export const refreshOf = (dashboard: Dashboard): number => (dashboard.refresh_seconds ?? 10) * 1000;

export function WidgetView({ id, widget, around }: Props) {
  // Nothing is asked for a widget that nobody sees.
  const [seen, setSeen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const watcher = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true), { rootMargin: '160px 0px' });
    watcher.observe(place.current!);
    return () => watcher.disconnect();
  }, []);
  return (
    <div class={`widget-body kind-${widget.kind}`} ref={place}>
      {widget.kind !== 'chart' && widget.kind !== 'graph' && widget.kind !== 'timeline' && widget.title !== undefined && <h2 class="widget-title">{widget.title}</h2>}
      {seen && <Content id={id} widget={widget} around={around} />}
    </div>
  );
}

function Content(props: Props) {
  const { id, widget, around } = props;
  switch (widget.kind) {
    case 'chart':
      return (widget.queries ?? []).length > 0 ? <QueryChart {...props} /> : <ItemChart {...props} />;
    case 'number':
      return <NumberWidget id={id} widget={widget} around={around} />;
    case 'table':
      return <TableWidget id={id} widget={widget} around={around} />;
    case 'problems':
      return <ProblemsWidget widget={widget} around={around} />;
    case 'requests':
      return <RequestsWidget widget={widget} />;
    case 'graph':
      return <GraphWidget {...props} />;
    case 'log':
      return <LogWidget {...props} />;
    case 'timeline':
      return <TimelineWidget {...props} />;
    default:
      return <Markdown text={widget.text ?? ''} />;
  }
}

const CAPTION_PX = 24;
const BAR_PX = 24;
// One row of names, two where there are more; what does not fit is scrolled to.
const LEGEND_PX = 22;

/** heightOf is the room for the picture of a chart. */
export function heightOf(widget: Widget, lines: number, editing: boolean): number {
  return Math.max(48, widget.h * ROW_PX - (editing ? BAR_PX : 0) - 8 - 12 - CAPTION_PX - (lines > 1 ? LEGEND_PX : 0) - (lines > 3 && lines <= CROWD ? LEGEND_PX - 4 : 0));
}

/** useItems finds the items of a widget again when it or a variable changes. */
export function useItems(id: string, widget: Widget, around: Surroundings) {
  const key = JSON.stringify(widget.items ?? []);
  const loaded = useLoad((signal) => around.source.find(widget.items ?? [], signal), [key, around.source]);
  useEffect(() => around.watch(id, (loaded.data ?? []).flatMap((found) => found.items)), [loaded.data]);
  return loaded;
}

function ItemChart({ id, widget, around }: Props) {
  const found = useItems(id, widget, around);
  const spec = useMemo(() => (found.data === null ? null : chartOf(id, widget, found.data)), [found.data, widget.title, widget.stack, widget.units]);
  if (spec === null) return found.error === null ? null : <Failure error={found.error} retry={found.reload} />;
  return spec.series.length === 0 ? <Missing title={widget.title} widget={widget} around={around} /> : <BoardChart spec={spec} widget={widget} around={around} />;
}

function BoardChart({ spec, widget, around }: { spec: ChartSpec; widget: Widget; around: Surroundings }) {
  return <Chart board={around.board} spec={spec} section="dashboard" height={heightOf(widget, spec.series.length, around.editing)} />;
}

/** Missing says that there is nothing to show, and what was looked for. */
export function Missing({ title, widget, around }: { title?: string; widget: Widget; around: Surroundings }) {
  const none = noHost(widget, around.empty);
  const names = (widget.items ?? []).map((item) => `${item.key} of ${item.host ?? `group ${item.group}`}`);
  return (
    <div class="widget-missing">
      {title !== undefined && <h2 class="widget-title">{title}</h2>}
      {none !== undefined ? <p class="muted">There is {none}.</p> : <p class="muted">There is no such item: {names.slice(0, 3).join(', ')}{names.length > 3 && ` and ${names.length - 3} more`}.</p>}
    </div>
  );
}

const POINTS = 400;
const MAX_LINES = 40;

function QueryChart({ id, widget, around }: Props) {
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const asked = widget.queries ?? [];
  const loaded = useLoad(
    async (signal) => {
      const window = windowNow();
      const step = Math.max(1_000, Math.ceil((window.to - window.from) / POINTS / 1_000) * 1_000);
      const answers = await Promise.all(asked.map((query) => queries.run(() => queryRange(query.expr, window.from, window.to, step, signal))));
      const series = answers.flatMap((answer, n) => seriesOf(answer).map((one) => ({ one, legend: asked[n].legend })));
      return { series, result: { window, step } satisfies Result };
    },
    [JSON.stringify(asked), key, lost],
  );
  useRefresh(loaded.reload, around.refreshMs);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return null;
  const drawn = loaded.data.series.slice(0, MAX_LINES);
  if (drawn.length === 0) {
    return (
      <div class="widget-missing">
        <h2 class="widget-title">{widget.title}</h2>
        <p class="muted">The query has no series in this range.</p>
      </div>
    );
  }
  const short = shortNames(drawn.map(({ one }) => one));
  const names = drawn.map(({ one, legend }, n) => (legend === undefined || legend === '' ? (short[n] ?? nameOf(one)) : legendOf(legend, one.metric)));
  return <PromChart id={id} title={widget.title ?? ''} series={drawn.map(({ one }) => one)} names={names} result={loaded.data.result} height={heightOf(widget, drawn.length, around.editing)} units={widget.units} stack={widget.stack} />;
}

/** useRefresh asks again while the range follows the clock and the page is in front. */
export function useRefresh(reload: () => void, ms: number): void {
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && windowNow().live && reload(), ms);
    return () => clearInterval(timer);
  }, [reload, ms]);
}

function GraphWidget({ id, widget, around }: Props) {
  const host = around.hosts.find((one) => one.host === widget.host);
  const loaded = useLoad(async (signal) => (host === undefined ? { graphs: [] } : getGraphs(host.id, widget.graph ?? '', signal)), [host?.id, widget.graph]);
  const graph = loaded.data?.graphs[0];
  useEffect(() => around.watch(id, graph?.items ?? []), [graph]);
  const spec = useMemo(
    () => (graph === undefined ? null : chartOf(id, { ...widget, title: widget.title ?? graph.name, stack: graph.stack }, graph.items.map((item) => ({ ref: { key: item.key }, items: [item] })))),
    [graph, widget.title],
  );
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (spec !== null && spec.series.length > 0) return <BoardChart spec={spec} widget={widget} around={around} />;
  if (loaded.data === null) return null;
  return <p class="muted">{host === undefined ? `There is no host ${widget.host}.` : `${widget.host} has no graph “${widget.graph}” with numbers.`}</p>;
}

function LogWidget({ id, widget, around }: Props) {
  const found = useItems(id, widget, around);
  const item = found.data?.[0]?.items[0];
  if (found.data === null) return found.error === null ? null : <Failure error={found.error} retry={found.reload} />;
  return item === undefined ? <Missing widget={widget} around={around} /> : <LogView key={item.id} item={item.id} small />;
}

function TimelineWidget({ id, widget, around }: Props) {
  const found = useItems(id, widget, around);
  if (found.data === null) return found.error === null ? null : <Failure error={found.error} retry={found.reload} />;
  const items = found.data.flatMap(({ ref, items: some }) => some.map((item) => ({ id: item.id, name: some.length === 1 && ref.name !== undefined ? ref.name : some.length > 1 || found.data!.length > 1 ? `${item.host} ${item.name}` : item.name })));
  return items.length === 0 ? <Missing title={widget.title} widget={widget} around={around} /> : <Timeline id={id} title={widget.title ?? 'States'} items={items} />;
}
