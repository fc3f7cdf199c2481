// Calls about network discovery: rules, how they go, and what they found; and about the web scenarios of a host.

import { get, send } from './client.ts';

export interface NetCheck {
  name?: string;
  type: string;
  ports?: string;
  key?: string;
  snmp?: Record<string, string>;
  timeout?: string;
}

export interface NetRule {
  name: string;
  disabled?: boolean;
  /** The proxy that looks; empty or missing for the server itself. */
  proxy?: string;
  ranges: string;
  delay?: string;
  checks: NetCheck[];
  unique?: string;
  host_name?: string;
  visible_name?: string;
  at_once?: number;
  forget?: string;
}

export interface NetCondition {
  field: string;
  operator?: string;
  value?: string;
}

export interface NetInterface {
  type: string;
  port?: string;
  use_dns?: boolean;
  snmp?: Record<string, string>;
}

export interface NetOperation {
  type: string;
  group?: string;
  template?: string;
  mode?: string;
  tag?: string;
  value?: string;
  interface?: NetInterface;
  identity?: string;
  psk?: string;
}

export interface NetAction {
  name: string;
  disabled?: boolean;
  event: string;
  /** and_or, and, or, or a formula over A, B, …; missing for and_or. */
  evaluation?: string;
  conditions?: NetCondition[] | null;
  operations?: NetOperation[] | null;
}

export interface NetStatus {
  rule: string;
  disabled?: boolean;
  proxy?: string;
  running: boolean;
  addresses: number;
  done: number;
  hosts: number;
  up: number;
  /** Unix seconds. */
  last_at?: number;
  last_seconds?: number;
  error?: string;
}

export interface NetHost {
  ident: string;
  host_id?: string;
  host?: string;
  up: boolean;
  /** Unix seconds. */
  changed_at: number;
  services: { ip: string; check: string; port?: number; up: boolean; changed_at: number; value?: string }[] | null;
}

export const getNetwork = (signal?: AbortSignal): Promise<{ rules: NetRule[] | null; actions: NetAction[] | null }> => get('the rules of network discovery', '/api/network-discovery', {}, signal);

export const getNetStatus = (signal?: AbortSignal): Promise<{ rules: NetStatus[] | null }> => get('how network discovery goes', '/api/network-discovery/status', {}, signal);

export const getNetHosts = (rule: string, signal?: AbortSignal): Promise<{ hosts: NetHost[]; more?: number }> => get(`what ${rule} found`, '/api/network-discovery/hosts', { rule }, signal);

export const putNetRule = (rule: NetRule): Promise<unknown> => send('save the rule', 'PUT', '/api/network-discovery', { rules: [rule] });

export const deleteNetRule = (name: string): Promise<unknown> => send('delete the rule', 'DELETE', `/api/network-discovery/rule/${encodeURIComponent(name)}`);

export const putNetAction = (action: NetAction): Promise<unknown> => send('save the action', 'PUT', '/api/network-discovery', { actions: [action] });

export const deleteNetAction = (name: string): Promise<unknown> => send('delete the action', 'DELETE', `/api/network-discovery/action/${encodeURIComponent(name)}`);

/** A proxy and how it is doing; times are Unix milliseconds, 0 for never since the server's start. */
export interface Proxy {
  id: string;
  name: string;
  hosts: number;
  version?: string;
  address?: string;
  /** Where the server asks a passive one; missing for one that connects by itself. */
  ask_at?: string;
  failure?: string;
  seen_at: number;
  backlog: boolean;
}

export const getProxies = (signal?: AbortSignal): Promise<{ proxies: Proxy[] }> => get('the proxies', '/api/proxies', {}, signal);

export const scanNow = (rule: string): Promise<unknown> => send('look now', 'POST', '/api/network-discovery/scan', { rule });

export interface Scenario {
  name: string;
  enabled: boolean;
  delay: string;
  attempts: number;
  /** Ids of items: fail, error, in. */
  items: Record<string, string>;
  /** Ids of items: in, time, rspcode. */
  steps: { name: string; timeout_seconds: number; items: Record<string, string> }[];
}

export const getScenarios = (host: string, signal?: AbortSignal): Promise<{ scenarios: Scenario[] }> => get('the web scenarios', `/api/hosts/${encodeURIComponent(host)}/webscenarios`, {}, signal);
