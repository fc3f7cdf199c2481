// What a view of requests shows, as the address says it.

import type { Filter, Span } from '../api/mongo.ts';
import { setParams } from '../state/route.ts';

export const GROUPS: [string, string][] = [
  ['shape', 'shape'],
  ['collection', 'collection'],
  ['command', 'command'],
  ['application', 'application'],
  ['client', 'client address'],
];

/** How far before the range lies the one it is compared with; "before" is directly before it. */
export const COMPARISONS: [string, string][] = [
  ['', 'nothing'],
  ['before', 'just before'],
  ['1h', 'an hour earlier'],
  ['1d', 'yesterday'],
  ['7d', 'a week earlier'],
];
const SHIFTS: Record<string, number> = { '1h': 3_600_000, '1d': 86_400_000, '7d': 604_800_000 };

export interface Choice extends Omit<Filter, 'instance'> {
  /** "" for the most loaded one. */
  instance: string;
  order: string;
  compare: string;
  /** The row that is open; "" for none. */
  open: string;
  /** The part of the range that the table is about; null for all of it. */
  pick: Span | null;
}

/** choiceOf reads the address; anything odd is as if it were not there. */
export function choiceOf(params: URLSearchParams): Choice {
  const known = (name: string, list: [string, string][]): string => {
    const value = params.get(name) ?? '';
    return list.some(([id]) => id === value) ? value : list[0][0];
  };
  const some = (name: string): string | undefined => params.get(name) ?? undefined;
  return {
    instance: params.get('instance') ?? '',
    group_by: known('group', GROUPS),
    search: params.get('search') ?? '',
    // "-" is "no collection": an empty parameter would be taken out of the address.
    db: some('db'),
    collection: some('collection') === '-' ? '' : some('collection'),
    command: some('command'),
    order: params.get('order') ?? 'load',
    compare: known('compare', COMPARISONS),
    open: params.get('shape') ?? '',
    pick: pickOf(params.get('pick')),
  };
}

function pickOf(text: string | null): Span | null {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(text ?? '');
  if (match === null || Number(match[2]) <= Number(match[1])) return null;
  return { from: Number(match[1]), to: Number(match[2]) };
}

/** pick narrows the table to a part of the range; null takes that back. */
export function pick(span: Span | null): void {
  setParams({ pick: span === null ? '' : `${Math.floor(span.from)}-${Math.ceil(span.to)}` }, false);
}

/** earlier is the range that a range is compared with. */
export function earlier(span: Span, compare: string): Span {
  const back = SHIFTS[compare] ?? span.to - span.from;
  return { from: span.from - back, to: span.to - back };
}
