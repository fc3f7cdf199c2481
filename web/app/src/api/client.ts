// Calls of the REST API and of the Prometheus API. A failed call becomes an ApiError that says what failed and why.

import { me } from '../state/me.ts';
import type { ChartAnswer, Host, HourPoint, Item, Overview, Problem, ProblemDetail, ProblemsUpdate, Reading, SearchResult, Trigger } from './types.ts';

/** A call that did not give its answer. what names it in words, detail is the reason. */
export class ApiError extends Error {
  constructor(
    readonly what: string,
    readonly detail: string,
    readonly status: number,
  ) {
    super(`${what}: ${detail}`);
  }
}

/** After so long what failed by itself is tried again by itself. */
export const AGAIN_MS = 15_000;

/** passes tells whether a failure may be over later without anybody changing what was asked. */
export const passes = (error: unknown): boolean => error instanceof ApiError && (error.status === 0 || error.status >= 500);

type Query = Record<string, string | number | boolean | null | undefined>;

const TIMEOUT_MS = 30_000;

/** get calls path and reads JSON. what completes the sentence "could not load …". */
export async function get<T>(what: string, path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') params.set(name, String(value));
  }
  const text = params.toString();
  return call<T>(what, text === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${text}`, signal);
}

/** send calls path with a method that changes something. what completes the sentence "could not …". */
export async function send<T>(what: string, method: string, path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { accept: 'application/json', 'content-type': 'application/json' };
  }
  return call<T>(what, path, undefined, init);
}

/** sendText is send with a body that is sent as it is. */
export const sendText = <T>(what: string, path: string, text: string): Promise<T> =>
  call<T>(what, path, undefined, { method: 'POST', body: text, headers: { accept: 'application/json', 'content-type': 'application/yaml' } });

async function call<T>(what: string, url: string, signal?: AbortSignal, init: RequestInit = {}): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response: Response;
  try {
    response = await fetch(url, {
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      headers: { accept: 'application/json' },
      ...init,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    if (timeout.aborted) throw new ApiError(what, `no answer within ${TIMEOUT_MS / 1000} s`, 0);
    throw new ApiError(what, 'the server cannot be reached', 0);
  }
  const body = await readBody(response);
  // The session is over: the page asks to sign in again and then shows the same view.
  if (response.status === 401) me.set(null);
  if (!response.ok) throw new ApiError(what, reason(body, response), response.status);
  if (body === undefined) throw new ApiError(what, 'the answer is not JSON', response.status);
  return body as T;
}

async function readBody(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

// Tidemark answers {"error":{"message"}}, the Prometheus API {"status":"error","error":"…"}.
function reason(body: unknown, response: Response): string {
  const error = (body as { error?: unknown } | undefined)?.error;
  if (typeof error === 'string') return error;
  const message = (error as { message?: unknown } | undefined)?.message;
  if (typeof message === 'string') return message;
  return `the server answered ${response.status} ${response.statusText}`.trim();
}

export const getHour = (signal?: AbortSignal): Promise<{ points: HourPoint[] }> => get('the numbers of the last hour', '/api/overview/hour', {}, signal);

export const getOverview = (signal?: AbortSignal): Promise<Overview> => get('the overview', '/api/overview', {}, signal);

export const getHosts = (query: Query, signal?: AbortSignal): Promise<{ hosts: Host[]; total: number; next?: string }> =>
  get('the hosts', '/api/hosts', query, signal);

export const getHost = (id: string, signal?: AbortSignal): Promise<Host> =>
  get(`host ${id}`, `/api/hosts/${encodeURIComponent(id)}`, {}, signal);

export const getItems = (query: Query, signal?: AbortSignal): Promise<{ items: Item[]; total: number; next?: string }> =>
  get('the items', '/api/items', query, signal);

export const getItem = (id: string, signal?: AbortSignal): Promise<Item> =>
  get(`item ${id}`, `/api/items/${encodeURIComponent(id)}`, {}, signal);

export const getValues = (query: Query, signal?: AbortSignal): Promise<{ item: Item; values: Reading[]; next?: string }> =>
  get('the values', '/api/values', query, signal);

export const getProblems = (query: Query, signal?: AbortSignal): Promise<{ problems: Problem[]; total: number; next?: string }> =>
  get('the problems', '/api/problems', query, signal);

export const getProblem = (id: string, signal?: AbortSignal): Promise<ProblemDetail> => get('the problem', `/api/problems/${encodeURIComponent(id)}`, {}, signal);

export const updateProblems = (update: ProblemsUpdate): Promise<{ event_ids: string[] }> => send('change the problem', 'POST', '/api/problem-updates', update);

export const getTriggers = (query: Query, signal?: AbortSignal): Promise<{ triggers: Trigger[]; total: number }> =>
  get('the triggers', '/api/triggers', query, signal);

export const getSearch = (q: string, signal?: AbortSignal): Promise<{ results: SearchResult[] }> =>
  get('the search results', '/api/search', { q, limit: 20 }, signal);

export const getChart = (items: string[], from: number, to: number, points: number, signal?: AbortSignal): Promise<ChartAnswer> =>
  get('the chart', '/api/chart', { items: items.join(','), from: Math.floor(from), to: Math.ceil(to), points }, signal);

/** One series of a Prometheus answer; values are [seconds, text]. */
export interface PromSeries {
  metric: Record<string, string>;
  values?: [number, string][];
  value?: [number, string];
}

/** What /api/v1/query and query_range answer. */
export interface PromAnswer {
  status: string;
  data: { resultType: 'matrix' | 'vector' | 'scalar' | 'string'; result: PromSeries[] | [number, string] };
  warnings?: string[];
  infos?: string[];
}

/** What is known of a metric. */
export interface Metric {
  type: string;
  help: string;
  unit: string;
}

/** queryRange asks for at most limit series; all without one. */
export const queryRange = (query: string, from: number, to: number, step: number, signal?: AbortSignal, limit?: number): Promise<PromAnswer> =>
  get('the query', '/api/v1/query_range', { query, start: from / 1000, end: to / 1000, step: step / 1000, limit }, signal);

/** getMetric reads what is known of a metric, which may be nothing. */
export const getMetric = async (name: string, signal?: AbortSignal): Promise<Metric | undefined> =>
  (await get<{ data: Record<string, Metric[]> }>('the unit', '/api/v1/metadata', { metric: name }, signal)).data[name]?.[0];

export const queryInstant = (query: string, at: number, signal?: AbortSignal): Promise<PromAnswer> =>
  get('the query', '/api/v1/query', { query, time: at / 1000 }, signal);

export const getMetricNames = (signal?: AbortSignal): Promise<{ data: string[] }> =>
  get('the metric names', '/api/v1/label/__name__/values', {}, signal);

/** getMetrics reads the server's own figures in the Prometheus text form. */
export async function getMetrics(signal?: AbortSignal): Promise<string> {
  let response: Response;
  try {
    response = await fetch('/metrics', { signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("the server's own figures", 'the server cannot be reached', 0);
  }
  if (response.status === 401) me.set(null);
  if (!response.ok) throw new ApiError("the server's own figures", reason(await readBody(response), response), response.status);
  return response.text();
}
