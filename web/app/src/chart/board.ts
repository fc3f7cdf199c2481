// A board holds the charts of one view: it knows which of them are on the screen, reads their data in few calls, adds
// live values, and tells each chart when to draw.

import { AGAIN_MS, ApiError, getChart, passes } from '../api/client.ts';
import type { LiveValue } from '../api/types.ts';
import type { ChartSpec, Source } from '../item/sections.ts';
import { parseNumber } from '../item/reading.ts';
import { groupBy } from '../part/group.ts';
import { live, missed, serverNow } from '../state/live.ts';
import { type TimeWindow, windowKey, windowNow } from '../state/window.ts';
import { Buffer } from './buffer.ts';

export type Status = 'waiting' | 'loading' | 'ready' | 'error';

/** What the board knows of one chart. */
export class Panel {
  status: Status = 'waiting';
  error: ApiError | null = null;
  buffers: Buffer[] = [];
  visible = false;
  width = 600;
  /** The window that buffers were read for; "" before the first answer. */
  loadedFor = '';
  /** Unit as the server gives it, which for counters is the rate's. */
  units: string;
  /** All items of the chart, in the order of buffers. */
  readonly sources: Source[];
  /** Draws; tick says that only time went on and some values came. */
  onDraw: (tick?: boolean) => void = () => {};
  onStatus: () => void = () => {};

  constructor(
    readonly spec: ChartSpec,
    readonly section: string,
  ) {
    this.units = spec.units;
    this.sources = spec.series.flatMap((series) => series.sources);
  }
}

const MAX_ITEMS_PER_CALL = 200;
const MAX_POINTS = 4_000;
const GATHER_MS = 12;
const DRAW_EVERY_MS = 200;
const TICK_MS = 1_000;

export class Board {
  private panels = new Set<Panel>();
  private waiting = new Set<Panel>();
  private gatherTimer = 0;
  private generation = 0;
  private abort = new AbortController();
  private lastDraw = 0;
  private drawTimer = 0;
  private againTimer = 0;
  private stops: (() => void)[] = [];

  /** counters are the ids of items whose live values are readings of a counter. */
  constructor(private counters: Set<string> = new Set()) {}

  start(): void {
    this.stops.push(
      windowKey.subscribe(() => this.reload()),
      missed.subscribe(() => this.reload()),
      live.listen((values) => this.onValues(values)),
    );
    const tick = window.setInterval(() => this.onTick(), TICK_MS);
    this.stops.push(() => clearInterval(tick));
  }

  stop(): void {
    for (const stop of this.stops) stop();
    this.stops = [];
    this.abort.abort();
    clearTimeout(this.gatherTimer);
    clearTimeout(this.drawTimer);
    clearTimeout(this.againTimer);
  }

  setCounters(counters: Set<string>): void {
    this.counters = counters;
  }

  add(panel: Panel): () => void {
    this.panels.add(panel);
    return () => {
      this.panels.delete(panel);
      this.waiting.delete(panel);
    };
  }

  /** show tells that a panel came into view or left it. */
  show(panel: Panel, visible: boolean): void {
    if (panel.visible === visible) return;
    panel.visible = visible;
    if (!visible) return;
    if (panel.loadedFor === this.key()) panel.onDraw();
    else this.request(panel);
  }

  /** retry reads a failed panel again, and all others of its section that failed. */
  retry(panel: Panel): void {
    for (const other of this.panels) {
      if (other.visible && (other === panel || other.status === 'error')) this.request(other);
    }
  }

  /** reload reads all panels on the screen again; they keep their picture meanwhile. */
  reload(): void {
    this.generation++;
    this.abort.abort();
    this.abort = new AbortController();
    for (const panel of this.panels) if (panel.visible) this.request(panel);
  }

  /** window is the time window to draw now. */
  window(): TimeWindow {
    return windowNow();
  }

  private key(): string {
    return `${this.generation} ${windowKey.value}`;
  }

  private request(panel: Panel): void {
    this.waiting.add(panel);
    setStatus(panel, 'loading');
    if (this.gatherTimer === 0) {
      this.gatherTimer = window.setTimeout(() => {
        this.gatherTimer = 0;
        this.gather();
      }, GATHER_MS);
    }
  }

