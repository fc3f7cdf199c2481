// A chart of columns that a view has read itself. It looks like the charts of items, shares their crosshair and their place for the axis, so that
// charts below each other have one time axis.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ChartSpec } from '../item/sections.ts';
import { useCell } from '../state/cell.ts';
import { paletteVersion, readPalette } from '../state/theme.ts';
import { zoomBack, zoomTo } from '../state/window.ts';
import { clockTime } from '../time/clock.ts';
import { Legend, type LegendHandle, readAt } from './legend.tsx';
import { Plot } from './plot.ts';
import type { Prepared } from './prepare.ts';
import { ChartTable, TableButton } from './table.tsx';

export interface FigureLine {
  name: string;
  slot: number;
  values: (number | null)[];
}

interface Props {
  id: string;
  title: string;
  units: string;
  at: number[];
  lines: FigureLine[];
  window: { from: number; to: number };
  height: number;
  top?: number;
  /** What dragging does; zooms the page when left out. */
  onDrag?: (from: number, to: number) => void;
}

export function Figure({ id, title, units, at, lines, window, height, top, onDrag = zoomTo }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const legend = useRef<LegendHandle>(null);
  const single = useRef<HTMLElement>(null);
  const when = useRef<HTMLTimeElement>(null);
  const plot = useRef<Plot | null>(null);
  const names = lines.map((line) => `${line.name} ${line.slot}`).join();
  const spec = useMemo<ChartSpec>(
    () => ({ id, title, units, stack: false, top, series: lines.map(({ name, slot }) => ({ sources: [], name, slot, mirror: false })) }),
    [id, title, units, top, names],
  );
  const latest = useRef({ at, lines, window, onDrag });
  latest.current = { at, lines, window, onDrag };
  const version = useCell(paletteVersion);
  const [asTable, setAsTable] = useState(false);

  useEffect(() => {
    const element = place.current!;
    const own = new Plot(element, spec, units, readPalette(), {
      onZoom: (from, to) => latest.current.onDrag(from, to),
      onBack: zoomBack,
      onCursor: (index, focused) => {
        const newest = latest.current.lines.map((line) => newestOf(line.values));
        const reading = { prepared: own.prepared, newest, units, index, focused };
        legend.current?.show(reading);
        if (single.current !== null) single.current.textContent = readAt(reading, 0);
        if (when.current !== null) when.current.textContent = index === null ? '' : clockTime(own.prepared?.at[index] ?? 0);
      },
    });
    plot.current = own;
    const resized = new ResizeObserver(() => draw(own, element, latest.current, units));
    resized.observe(element);
    draw(own, element, latest.current, units);
    return () => {
      resized.disconnect();
      own.destroy();
    };
  }, [spec, height]);
  useEffect(() => {
    if (plot.current !== null) draw(plot.current, place.current!, latest.current, units);
  }, [at, lines, window.from, window.to]);
  useEffect(() => plot.current?.recolour(readPalette()), [version]);

  const nothing = lines.every((line) => line.values.every((value) => value === null));
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      plot.current?.step((event.key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 10 : 1));
      event.preventDefault();
    } else if (event.key === 'Enter') setAsTable(!asTable);
    else if (event.key === 'Escape') plot.current?.leave();
  };
  return (
    <figure class="chart" tabIndex={0} data-chart={id} data-status="ready" aria-label={`${title}${nothing ? ': no values' : ''}`} onKeyDown={onKeyDown}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <TableButton on={asTable} set={setAsTable} />
        <time class="chart-when" ref={when} />
        {lines.length === 1 && <b class="chart-value" ref={single} />}
      </figcaption>
      <div class={asTable ? 'chart-place hidden' : 'chart-place'}>
        <div class="chart-canvas" ref={(element) => {
          place.current = element;
          if (element !== null) element.style.height = `${height}px`;
        }} />
        {nothing && <div class="chart-over muted">No values in this range</div>}
      </div>
      {lines.length > 1 && !asTable && <Legend handle={legend} spec={spec} />}
      {asTable && <ChartTable spec={spec} units={units} prepared={preparedOf(at, lines)} />}
    </figure>
  );
}

const preparedOf = (at: number[], lines: FigureLine[]): Prepared => ({ at, lines: lines.map(({ values }) => ({ values, drawn: values, min: null, max: null })), band: false });

function draw(plot: Plot, element: HTMLElement, { at, lines, window }: { at: number[]; lines: FigureLine[]; window: { from: number; to: number } }, units: string): void {
  const width = element.clientWidth;
  if (width === 0) return;
  plot.draw(preparedOf(at, lines), window, { width, height: element.clientHeight }, units);
}

function newestOf(values: (number | null)[]): number | null {
  for (let i = values.length - 1; i >= 0; i--) if (values[i] !== null) return values[i];
  return null;
}
