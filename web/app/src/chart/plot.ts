// One uPlot chart: how lines, stacks, bands and axes look, and what the pointer does.

import uPlot from 'uplot';
import { digits, isBinary, type Scale, scaleFor } from '../format/number.ts';
import type { ChartSpec } from '../item/sections.ts';
import { type Palette, veil } from '../state/theme.ts';
import { axisTimes } from '../time/clock.ts';
import { shownDate } from '../time/zone.ts';
import type { Prepared } from './prepare.ts';
import { rangeOf, ticksBetween } from './ticks.ts';

export interface PlotEvents {
  onZoom(from: number, to: number): void;
  onBack(): void;
  /** index of the column under the crosshair, null when it left; focused is the nearest line of a crowded chart. */
  onCursor(index: number | null, focused: number | null): void;
}

/** More lines than this are grey until one is hovered. */
export const CROWD = 8;
export const AXIS_WIDTH = 46;
const STACK_FILL = 0.75;
const UNIT_HEIGHT = 18;
export const RIGHT = 6;
export const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

export class Plot {
  private u: uPlot | null = null;
  private shape = '';
  private from = 0;
  private to = 1;
  private scale: Scale = { factor: 1, unit: '' };
  private focused: number | null = null;
  prepared: Prepared | null = null;

  constructor(
    private readonly place: HTMLElement,
    private readonly spec: ChartSpec,
    private units: string,
    private palette: Palette,
    private readonly events: PlotEvents,
  ) {}

  /** draw shows prepared columns in the window from…to, in a width and height of CSS pixels. */
  draw(prepared: Prepared, window: { from: number; to: number }, size: { width: number; height: number }, units: string): void {
    this.prepared = prepared;
    this.from = window.from;
    this.to = window.to;
    const shape = `${prepared.lines.length} ${prepared.band} ${units}`;
    if (this.u === null || shape !== this.shape) {
      this.units = units;
      this.shape = shape;
      this.build(size);
    } else if (this.u.width !== size.width || this.u.height !== size.height) this.u.setSize(size);
    this.u!.setData(this.columns(prepared), true);
    if (!this.underPointer) this.events.onCursor(null, this.focused);
  }

  /** underPointer tells whether the crosshair is on the chart. */
  get underPointer(): boolean {
    return (this.u?.cursor.left ?? -1) >= 0;
  }

  recolour(palette: Palette): void {
    this.palette = palette;
    this.u?.redraw(false, true);
  }

  destroy(): void {
    this.u?.destroy();
    this.u = null;
  }

  /** xOf is where an instant is, in CSS pixels from the left of the chart; it may lie outside. */
  xOf(at: number): number {
    const room = (this.u?.width ?? 0) - AXIS_WIDTH - RIGHT;
    return AXIS_WIDTH + ((at - this.from) / (this.to - this.from)) * room;
  }

  /** step moves the crosshair by columns, for the keyboard. */
  step(by: number): void {
    const u = this.u;
    if (u === null || u.data[0].length === 0) return;
    const now = u.cursor.idx ?? u.data[0].length - 1;
    const next = Math.max(0, Math.min(u.data[0].length - 1, now + by));
    u.setCursor({ left: u.valToPos(u.data[0][next], 'x'), top: u.over.clientHeight / 2 });
  }

  leave(): void {
    this.u?.setCursor({ left: -10, top: -10 });
  }

  private columns(prepared: Prepared): uPlot.AlignedData {
    const bands = prepared.band
      ? prepared.lines.flatMap((line) => [line.max ?? line.drawn, line.min ?? line.drawn])
      : [];
    return [prepared.at, ...bands, ...prepared.lines.map((line) => line.drawn)] as uPlot.AlignedData;
  }

  private colour(line: number): string {
    const { series } = this.spec;
    if (series.length > CROWD && this.focused !== line) return this.palette.rest;
    return this.palette.series[series[line].slot];
  }

  private build(size: { width: number; height: number }): void {
    this.u?.destroy();
    const lines = this.spec.series.length;
    const band = this.prepared!.band;
    const first = band ? 1 + 2 * lines : 1;
    this.u = new uPlot(
      {
        ...size,
        ms: 1,
        tzDate: shownDate,
        padding: [UNIT_HEIGHT, RIGHT, 0, 0],
        series: [{}, ...(band ? this.bandSeries(lines) : []), ...this.lineSeries(lines)],
        bands: this.bands(lines, band),
        scales: {
          x: { time: true, range: () => [this.from, this.to] },
          y: { range: (_u, low, high) => rangeOf(low, high, this.spec.top, isBinary(this.units)) },
        },
        axes: [this.timeAxis(), this.valueAxis()],
        legend: { show: false },
        focus: { alpha: 1 },
        cursor: this.cursor(first, lines),
        hooks: {
          setSelect: [(u) => this.onSelect(u)],
          setLegend: [(u) => this.events.onCursor(u.cursor.idx ?? null, this.focused)],
          setSeries: [(u, at) => this.onFocus(u, at, first)],
          draw: [(u) => this.drawUnit(u)],
        },
      },
      [[]] as unknown as uPlot.AlignedData,
      this.place,
    );
  }