  // gather makes one call per section and width, with at most 200 items each.
  private gather(): void {
    const groups = groupBy(this.waiting, (panel) => `${panel.section} ${Math.ceil(panel.width / 100)}`);
    this.waiting.clear();
    for (const group of groups.values()) for (const batch of batches(group)) void this.read(batch);
  }

  private async read(panels: Panel[]): Promise<void> {
    const key = this.key();
    const { from, to } = windowNow();
    const points = Math.min(MAX_POINTS, Math.max(...panels.map((panel) => Math.ceil(panel.width))));
    const items = [...new Set(panels.flatMap((panel) => panel.sources.map((source) => source.item)))];
    const signal = this.abort.signal;
    try {
      const answer = await getChart(items, from, to, points, signal);
      const byId = new Map(answer.series.map((series) => [series.id, series]));
      for (const panel of panels) {
        panel.buffers = panel.sources.map(({ item, interval }) => {
          const series = byId.get(item) ?? null;
          // Two panels may show the same item; each appends live values to columns of its own.
          return new Buffer(series === null ? null : copyColumns(series), answer.step_ms, interval);
        });
        panel.units = byId.get(panel.sources[0]?.item ?? '')?.units || panel.spec.units;
        panel.loadedFor = key;
        setStatus(panel, 'ready');
        panel.onDraw();
      }
    } catch (error) {
      if (signal.aborted) return;
      for (const panel of panels) {
        panel.error = error instanceof ApiError ? error : new ApiError('the chart', String(error), 0);
        setStatus(panel, 'error');
      }
      if (passes(error)) this.tryAgain();
    }
  }

  // tryAgain reads what failed once more after a while; a hidden tab waits on.
  private tryAgain(): void {
    if (this.againTimer !== 0) return;
    this.againTimer = window.setTimeout(() => {
      this.againTimer = 0;
      if (document.hidden) return this.tryAgain();
      for (const panel of this.panels) if (panel.visible && panel.status === 'error') this.request(panel);
    }, AGAIN_MS);
  }

  private onValues(values: LiveValue[]): void {
    if (!windowNow().live) return;
    const news = groupBy(values, ([item]) => item);
    for (const panel of this.panels) if (panel.loadedFor === this.key()) this.append(panel, news);
    this.drawSoon();
  }

  private append(panel: Panel, news: Map<string, LiveValue[]>): void {
    panel.sources.forEach(({ item }, n) => {
      for (const [, at, text] of news.get(item) ?? []) {
        if (this.counters.has(item)) {
          panel.buffers[n].pushCounter(at, text);
          continue;
        }
        const number = parseNumber(text);
        if (number !== null) panel.buffers[n].push(at, number);
      }
    });
  }

  private onTick(): void {
    if (document.hidden || !windowNow().live) return;
    const from = windowNow().from;
    for (const panel of this.panels) for (const buffer of panel.buffers) buffer.trim(from);
    if (serverNow() - this.lastDraw >= TICK_MS * 0.9) this.draw();
  }

  private drawSoon(): void {
    if (this.drawTimer !== 0) return;
    const wait = Math.max(0, DRAW_EVERY_MS - (serverNow() - this.lastDraw));
    this.drawTimer = window.setTimeout(() => this.draw(), wait);
  }

  private draw(): void {
    clearTimeout(this.drawTimer);
    this.drawTimer = 0;
    this.lastDraw = serverNow();
    for (const panel of this.panels) if (panel.visible && panel.loadedFor === this.key()) panel.onDraw(true);
  }
}

function copyColumns<T extends { at: number[]; avg: (number | null)[]; min?: (number | null)[]; max?: (number | null)[] }>(series: T): T {
  return { ...series, at: [...series.at], avg: [...series.avg], min: series.min && [...series.min], max: series.max && [...series.max] };
}

function setStatus(panel: Panel, status: Status): void {
  if (status !== 'error') panel.error = null;
  else if (panel.status === status) panel.status = 'waiting';
  if (panel.status === status) return;
  panel.status = status;
  panel.onStatus();
}

function batches(panels: Panel[]): Panel[][] {
  const all: Panel[][] = [];
  let batch: Panel[] = [];
  let items = 0;
  for (const panel of panels) {
    const count = panel.sources.length;
    if (batch.length > 0 && items + count > MAX_ITEMS_PER_CALL) {
      all.push(batch);
      batch = [];
      items = 0;
    }
    batch.push(panel);
    items += count;
  }
  if (batch.length > 0) all.push(batch);
  return all;
}
