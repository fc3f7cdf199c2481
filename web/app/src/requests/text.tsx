// How numbers of requests are written, and the name of a row.

import type { Names, Sums } from '../api/mongo.ts';
import { digits, formatValue } from '../format/number.ts';

/** loadText writes a load as the share of one second per second: 1 is 100 %. */
export const loadText = (load: number): string => (load > 0 && load < 0.0001 ? '<0.01 %' : `${digits(load * 100, load >= 0.1 ? 3 : 2)} %`);

export const latencyText = (seconds: number | null): string => formatValue(seconds, 's', 2);

export const rateText = (perSecond: number): string => (perSecond > 0 && perSecond < 0.001 ? '<0.001/s' : `${digits(perSecond, perSecond >= 100 ? 4 : 2)}/s`);

/** errorText writes the share of the requests that failed; a dash for none. */
export function errorText({ requests, errors }: Pick<Sums, 'requests' | 'errors'>): string {
  if (errors === 0) return '–';
  const share = requests === 0 ? 1 : errors / requests;
  return share < 0.0001 ? '<0.01 %' : `${digits(share * 100, share >= 0.1 ? 3 : 2)} %`;
}

export const bytesText = (bytes: number, seconds: number): string => (seconds > 0 ? formatValue(bytes / seconds, 'B/s', 2) : '–');

/** titleOf is the name of a row in one line. */
export function titleOf(row: Names): string {
  if (row.rest) return 'all others';
  if (row.shape !== undefined) return `${namespaceOf(row)} ${row.shape}`;
  return row.id === '' ? 'no name given' : row.id;
}

export function namespaceOf({ db, collection }: Names): string {
  return collection ? `${db ?? ''}.${collection}` : (db ?? '');
}

/** RowName is the name of a row: the collection first, then the shape with its command set apart. */
export function RowName({ row }: { row: Names }) {
  if (row.shape === undefined) return <span class={row.rest || row.id === '' ? 'muted' : ''}>{titleOf(row)}</span>;
  const rest = row.shape.startsWith(row.command ?? ' ') ? row.shape.slice(row.command!.length) : ` ${row.shape}`;
  return (
    <span class="shape-name">
      <span class="shape-namespace">{namespaceOf(row)}</span> <b>{row.command}</b>
      <code>{rest}</code>
    </span>
  );
}
