// Calls about alerting: what is configured, what was sent, maintenances.

import { get, send, sendText } from './client.ts';
import type { Severity } from './types.ts';

export interface Alert {
  id: string;
  action: string;
  kind: string;
  problem_id: string;
  severity: Severity;
  host: string;
  name: string;
  step?: number;
  receiver: string;
  media: string;
  to: string;
  subject: string;
  state: 'waiting' | 'sent' | 'failed';
  attempts: number;
  created_at: number;
  sent_at?: number;
  error?: string;
}

export interface Media {
  name: string;
  disabled?: boolean;
  mail?: { server: string; from: string; security?: string; user?: string; html?: boolean };
  webhook?: { url: string; method?: string; headers?: Record<string, string>; body?: unknown; allow?: string[] };
  script?: { name: string; arguments?: string[] };
  command?: { line: string };
  zabbix_webhook?: { script: string; parameters?: Record<string, string>; tags?: boolean; allow?: string[] };
  ticket?: boolean;
  secrets?: Record<string, string>;
  group_wait?: string;
  group_interval?: string;
  timeout?: string;
  attempts?: number;
  sessions?: number;
}

/** Way is one way to reach a receiver. */
export interface Way {
  media: string;
  to: string;
  severities?: Severity[];
  when?: string;
  disabled?: boolean;
}

export interface Receiver {
  name: string;
  media: Way[];
}

export interface Operation {
  from?: number;
  to?: number;
  duration?: string;
  if?: string;
  receivers?: string[];
  media?: string[];
  involved?: boolean;
}

export interface Condition {
  label?: string;
  type: string;
  operator?: string;
  value?: string;
  tag?: string;
}

export interface Action {
  name: string;
  disabled?: boolean;
  conditions?: Condition[];
  evaluation?: string;
  formula?: string;
  delay?: string;
  step_duration?: string;
  operations: Operation[] | null;
  recovery: Operation[] | null;
  update?: Operation[];
  stop_when_acknowledged?: boolean;
  send_suppressed?: boolean;
  flapping?: { off?: boolean; changes?: number; within?: string };
}

export interface Period {
  every: string;
  /** Local time of the server: 2026-01-31T22:00. */
  start?: string;
  at?: string;
  for: string;
  interval?: number;
  days?: string[];
  months?: number[];
  day_of_month?: number;
  weeks?: number[];
}

export interface Maintenance {
  name: string;
  from?: string;
  to?: string;
  no_data?: boolean;
  hosts?: string[];
  groups?: string[];
  tags?: { tag: string; value?: string }[];
  periods: Period[];
}

export interface Alerting {
  url?: string;
  media?: Media[];
  receivers?: Receiver[];
  actions?: Action[];
  maintenances?: Maintenance[];
  heartbeat?: { url: string; every?: string };
}

export type AlertingKind = 'media' | 'receiver' | 'action' | 'maintenance';

export const getAlerts = (query: Record<string, string | number>, signal?: AbortSignal): Promise<{ alerts: Alert[]; next?: string }> =>
  get('the messages', '/api/alerts', query, signal);

export const getAlerting = (signal?: AbortSignal): Promise<Alerting> => get('the settings of alerting', '/api/alerting', {}, signal);

/** putAlerting puts objects over those of the same name. */
export const putAlerting = (change: Partial<Alerting>): Promise<unknown> => send('save the settings of alerting', 'PUT', '/api/alerting', change);

export const deleteAlerting = (kind: AlertingKind, name: string): Promise<unknown> =>
  send(`delete the ${kind}`, 'DELETE', `/api/alerting/${kind}/${encodeURIComponent(name)}`);

/** importMedia takes media types from an export of Zabbix, YAML or JSON; the remarks say what was not taken. */
export const importMedia = (text: string): Promise<{ remarks: string[] }> => sendText('import the media types', '/api/alerting/import', text);

export const testAlert = (media: string, to: string): Promise<{ sent: boolean; answer?: string; error?: string }> =>
  send('send the test message', 'POST', '/api/alerting/test', { media, to });

/** Whether alerts are sent; reason says why they cannot be from here. */
export interface AlertPause {
  paused: boolean;
  reason?: string;
}

export const getAlertPause = (signal?: AbortSignal): Promise<AlertPause> => get('whether alerts are sent', '/api/alerting/paused', {}, signal);

export const putAlertPause = (paused: boolean): Promise<AlertPause> => send(paused ? 'pause alerts' : 'resume alerts', 'PUT', '/api/alerting/paused', { paused });
