// The answer of a PromQL query as a chart like all others, and the names of its series.

import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { PromAnswer, PromSeries } from '../api/client.ts';
import { parseNumber } from '../item/reading.ts';
import type { ChartSpec } from '../item/sections.ts';
import { type TimeWindow, windowNow } from '../state/window.ts';
import { Board, Panel } from './board.ts';
import { Buffer } from './buffer.ts';
import { Chart } from './chart.tsx';
import { assignSlots } from './colour.ts';

/** An answer with what it was asked for. */
export interface Result {
  window: TimeWindow;
  step: number;
}

/** seriesOf are the series of an answer; none for scalars and strings. */
export function seriesOf(answer: PromAnswer): PromSeries[] {
  const { result } = answer.data;
  return Array.isArray(result[0]) || typeof result[0] === 'number' ? [] : (result as PromSeries[]);
}

export { lastOf, nameOf, shortNames } from '../explore/names.ts';

// An answer is drawn by the same chart as everything else; its board gets the data instead of reading it.
class AnswerBoard extends Board {
  result: Result | null = null;
  series: PromSeries[] = [];
  private shown: Panel | null = null;

  override show(panel: Panel, visible: boolean): void {
    panel.visible = visible;
    this.shown = panel;
    if (visible) this.fill();
  }

  override window(): TimeWindow {
    return this.result?.window ?? windowNow();
  }

  fill(): void {
    const panel = this.shown;
    if (panel === null || this.result === null) return;
    const { step } = this.result;
    panel.buffers = panel.spec.series.map((_spec, n) => bufferOf(this.series[n], step));
    panel.loadedFor = 'answer';
    panel.status = 'ready';
    panel.onStatus();
    panel.onDraw();
  }
}

// A step without a value is a gap: PromQL already looked back as far as a value counts.
function bufferOf(series: PromSeries | undefined, step: number): Buffer {
  const buffer = new Buffer(null, 0, 0);
  let before = -Infinity;
  for (const [seconds, text] of series?.values ?? []) {
    const at = Math.round(seconds * 1000);
    if (at - before > step * 1.5 && before > -Infinity) {
      buffer.at.push(before + step);
      buffer.avg.push(null);
    }
    buffer.at.push(at);
    buffer.avg.push(parseNumber(text));
    before = at;
  }
  return buffer;
}

interface ChartProps {
  id: string;
  title: string;
  series: PromSeries[];
  names: string[];
  result: Result;
  height: number;
  units?: string;
  stack?: boolean;
}

/** PromChart draws the series of a range query. */
export function PromChart({ id, title, series, names, result, height, units = '', stack = false }: ChartProps) {
  const board = useRef<AnswerBoard | null>(null);
  board.current ??= new AnswerBoard();
  const spec = useMemo<ChartSpec>(() => {
    const slots = assignSlots(names);
    return {
      id,
      title,
      units,
      stack,
      series: names.map((name, n) => ({ sources: [{ item: String(n), interval: 0 }], name, slot: slots.get(name) ?? 0, mirror: false })),
    };
  }, [names.join('\n'), id, title, units, stack]);
  board.current.series = series;
  board.current.result = result;
  useEffect(() => board.current!.fill(), [result, spec]);
  return <Chart board={board.current} spec={spec} section={id} height={height} />;
}
