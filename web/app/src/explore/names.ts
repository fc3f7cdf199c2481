// The names of series.

import type { PromSeries } from '../api/client.ts';

/** nameOf writes the labels of a series as PromQL does. */
export function nameOf(series: PromSeries): string {
  const { __name__: name = '', ...labels } = series.metric;
  const inner = Object.entries(labels)
    .map(([label, value]) => `${label}="${value}"`)
    .join(', ');
  return inner === '' ? name || 'value' : `${name}{${inner}}`;
}

/** shortNames leaves out the labels that are the same for all series. */
export function shortNames(series: PromSeries[]): string[] {
  const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))];
  const varied = labels.filter((label) => series.some((one) => one.metric[label] !== series[0].metric[label]));
  return series.map((one) => varied.map((label) => one.metric[label] ?? '').join(' ').trim() || nameOf(one));
}

/** lastOf is the newest value of a series. */
export function lastOf(series: PromSeries): [number, string] | null {
  return series.values?.[series.values.length - 1] ?? series.value ?? null;
}
