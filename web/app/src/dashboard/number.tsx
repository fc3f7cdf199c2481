// A number of an item or a query: large, with its line, coloured from a threshold on.

import { useEffect } from 'preact/hooks';
import { getChart, queryRange } from '../api/client.ts';
import type { Widget } from '../api/dashboards.ts';
import type { Severity } from '../api/types.ts';
import { seriesOf } from '../chart/answer.tsx';
import { formatValue } from '../format/number.ts';
import { parseNumber, shownValue } from '../item/reading.ts';
import { chartUnits } from '../item/sections.ts';
import { SeverityShape } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { Sparkline } from '../part/sparkline.tsx';
import { useCell } from '../state/cell.ts';
import { missed } from '../state/live.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { useLiveReadings } from '../view/facts.tsx';
import { queries } from './limiter.ts';
import { severityAt } from './tidy.ts';
import { Missing, type Surroundings, useItems, useRefresh } from './widget.tsx';

const POINTS = 60;

interface Props {
  id: string;
  widget: Widget;
  around: Surroundings;
}

export function NumberWidget(props: Props) {
  return (props.widget.queries ?? []).length > 0 ? <OfQuery {...props} /> : <OfItem {...props} />;
}

function OfItem({ id, widget, around }: Props) {
  const key = useCell(windowKey);
  const found = useItems(id, widget, around);
  const item = found.data?.[0]?.items[0];
  const line = useLoad(
    async (signal) => {
      if (item === undefined) return [];
      const { from, to } = windowNow();
      return (await getChart([item.id], from, to, POINTS, signal)).series[0]?.avg ?? [];
    },
    [item?.id, key],
  );
  useRefresh(line.reload, Math.max(around.refreshMs, 10_000));
  const [shown] = useLiveReadings(item === undefined ? EMPTY : found.data![0].items);
  if (found.data === null) return found.error === null ? null : <Failure error={found.error} retry={found.reload} />;
  if (shown === undefined) return <Missing widget={widget} around={around} />;
  const value = shownValue(shown, widget.units ?? chartUnits(shown));
  return (
    <Big text={value.text} title={value.exact} severity={severityAt(value.number, widget)} line={thinned(line.data ?? [])} label={widget.title ?? shown.name}>
      {widget.title === undefined && (
        <Link to={`/items/${shown.id}`} class="muted">
          {shown.host} {shown.name}
        </Link>
      )}
    </Big>
  );
}

const EMPTY: never[] = [];

function OfQuery({ widget, around }: Props) {
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const expr = widget.queries?.[0]?.expr ?? '';
  const loaded = useLoad(
    (signal) => {
      const { from, to } = windowNow();
      const step = Math.max(1_000, Math.ceil((to - from) / POINTS / 1_000) * 1_000);
      return queries.run(() => queryRange(expr, from, to, step, signal));
    },
    [expr, key, lost],
  );
  useRefresh(loaded.reload, around.refreshMs);
  useEffect(() => around.watch(widget.kind, []), []);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return null;
  const series = seriesOf(loaded.data);
  const values = (series[0]?.values ?? []).map(([, text]) => parseNumber(text));
  const last = values[values.length - 1] ?? null;
  return (
    <Big text={formatValue(last, widget.units ?? '', 4)} title={String(last ?? 'no value')} severity={severityAt(last, widget)} line={values} label={widget.title ?? expr}>
      {series.length > 1 && <span class="muted">the first of {series.length} series</span>}
    </Big>
  );
}

function Big({ text, title, severity, line, label, children }: { text: string; title: string; severity: Severity | null; line: (number | null)[]; label: string; children?: preact.ComponentChildren }) {
  return (
    <div class={severity === null ? 'widget-number' : `widget-number severity-${severity.replace(' ', '-')}`}>
      <b class="big" title={title}>
        {severity !== null && <SeverityShape severity={severity} />}
        {text}
        {severity !== null && <span class="unseen">, {severity}</span>}
      </b>
      {children}
      {line.length > 1 && <Sparkline values={line} label={`${label} over the range`} />}
    </div>
  );
}

function thinned(values: (number | null)[]): (number | null)[] {
  const every = Math.ceil(values.length / POINTS);
  return every <= 1 ? values : values.filter((_value, n) => n % every === 0);
}