  private lineSeries(lines: number): uPlot.Series[] {
    return this.spec.series.map((_series, n) => ({
      // Parts of a stack have no outline: it would hide the thin ones.
      width: this.spec.stack ? 0 : 1.5,
      stroke: () => this.colour(n),
      fill: this.spec.stack ? () => veil(this.colour(n), STACK_FILL) : lines === 1 ? () => veil(this.colour(n), 0.08) : undefined,
      points: this.spec.stack ? { show: false } : { show: (u: uPlot, _at: number, first: number, last: number) => last - first < u.over.clientWidth / 24, size: 4, stroke: () => this.colour(n), fill: () => this.colour(n) },
    }));
  }

  private bandSeries(lines: number): uPlot.Series[] {
    return Array.from({ length: 2 * lines }, () => ({ width: 0, points: { show: false } }));
  }

  private bands(lines: number, band: boolean): uPlot.Band[] {
    if (this.spec.stack) {
      return Array.from({ length: Math.max(0, lines - 1) }, (_, n) => ({ series: [n + 2, n + 1] as [number, number], fill: () => veil(this.colour(n + 1), STACK_FILL) }));
    }
    if (!band) return [];
    return Array.from({ length: lines }, (_, n) => ({ series: [1 + 2 * n, 2 + 2 * n] as [number, number], fill: () => veil(this.colour(n), 0.18) }));
  }

  private timeAxis(): uPlot.Axis {
    return {
      stroke: () => this.palette.muted,
      font: FONT,
      size: 24,
      gap: 4,
      space: 76,
      grid: { show: false },
      ticks: { stroke: () => this.palette.hair, width: 1, size: 4 },
      border: { show: true, stroke: () => this.palette.hair, width: 1 },
      values: (u, splits, _axis, _space, increment) => {
        // A label that would be cut off at the right is left out.
        const room = u.width - AXIS_WIDTH - RIGHT;
        const end = this.to - ((this.to - this.from) * (increment < 60_000 ? 22 : 12)) / room;
        return axisTimes(splits, increment).map((text, i) => (splits[i] > end ? null : text));
      },
    };
  }

  private valueAxis(): uPlot.Axis {
    const binary = isBinary(this.units);
    return {
      stroke: () => this.palette.muted,
      font: FONT,
      size: AXIS_WIDTH,
      gap: 6,
      grid: { stroke: () => this.palette.hair, width: 1 },
      ticks: { show: false },
      splits: (u, _axis, low, high) => ticksBetween(low, high, u.height > 240 ? 6 : u.height < 130 ? 2 : 4, binary),
      values: (_u, splits) => {
        this.scale = scaleFor(Math.max(...splits.map(Math.abs), 0), this.units);
        const mirrored = this.spec.series.some((series) => series.mirror);
        return splits.map((split) => digits((mirrored ? Math.abs(split) : split) / this.scale.factor, 4));
      },
    };
  }

  private cursor(first: number, lines: number): uPlot.Cursor {
    return {
      y: false,
      drag: { x: true, y: false, setScale: false, dist: 6 },
      sync: { key: 'tidemark', scales: ['x', null], setSeries: false, filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
      focus: { prox: lines > CROWD ? 24 : -1 },
      bind: { dblclick: () => () => (this.events.onBack(), null) },
      points: {
        size: 6,
        width: 0,
        // Band edges, parts of a stack and grey lines have no dot under the crosshair.
        show: (u, at) => {
          const dot = document.createElement('div');
          if (at < first || lines > CROWD || this.spec.stack) dot.className = 'no-dot';
          else dot.style.background = typeof u.series[at].stroke === 'function' ? this.colour(at - first) : '';
          return dot;
        },
      },
    };
  }

  private onFocus(u: uPlot, at: number | null, first: number): void {
    const next = at === null || at < first ? null : at - first;
    if (next === this.focused || this.spec.series.length <= CROWD) return;
    this.focused = next;
    this.events.onCursor(u.cursor.idx ?? null, next);
    u.redraw(false, false);
  }

  private onSelect(u: uPlot): void {
    if (u.select.width < 6) return;
    const from = u.posToVal(u.select.left, 'x');
    const to = u.posToVal(u.select.left + u.select.width, 'x');
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.events.onZoom(from, to);
  }

  private drawUnit(u: uPlot): void {
    if (this.scale.unit === '') return;
    const ratio = uPlot.pxRatio;
    u.ctx.save();
    u.ctx.fillStyle = this.palette.muted;
    u.ctx.font = FONT.replace('11px', `${11 * ratio}px`);
    u.ctx.textAlign = 'right';
    u.ctx.textBaseline = 'top';
    const width = u.ctx.measureText(this.scale.unit).width;
    const right = (AXIS_WIDTH - 6) * ratio;
    if (width > right) u.ctx.textAlign = 'left';
    u.ctx.fillText(this.scale.unit, width > right ? 0 : right, 0);
    u.ctx.restore();
  }
}
