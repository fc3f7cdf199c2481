// The latency heat map: time to the right, latency upwards on a logarithmic scale, the darker the more requests. Dragging over it picks a part
// of the range.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Profile, Span } from '../api/mongo.ts';
import { AXIS_WIDTH, FONT, RIGHT } from '../chart/plot.ts';
import { formatValue } from '../format/number.ts';
import { useCell } from '../state/cell.ts';
import { zoomBack, zoomTo } from '../state/window.ts';
import { type Palette, paletteVersion, readPalette, veil } from '../state/theme.ts';
import { clockTime, dateTime } from '../time/clock.ts';

const HEIGHT = 148;
const TOP = 6;
const BOTTOM = 8;
const MIN_DRAG = 6;
const zoom = ({ from, to }: Span): void => zoomTo(from, to);

interface Props {
  id: string;
  title: string;
  profile: Profile;
  window: Span;
  /** What is picked now; the rest is dimmed. */
  picked?: Span | null;
  /** What dragging does; zooms the page when left out. */
  onDrag?: (span: Span) => void;
}

export function Heat({ id, title, profile, window, picked = null, onDrag = zoom }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState('');
  const [drag, setDrag] = useState<[number, number] | null>(null);
  // What arrows chose: columns, the last one that was gone to second.
  const [chosen, setChosen] = useState<[number, number] | null>(null);
  const version = useCell(paletteVersion);
  const shown = useRef({ profile, window });
  shown.current = { profile, window };

  useEffect(() => {
    const element = canvas.current!;
    const paint = (): void => draw(element, shown.current.profile, shown.current.window, readPalette());
    const resized = new ResizeObserver(paint);
    resized.observe(element);
    paint();
    return () => resized.disconnect();
  }, [profile, window.from, window.to, version]);

  const timeAt = (x: number): number => {
    const width = canvas.current!.clientWidth - AXIS_WIDTH - RIGHT;
    return window.from + (Math.min(Math.max(x - AXIS_WIDTH, 0), width) / width) * (window.to - window.from);
  };
  const onMove = (event: PointerEvent): void => {
    const x = event.offsetX;
    setHover(textAt(profile, timeAt(x), 1 - (event.offsetY - TOP) / (HEIGHT - TOP - BOTTOM)));
    if (drag !== null) setDrag([drag[0], x]);
  };
  const onUp = (): void => {
    setDrag(null);
    if (drag === null || Math.abs(drag[1] - drag[0]) < MIN_DRAG) return;
    onDrag({ from: timeAt(Math.min(...drag)), to: timeAt(Math.max(...drag)) });
  };
  const spanOf = ([a, b]: [number, number]): Span => ({ from: profile.at[Math.min(a, b)] ?? window.from, to: (profile.at[Math.max(a, b)] ?? window.to) + profile.step_ms });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    const last = profile.at.length - 1;
    if ((event.key === 'ArrowLeft' || event.key === 'ArrowRight') && last >= 0) {
      const next = chosen === null ? last : Math.max(0, Math.min(last, chosen[1] + (event.key === 'ArrowLeft' ? -1 : 1)));
      const now: [number, number] = [event.shiftKey && chosen !== null ? chosen[0] : next, next];
      setChosen(now);
      setHover(columnText(profile, spanOf(now)));
    } else if (event.key === 'Enter' && chosen !== null) {
      setChosen(null);
      onDrag(spanOf(chosen));
    } else if (event.key === 'Escape') {
      setChosen(null);
      setHover('');
    } else return;
    event.preventDefault();
  };
  return (
    <figure class="chart heat" tabIndex={0} data-chart={id} data-status="ready" aria-label={`${title}. Arrows choose a time, with Shift a longer one; Enter takes it.`} onKeyDown={onKeyDown} onBlur={() => setChosen(null)}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-when" aria-live="polite">
          {hover}
        </span>
      </figcaption>
      <div class="chart-place">
        <canvas
          ref={canvas}
          class="heat-canvas draggable"
          role="img"
          aria-label={`${title}: ${summary(profile)}`}
          onPointerDown={(event) => {
            if (event.button !== 0) return;
            event.currentTarget.setPointerCapture(event.pointerId);
            setDrag([event.offsetX, event.offsetX]);
          }}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onDblClick={zoomBack}
          onPointerCancel={() => setDrag(null)}
          onPointerLeave={() => setHover('')}
        />
        {drag !== null && <Shade class="heat-drag" from={Math.min(...drag)} to={Math.max(...drag)} />}
        {drag === null && <Picked picked={chosen === null ? picked : spanOf(chosen)} window={window} />}
        {profile.heat.cells.length === 0 && <div class="chart-over muted">No latencies in this range</div>}
      </div>
      {profile.heat.cells.length > 0 && <HeatTable title={title} profile={profile} />}
    </figure>
  );
}

const MAX_ROWS = 500;

