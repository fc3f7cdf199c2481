// An answer as a file: one row for each instant and series.

import type { PromSeries } from '../api/client.ts';
import { nameOf } from './names.ts';

/** csvOf has a column for the time and one for each series. */
export function csvOf(series: PromSeries[]): string {
  const times = [...new Set(series.flatMap((one) => pointsOf(one).map(([at]) => at)))].sort((a, b) => a - b);
  const columns = series.map((one) => new Map(pointsOf(one)));
  const rows = times.map((at) => [new Date(at * 1000).toISOString(), ...columns.map((column) => column.get(at) ?? '')].join(','));
  return [['time', ...series.map((one) => quoted(nameOf(one)))].join(','), ...rows, ''].join('\r\n');
}

/** jsonOf has labels, and times in milliseconds with the values as they came. */
export function jsonOf(query: string, series: PromSeries[]): string {
  const list = series.map((one) => ({ labels: one.metric, values: pointsOf(one).map(([at, value]) => [Math.round(at * 1000), value]) }));
  return `${JSON.stringify({ query, series: list }, null, 1)}\n`;
}

const pointsOf = (series: PromSeries): [number, string][] => series.values ?? (series.value === undefined ? [] : [series.value]);

// A name may begin with what a spreadsheet takes for a formula.
const quoted = (text: string): string => `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replace(/"/g, '""')}"`;

/** save gives a text to the browser as a file. */
export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
