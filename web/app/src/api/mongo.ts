// The part of the REST API that tells of MongoDB requests (docs/design/0002-rest.md).

import { get } from './client.ts';

/** Totals over a range. load is time spent per second: 1 is one request at every moment. Latencies are in seconds. */
export interface Sums {
  requests: number;
  errors: number;
  bytes_in: number;
  bytes_out: number;
  docs: number;
  seconds: number;
  load: number;
  rate: number;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  max: number | null;
}

export interface Instance {
  id: string;
  host_id: string;
  host: string;
  host_name: string;
  address: string;
}

export interface InstanceTotal extends Instance {
  watched_ms: number;
  total: Sums;
  loads: number[];
}

export interface Names {
  id: string;
  db?: string;
  collection?: string;
  command?: string;
  shape?: string;
  application?: string;
  client?: string;
  rest?: boolean;
}

export interface Totals {
  from: number;
  to: number;
  watched_ms: number;
  total: Sums;
}

export interface RankRow extends Names {
  sums: Sums;
  loads: number[];
}

export interface Ranking extends Totals {
  instance: Instance;
  group_by: string;
  order: string;
  rows: RankRow[];
  found: number;
}

type Column = (number | null)[];

/** How the server said it answers a shape. An empty summary says that it did not tell; notes say why. */
export interface Plan {
  at: number;
  changed_at?: number;
  before?: string;
  summary: string;
  stages: string[];
  scans: boolean;
  sorts: boolean;
  used: string[];
  rejected: number;
  trial: { documents: number; keys: number; returned: number; examined_per_returned: number | null } | null;
  indexes: { name: string; key: string; uses?: number }[];
  indexes_known: boolean;
  hints: { key: string; why: string }[];
  notes: string[];
}

export interface Profile extends Names, Totals {
  instance: Instance;
  step_ms: number;
  at: number[];
  load: Column;
  rate: Column;
  errors: Column;
  bytes_in: Column;
  bytes_out: Column;
  docs: Column;
  p50: Column;
  p95: Column;
  p99: Column;
  max: Column;
  /** bounds are the lower ends of the rows in seconds and the upper end of the last; a cell is column, row, requests. */
  heat: { bounds: number[]; cells: [number, number, number][] };
  plan: Plan | null;
  /** The errors by number, what came most first. */
  codes: { code: string; name?: string; count: number }[];
}

export type Verdict = 'new' | 'slower' | 'more' | 'same' | 'less' | 'faster' | 'gone';

export interface Change extends Names {
  before: Sums;
  after: Sums;
  verdict: Verdict;
  load_change: number;
}

export interface Comparison {
  instance: Instance;
  group_by: string;
  before: Totals;
  after: Totals;
  rows: Change[];
  found: number;
}

export interface Span {
  from: number;
  to: number;
}

/** What narrows and arranges a table of requests. Undefined does not filter; an empty text is a filter too. */
export interface Filter {
  instance: string;
  group_by: string;
  search: string;
  db?: string;
  collection?: string;
  command?: string;
}

const whole = ({ from, to }: Span): { from: number; to: number } => ({ from: Math.floor(from), to: Math.ceil(to) });

// get leaves out empty parameters, but "no collection" is one.
function narrowed(path: string, { db, collection, command }: Filter): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries({ db, collection, command })) if (value !== undefined) params.set(name, value);
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

export const getInstances = (span: Span, signal?: AbortSignal): Promise<{ instances: InstanceTotal[]; total: number }> =>
  get('the MongoDB instances', '/api/mongo/instances', whole(span), signal);

export const getRanking = (filter: Filter, order: string, span: Span, limit: number, signal?: AbortSignal): Promise<Ranking> =>
  get('the requests', narrowed('/api/mongo/requests', filter), { instance: filter.instance, group_by: filter.group_by, search: filter.search, order, limit, ...whole(span) }, signal);

export const getProfile = (instance: string, id: string, span: Span, points: number, signal?: AbortSignal): Promise<Profile> =>
  get('the requests over time', `/api/mongo/requests/${encodeURIComponent(id)}`, { instance, points, ...whole(span) }, signal);

export const getComparison = (filter: Filter, span: Span, before: Span, limit: number, signal?: AbortSignal): Promise<Comparison> => {
  const { from: before_from, to: before_to } = whole(before);
  return get('the comparison', narrowed('/api/mongo/compare', filter), { instance: filter.instance, group_by: filter.group_by, search: filter.search, limit, ...whole(span), before_from, before_to }, signal);
};