// HeatTable is the map as text: how many requests took how long, newest first. It is made when it is opened.
function HeatTable({ title, profile: { heat, at } }: { title: string; profile: Profile }) {
  const [open, setOpen] = useState(false);
  const cells = open ? [...heat.cells].sort((a, b) => b[0] - a[0] || b[1] - a[1]).slice(0, MAX_ROWS) : [];
  return (
    <details class="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && (
        <div class="chart-table" tabIndex={0}>
          <table>
            <caption class="unseen">{title}</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col" class="number">
                  Took
                </th>
                <th scope="col" class="number">
                  Requests
                </th>
              </tr>
            </thead>
            <tbody>
              {cells.map(([column, row, count]) => (
                <tr key={`${column} ${row}`}>
                  <td>{dateTime(at[column])}</td>
                  <td class="number">{`${formatValue(heat.bounds[row], 's', 2)} – ${formatValue(heat.bounds[row + 1], 's', 2)}`}</td>
                  <td class="number">{count.toLocaleString('en-US')}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {heat.cells.length > MAX_ROWS && <p class="muted">The newest {MAX_ROWS} of {heat.cells.length.toLocaleString('en-US')}.</p>}
        </div>
      )}
    </details>
  );
}

function Shade({ class: name, from, to }: { class: string; from: number; to: number }) {
  return <div class={name} style={{ left: `${from}px`, width: `${to - from}px` }} />;
}

/** Picked marks the picked part of a range over a chart, whose axis takes the room that all charts give it. */
export function Picked({ picked, window }: { picked: Span | null; window: Span }) {
  if (picked === null) return null;
  const part = (at: number): number => Math.min(1, Math.max(0, (at - window.from) / (window.to - window.from)));
  const [from, to] = [part(picked.from), part(picked.to)];
  return (
    <div class="pick-room" aria-hidden="true">
      <div class="pick-part" style={{ left: `${from * 100}%`, width: `${Math.max(0.15, (to - from) * 100)}%` }} />
    </div>
  );
}

function summary({ total }: Profile): string {
  return total.p50 === null ? 'no latencies' : `median ${formatValue(total.p50, 's')}, p95 ${formatValue(total.p95, 's')}, p99 ${formatValue(total.p99, 's')}, longest ${formatValue(total.max, 's')}`;
}

// textAt says what is under the pointer: the time, the band of latencies, how many requests.
function textAt({ heat, at, step_ms }: Profile, time: number, height: number): string {
  const rows = heat.bounds.length - 1;
  const column = Math.floor((time - (at[0] ?? 0)) / step_ms);
  if (rows < 1 || column < 0 || column >= at.length) return '';
  const row = Math.min(rows - 1, Math.max(0, Math.floor(height * rows)));
  const count = heat.cells.find(([c, r]) => c === column && r === row)?.[2] ?? 0;
  return `${clockTime(at[column])} · ${formatValue(heat.bounds[row], 's', 2)} – ${formatValue(heat.bounds[row + 1], 's', 2)} · ${count.toLocaleString('en-US')}`;
}

// columnText says how many requests there were in a span, and how long the slowest took.
function columnText({ heat, at, step_ms }: Profile, { from, to }: Span): string {
  const cells = heat.cells.filter(([column]) => at[column] >= from && at[column] < to);
  const count = cells.reduce((sum, [, , n]) => sum + n, 0);
  const slowest = cells.reduce((row, [, one]) => Math.max(row, one), -1);
  return `${clockTime(from)}${to - from > step_ms ? ` – ${clockTime(to)}` : ''} · ${count.toLocaleString('en-US')}${slowest < 0 ? '' : `, up to ${formatValue(heat.bounds[slowest + 1], 's', 2)}`}`;
}

function draw(canvas: HTMLCanvasElement, profile: Profile, window: Span, palette: Palette): void {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (width === 0) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT * ratio);
  const pen = canvas.getContext('2d')!;
  pen.scale(ratio, ratio);
  const { heat, at, step_ms } = profile;
  const rows = heat.bounds.length - 1;
  const room = width - AXIS_WIDTH - RIGHT;
  const x = (t: number): number => AXIS_WIDTH + Math.min(1, Math.max(0, (t - window.from) / (window.to - window.from))) * room;
  const y = (row: number): number => HEIGHT - BOTTOM - (row / Math.max(rows, 1)) * (HEIGHT - TOP - BOTTOM);
  if (rows > 0) scale(pen, palette, heat.bounds, y, width);
  const most = Math.max(1, ...heat.cells.map(([, , count]) => count));
  for (const [column, row, count] of heat.cells) {
    // Few requests matter too: the shade goes with the logarithm, and the faintest can still be seen.
    pen.fillStyle = veil(palette.accent, 0.1 + 0.9 * (Math.log1p(count) / Math.log1p(most)) ** 1.7);
    const [left, right] = [x(at[column]), x(at[column] + step_ms)];
    pen.fillRect(left, y(row + 1), Math.max(right - left - (right - left > 4 ? 0.5 : 0), 0.75), y(row) - y(row + 1) - 0.5);
  }
  pen.fillStyle = palette.hair;
  pen.fillRect(AXIS_WIDTH, HEIGHT - BOTTOM + 1, room, 1);
}

// scale writes the powers of ten beside the map.
function scale(pen: CanvasRenderingContext2D, palette: Palette, bounds: number[], y: (row: number) => number, width: number): void {
  const rowOf = (seconds: number): number => 2 * Math.log2(seconds / bounds[0]);
  const ends = [bounds[0], bounds[bounds.length - 1]];
  const tens: number[] = [];
  for (let power = Math.ceil(Math.log10(ends[0])); 10 ** power <= ends[1] * 1.0001; power++) tens.push(10 ** power);
  pen.font = FONT;
  pen.textAlign = 'right';
  pen.textBaseline = 'middle';
  for (const at of tens.length >= 2 ? tens : ends) {
    const place = y(rowOf(at));
    pen.fillStyle = palette.hair;
    pen.fillRect(AXIS_WIDTH, place, width - AXIS_WIDTH - RIGHT, 1);
    pen.fillStyle = palette.muted;
    pen.fillText(formatValue(at, 's', 2), AXIS_WIDTH - 6, Math.max(8, Math.min(HEIGHT - 8, place)));
  }
}
