// The legend of a chart shows the values under the crosshair, or the newest ones. It is written directly, without
// rendering, because it changes with every move of the pointer.

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatPercent, formatValue } from '../format/number.ts';
import type { ChartSpec } from '../item/sections.ts';
import { CROWD } from './plot.ts';
import type { Prepared } from './prepare.ts';

/** What is under the crosshair; index null means that the newest values are shown. */
export interface Reading {
  prepared: Prepared | null;
  newest: (number | null)[];
  units: string;
  index: number | null;
  focused: number | null;
}

export interface LegendHandle {
  show(reading: Reading): void;
}

export function Legend({ handle, spec }: { handle: RefObject<LegendHandle | null>; spec: ChartSpec }) {
  const values = useRef<(HTMLElement | null)[]>([]);
  const [focused, setFocused] = useState<number | null>(null);
  const last = useRef<Reading | null>(null);
  const crowded = spec.series.length > CROWD;

  useEffect(() => {
    handle.current = {
      show(reading) {
        last.current = reading;
        if (crowded) setFocused(reading.focused);
        for (let n = 0; n < spec.series.length; n++) {
          const element = values.current[n];
          if (element) element.textContent = readAt(reading, n);
        }
      },
    };
    return () => {
      handle.current = null;
    };
  }, [spec]);
  // The line that was just named has an empty value until it is written.
  useEffect(() => {
    if (last.current !== null) handle.current?.show(last.current);
  }, [focused]);

  const shown = crowded ? (focused === null ? [] : [focused]) : spec.series.map((_series, n) => n);
  return (
    <div class="legend">
      {crowded && focused === null && <span>{spec.series.length} lines, hover to name one</span>}
      {shown.map((n) => (
        <span class="legend-entry" key={n}>
          <i class={`swatch series-${spec.series[n].slot}`} />
          <span class="legend-name">{spec.series[n].name}</span>
          <b ref={(element) => void (values.current[n] = element)} />
        </span>
      ))}
    </div>
  );
}

/** readAt is the value of a line as text. */
export function readAt({ prepared, newest, units, index }: Reading, line: number): string {
  const value = index === null ? newest[line] : near(prepared?.lines[line]?.values ?? [], index);
  return units === '%' ? formatPercent(value) : formatValue(value, units);
}

// A line may have no value at this very instant; the one before is meant then.
const LOOK_BACK = 8;

function near(column: (number | null | undefined)[], index: number): number | null {
  for (let i = index; i >= Math.max(0, index - LOOK_BACK); i--) {
    const value = column[i];
    if (value !== undefined) return value;
  }
  return null;
}
