// A chart on the page: picture, legend, table view, problem marks, keyboard, and what is shown while there is nothing
// to draw.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Problem } from '../api/types.ts';
import { formatValue } from '../format/number.ts';
import type { ChartSpec } from '../item/sections.ts';
import { Failure } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { serverNow } from '../state/live.ts';
import { paletteVersion, readPalette } from '../state/theme.ts';
import { zoomBack, zoomTo } from '../state/window.ts';
import { clockTime } from '../time/clock.ts';
import { type Board, Panel } from './board.ts';
import { Legend, type LegendHandle, readAt } from './legend.tsx';
import { placeMarks } from './marks.ts';
import { Plot } from './plot.ts';
import { newestOf, prepare, type Prepared } from './prepare.ts';
import { ChartTable, TableButton } from './table.tsx';

interface Props {
  board: Board;
  spec: ChartSpec;
  section: string;
  height: number;
  marks?: Problem[];
}

// Charts are read a little before they come into view.
const AHEAD = '160px 0px';
const MAX_STILL_MS = 5_000;
const NO_MARKS: Problem[] = [];
const NOTHING: Prepared = { at: [], lines: [], band: false };

export function Chart({ board, spec, section, height, marks = NO_MARKS }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const marksPlace = useRef<HTMLDivElement>(null);
  const legend = useRef<LegendHandle>(null);
  const single = useRef<HTMLElement>(null);
  const when = useRef<HTMLTimeElement>(null);
  const plot = useRef<Plot | null>(null);
  const panel = useMemo(() => new Panel(spec, section), [spec, section]);
  const [, render] = useState(0);
  const [asTable, setAsTable] = useState(false);
  const [prepared, setPrepared] = useState<Prepared>(NOTHING);
  const version = useCell(paletteVersion);
  const latest = useRef({ marks, asTable });
  latest.current = { marks, asTable };

  useEffect(() => {
    const element = place.current!;
    const own = new Plot(element, spec, panel.units, readPalette(), {
      onZoom: zoomTo,
      onBack: zoomBack,
      onCursor: (index, focused) => showValues(index, focused),
    });
    plot.current = own;
    let drawnTo = 0;
    const showValues = (index: number | null, focused: number | null): void => {
      const reading = { prepared: own.prepared, newest: newestOf(panel.buffers, spec), units: panel.units, index, focused };
      legend.current?.show(reading);
      if (single.current !== null) single.current.textContent = readAt(reading, 0);
      if (when.current !== null) when.current.textContent = index === null ? '' : clockTime(own.prepared?.at[index] ?? 0);
    };
    panel.onDraw = (tick = false) => {
      const width = element.clientWidth;
      if (width === 0) return;
      panel.width = width;
      const { from, to } = board.window();
      // A step of less than a pixel cannot be seen; the numbers still move with every value.
      if (tick && to - drawnTo < Math.min(MAX_STILL_MS, (0.8 * (to - from)) / width)) {
        if (!own.underPointer) showValues(null, null);
        return;
      }
      drawnTo = to;
      const columns = prepare(panel.buffers, spec);
      own.draw(columns, { from, to }, { width, height }, panel.units);
      placeMarks(marksPlace.current!, own, latest.current.marks, { from, to }, width);
      if (latest.current.asTable) setPrepared(columns);
    };
    panel.onStatus = () => render((n) => n + 1);
    panel.width = element.clientWidth;
    const remove = board.add(panel);
    const seen = new IntersectionObserver((entries) => board.show(panel, entries[entries.length - 1].isIntersecting), { rootMargin: AHEAD });
    seen.observe(element);
    const resized = new ResizeObserver(() => panel.loadedFor !== '' && panel.onDraw());
    resized.observe(element);
    return () => {
      seen.disconnect();
      resized.disconnect();
      remove();
      // Whoever still holds the panel must not draw: a plot that is gone would be built anew.
      panel.onDraw = () => {};
      panel.onStatus = () => {};
      own.destroy();
    };
  }, [panel, height]);

  useEffect(() => plot.current?.recolour(readPalette()), [version]);
  useEffect(() => void (panel.loadedFor !== '' && panel.onDraw()), [marks, asTable]);

  const empty = panel.status === 'ready' && panel.buffers.every((buffer) => buffer.at.length === 0);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      plot.current?.step((event.key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 10 : 1));
      event.preventDefault();
    } else if (event.key === 'Enter') setAsTable(!asTable);
    else if (event.key === 'Escape') plot.current?.leave();
  };

  return (
    <figure
      class={`chart${panel.status === 'loading' && panel.loadedFor !== '' ? ' dimmed' : ''}`}
      tabIndex={0}
      data-chart={spec.id}
      data-status={panel.status}
      aria-label={describe(spec, panel)}
      onKeyDown={onKeyDown}
    >
      <figcaption>
        <span class="chart-title">{spec.title}</span>
        <TableButton on={asTable} set={setAsTable} />
        <time class="chart-when" ref={when} />
        {spec.series.length === 1 && <b class="chart-value" ref={single} />}
      </figcaption>
      <div class={asTable ? 'chart-place hidden' : 'chart-place'}>
        <div class="chart-canvas" ref={(element) => {
          place.current = element;
          if (element !== null) element.style.height = `${height}px`;
        }} />
        <div class="chart-marks" ref={marksPlace} />
        {panel.status === 'error' && panel.error !== null && (
          <div class="chart-over">
            <Failure error={panel.error} retry={() => board.retry(panel)} />
          </div>
        )}
        {empty && <div class="chart-over muted">No values in this range</div>}
      </div>
      {spec.series.length > 1 && !asTable && <Legend handle={legend} spec={spec} />}
      {asTable && <ChartTable spec={spec} units={panel.units} prepared={prepared} />}
    </figure>
  );
}

// describe is the text summary of a chart, for those who do not see it.
function describe(spec: ChartSpec, panel: Panel): string {
  const lines = panel.loadedFor === '' ? [] : prepare(panel.buffers, { ...spec, stack: false }).lines;
  const parts = spec.series.slice(0, 8).map((series, n) => {
    const values = (lines[n]?.values ?? []).filter((value): value is number => typeof value === 'number');
    if (values.length === 0) return `${series.name}: no values`;
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    const text = (value: number): string => formatValue(value, panel.units);
    return `${series.name}: ${text(values[values.length - 1])}, lowest ${text(low)}, highest ${text(high)}`;
  });
  const more = spec.series.length > 8 ? `; and ${spec.series.length - 8} more lines` : '';
  return `${spec.title}. ${parts.join('; ')}${more}. Updated ${clockTime(serverNow())}.`;
}
