// The table view of a chart: the same numbers as text, newest first.

import { formatValue } from '../format/number.ts';
import type { ChartSpec } from '../item/sections.ts';
import { Icon } from '../part/icon.tsx';
import { dateTime } from '../time/clock.ts';
import type { Prepared } from './prepare.ts';

const MAX_ROWS = 500;

export function ChartTable({ spec, units, prepared }: { spec: ChartSpec; units: string; prepared: Prepared }) {
  const rows = prepared.at.map((_at, i) => i).slice(-MAX_ROWS).reverse();
  return (
    <div class="chart-table" tabIndex={0}>
      <table>
        <caption class="unseen">{spec.title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {spec.series.map((series, n) => (
              <th scope="col" class="number" key={n}>
                {series.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((i) => (
            <tr key={prepared.at[i]}>
              <td>{dateTime(prepared.at[i])}</td>
              {prepared.lines.map((line, n) => (
                <td class="number" key={n}>
                  {formatValue(line.values[i], units, 4)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** TableButton turns a chart into its table and back. */
export function TableButton({ on, set, picture = 'chart' }: { on: boolean; set: (on: boolean) => void; picture?: 'chart' | 'bars' }) {
  const words = on ? `Show the ${picture}` : 'Show as a table';
  return (
    <button class="quiet chart-button" type="button" aria-pressed={on} title={words} onClick={() => set(!on)}>
      <Icon name={on ? 'chart' : 'table'} />
      <span class="unseen">{words}</span>
    </button>
  );
}
