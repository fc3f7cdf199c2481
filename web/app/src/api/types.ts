// What the REST API answers (docs/design/0002-rest.md). Times are Unix milliseconds, ids are decimal strings.

export type Severity = 'not classified' | 'information' | 'warning' | 'average' | 'high' | 'disaster';

export const SEVERITIES: Severity[] = ['disaster', 'high', 'average', 'warning', 'information', 'not classified'];

export interface Tag {
  tag: string;
  value: string;
}

export interface Value {
  t: 'float' | 'unsigned' | 'char' | 'text' | 'log' | 'binary';
  v: string;
  /** What the item's value map says of the value. */
  mapped?: string;
  /** How bad a line of a log is; only in lists of values. */
  level?: Level;
  encoding?: 'base64';
  log?: { at: number; severity: number; event_id: number; source: string };
}

export type Level = 'debug' | 'information' | 'warning' | 'error';

export interface Reading {
  at_ns: string;
  at: number;
  value: Value;
}

export interface Overview {
  hosts: { total: number; ok: number; problem: number; unknown: number };
  problems: Record<Severity, number>;
  oldest: Problem[];
  values_per_second: number;
  history_cache_used: number;
  store: { used_bytes: number; quota_bytes: number; from: number | null; to: number | null; retention_days: number | null };
  version: string;
  started_at: number;
  time: number;
  /** How far the server's local time is ahead of UTC. */
  utc_offset_seconds: number;
}

/** The numbers of the overview at a moment of the last hour. */
export interface HourPoint {
  at: number;
  values_per_second: number;
  used_bytes: number;
  retention_days: number | null;
}

export interface Host {
  id: string;
  host: string;
  name: string;
  enabled: boolean;
  groups: string[];
  templates: string[];
  tags: Tag[];
  problems: number;
  worst: Severity | '';
  items: number;
  last_seen: number | null;
  state: 'ok' | 'silent' | 'unknown';
  /** By what the host was last seen: its agent, or values that others bring. */
  seen_by: '' | 'agent' | 'values';
  /** The proxy that asks the host; missing for the server itself. */
  proxy?: string;
  metadata?: string;
  macros?: { macro: string; value: string }[];
}

export interface Item {
  id: string;
  host_id: string;
  host: string;
  key: string;
  name: string;
  value_type: string;
  units: string;
  kind: 'configured' | 'declared';
  labels: Record<string, string> | null;
  interval_ms: number;
  enabled: boolean;
  state: 'ok' | 'unsupported';
  error: string;
  last: Reading | null;
  previous: Reading | null;
  steps?: unknown[];
  description?: string;
  history_days?: number;
  trends_days?: number;
}

export interface Problem {
  event_id: string;
  trigger_id: string;
  host_id: string;
  host: string;
  host_name: string;
  name: string;
  severity: Severity;
  at: number;
  recovered_at: number | null;
  opdata: string;
  tags: Tag[];
  acknowledged: boolean;
  /** There while messages are held back: until null is until somebody ends it. */
  suppression?: { until: number | null; maintenance?: string };
  closable: boolean;
  value_now: string;
  /** links lead to where the problem is dealt with, such as a ticket. */
  links?: { name: string; url: string }[];
}

/** What is to be done to problems; what is left out stays as it is. */
export interface ProblemsUpdate {
  event_ids: string[];
  acknowledge?: boolean;
  message?: string;
  severity?: Severity;
  suppress?: boolean;
  suppress_until?: number;
  close?: boolean;
}

/** A problem and why it is there. */
export interface ProblemDetail {
  problem: Problem;
  expression: string;
  recovery_expression: string;
  items: Item[];
  marks: { at: number; author: string; done: string; message: string }[];
  earlier: { event_id: string; at: number; recovered_at: number | null }[];
}

export interface Trigger {
  id: string;
  host_id: string;
  host: string;
  name: string;
  severity: Severity;
  expression: string;
  recovery_expression: string;
  state: 'ok' | 'problem' | 'unknown';
  error: string;
  enabled: boolean;
  changed_at: number | null;
}

export interface ChartSeries {
  id: string;
  host: string;
  key: string;
  name: string;
  units: string;
  labels: Record<string, string> | null;
  value_type: string;
  source: 'history' | 'trends';
  at: number[];
  avg: (number | null)[];
  min?: (number | null)[];
  max?: (number | null)[];
}

export interface ChartAnswer {
  from: number;
  to: number;
  step_ms: number;
  series: ChartSeries[];
}

export interface SearchResult {
  kind: 'host' | 'request' | 'item' | 'trigger' | 'page';
  id: string;
  title: string;
  subtitle: string;
  url: string;
}

/** One live value: item id, time in milliseconds, the value as text. */
export type LiveValue = [item: string, at: number, value: string];

/** isNumeric tells whether an item's values can be drawn as a line. */
export function isNumeric(item: { value_type: string }): boolean {
  return item.value_type === 'float' || item.value_type === 'unsigned';
}
