// The legend of a chart shows the values under the crosshair, or the newest ones. It is written directly, without
// rendering, because it changes with every move of the pointer.

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatValue } from '../format/number.ts';
import type { ChartSpec } from '../item/sections.ts';
import { clockTime } from '../time/clock.ts';
import { CROWD } from './plot.ts';
import type { Prepared } from './prepare.ts';

export interface LegendHandle {
  show(prepared: Prepared | null, units: string, index: number | null, focused: number | null): void;
}

interface Props {
  handle: RefObject<LegendHandle | null>;
  spec: ChartSpec;
  figure: boolean;
}

export function Legend({ handle, spec, figure }: Props) {
  const values = useRef<(HTMLElement | null)[]>([]);
  const when = useRef<HTMLTimeElement>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const crowded = spec.series.length > CROWD;
  const last = useRef<Parameters<LegendHandle['show']> | null>(null);

  useEffect(() => {
    handle.current = {
      show(prepared, units, index, nearest) {
        last.current = [prepared, units, index, nearest];
        if (crowded) setFocused(nearest);
        spec.series.forEach((_series, n) => {
          const element = values.current[n];
          if (element === null || element === undefined || prepared === null) return;
          const column = prepared.lines[n]?.values ?? [];
          element.textContent = formatValue(index === null ? newest(column) : near(column, index), units);
        });
        if (when.current !== null) when.current.textContent = index === null || prepared === null ? '' : clockTime(prepared.at[index] ?? 0);
      },
    };
    return () => {
      handle.current = null;
    };
  }, [spec]);
  // The line that was just named has an empty value until it is written.
  useEffect(() => {
    if (last.current !== null) handle.current?.show(...last.current);
  }, [focused]);

  const shown = crowded ? (focused === null ? [] : [focused]) : spec.series.map((_series, n) => n);
  return (
    <span class={figure ? 'legend figure' : 'legend'}>
      {crowded && focused === null && <span class="muted">{spec.series.length} lines, hover to name one</span>}
      {shown.map((n) => (
        <span class="legend-entry" key={n}>
          {spec.series.length > 1 && <i class={`swatch series-${spec.series[n].slot}`} />}
          {spec.series.length > 1 && <span class="legend-name">{spec.series[n].name}</span>}
          <b ref={(element) => void (values.current[n] = element)} />
        </span>
      ))}
      <time class="legend-time" ref={when} />
    </span>
  );
}

// newest is the last value of a column, looking back a little: lines of one chart do not end at the same instant.
function newest(column: (number | null | undefined)[]): number | null {
  for (let i = column.length - 1; i >= Math.max(0, column.length - 8); i--) {
    const value = column[i];
    if (value !== undefined && value !== null) return value;
  }
  return null;
}

// near is the value at a column or, where the line only has no value at this very instant, the one before.
function near(column: (number | null | undefined)[], index: number): number | null {
  for (let i = index; i >= Math.max(0, index - 8); i--) {
    const value = column[i];
    if (value !== undefined) return value;
  }
  return null;
}
