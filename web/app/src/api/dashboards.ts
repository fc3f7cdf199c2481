// The part of the REST API that keeps dashboards (docs/design/0047-dashboards.md).

import { ApiError, get, send } from './client.ts';
import type { Item, Severity } from './types.ts';

export interface DashboardHead {
  id: string;
  name: string;
  everyone: boolean;
  /** The user whose it is; empty for nobody's. */
  owner: string;
  private: boolean;
  groups: string[];
  /** Whoever asks may change it. */
  editable: boolean;
  version: number;
  saved_at: number;
  saved_by: string;
  note: string;
}

export type VariableKind = 'host' | 'group' | 'label' | 'list';

export interface Variable {
  name: string;
  title?: string;
  kind: VariableKind;
  group?: string;
  label?: string;
  match?: string;
  values?: string[];
  default?: string;
}

/** An item by name: of a host or of the hosts of a group; * in the key stands for anything. */
export interface ItemRef {
  host?: string;
  group?: string;
  key: string;
  name?: string;
  mirror?: boolean;
}

export interface Query {
  expr: string;
  legend?: string;
}

export interface Threshold {
  value: number;
  severity: Severity;
}

export type WidgetKind = 'chart' | 'number' | 'table' | 'problems' | 'requests' | 'graph' | 'log' | 'timeline' | 'text';

export const WIDGET_KINDS: WidgetKind[] = ['chart', 'number', 'table', 'problems', 'requests', 'graph', 'log', 'timeline', 'text'];

export interface Widget {
  kind: WidgetKind;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  items?: ItemRef[];
  queries?: Query[];
  stack?: boolean;
  units?: string;
  thresholds?: Threshold[];
  host?: string;
  group?: string;
  severities?: Severity[];
  graph?: string;
  instance?: string;
  limit?: number;
  text?: string;
}

export interface Dashboard {
  name: string;
  description?: string;
  everyone?: boolean;
  owner?: string;
  private?: boolean;
  groups?: string[];
  range?: string;
  refresh_seconds?: number;
  variables?: Variable[];
  widgets: Widget[];
}

export interface SavedDashboard extends DashboardHead {
  newest: number;
  dashboard: Dashboard;
}

export interface PlanStep {
  name: string;
  what: 'create' | 'change' | 'unchanged' | 'delete';
  differences?: string[];
}

export const getDashboards = (signal?: AbortSignal): Promise<{ dashboards: DashboardHead[] }> => get('the dashboards', '/api/dashboards', {}, signal);

export const getDashboard = (id: string, version: string, signal?: AbortSignal): Promise<SavedDashboard> =>
  get('the dashboard', `/api/dashboards/${encodeURIComponent(id)}`, { version }, signal);

export const getVersions = (id: string, signal?: AbortSignal): Promise<{ dashboards: DashboardHead[] }> =>
  get('the versions', `/api/dashboards/${encodeURIComponent(id)}/versions`, {}, signal);

/** saveDashboard saves what was made from a version; id "" makes a new one. */
export const saveDashboard = (id: string, version: number, note: string, dashboard: Dashboard): Promise<DashboardHead> =>
  id === '' ? send('save the dashboard', 'POST', '/api/dashboards', { note, dashboard }) : send('save the dashboard', 'PUT', `/api/dashboards/${encodeURIComponent(id)}`, { version, note, dashboard });

export const deleteDashboard = (id: string): Promise<unknown> => send('delete the dashboard', 'DELETE', `/api/dashboards/${encodeURIComponent(id)}`);

/** planFile says what a file would change, applyFile changes it. */
export const planFile = (text: string): Promise<{ steps: PlanStep[] }> => sendFile('read the file', 'POST', '/api/dashboard-file/plan', text);
export const applyFile = (text: string): Promise<{ steps: PlanStep[] }> => sendFile('apply the file', 'PUT', '/api/dashboard-file', text);

async function sendFile<T>(what: string, method: string, path: string, text: string): Promise<T> {
  const response = await fetch(path, { method, body: text, headers: { 'content-type': 'application/yaml' } });
  const body = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined;
  if (!response.ok) throw new ApiError(what, body?.error?.message ?? `the server answered ${response.status}`, response.status);
  return body as T;
}

export interface TemplateGraph {
  name: string;
  stack: boolean;
  items: Item[];
}

export const getGraphs = (host: string, name: string, signal?: AbortSignal): Promise<{ graphs: TemplateGraph[]; left: number; empty: number }> =>
  get('the graphs', `/api/hosts/${encodeURIComponent(host)}/graphs`, { name }, signal);

/** A time in which an item had the same value. */
export interface State {
  from: number;
  to: number;
  value: string;
  mapped?: string;
  count: number;
}

export interface ItemStates {
  id: string;
  states: State[];
  truncated: boolean;
}

export const getStates = (items: string[], from: number, to: number, signal?: AbortSignal): Promise<{ from: number; to: number; items: ItemStates[] }> =>
  get('the states', '/api/states', { items: items.join(','), from: Math.floor(from), to: Math.ceil(to) }, signal);

export const getLabelValues = (label: string, match: string, signal?: AbortSignal): Promise<{ data: string[] }> =>
  get('the values of the label', `/api/v1/label/${encodeURIComponent(label)}/values`, match === '' ? {} : { 'match[]': match }, signal);
