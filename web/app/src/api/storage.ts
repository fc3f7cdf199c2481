// Calls about the store: what is in it, snapshots, re-compression, and the housekeeping of PostgreSQL.

import { get, send } from './client.ts';

export type TierName = 'values' | 'minutes' | 'hours';

export interface Tier {
  tier: TierName;
  pairs: number;
  bytes: number;
  /** What the tier may take; values may take the whole quota. */
  limit_bytes: number;
  /** Unix milliseconds, 0 for none. */
  from: number;
  to: number;
  /** 0 for summaries. */
  values: number;
  pages: number;
}

/** A file pair, or several neighbours where there are very many. */
export interface Pair {
  name: string;
  tier: TierName;
  count: number;
  growing: boolean;
  from: number;
  to: number;
  bytes: number;
  values: number;
}

export interface Store {
  engine: 'dbengine' | 'postgres';
  used_bytes: number;
  quota_bytes: number;
  from: number;
  to: number;
  values: number;
  items: number;
  retention_days: number | null;
  log_bytes: number;
  log_limit_bytes: number;
  /** What goes past the system's cache; absent with PostgreSQL. */
  direct_io?: { setting: string; active: boolean; reason?: string; read_bytes: number; written_bytes: number; buffer_bytes: number; buffer_limit_bytes: number };
  /** The file system that the store is on; total_bytes is 0 when the store is PostgreSQL. */
  disk: { file_system: string; total_bytes: number; free_bytes: number; used_percent: number; level: string };
  disk_full_days: number | null;
  /** Whether the store may grow while its disk is nearly full; absent with PostgreSQL. */
  hold?: { at_percent: number; held: boolean; ceiling_bytes: number; deleted_pairs: number; shrink: boolean; blocked?: string };
  advice: string[];
  tiers: Tier[];
  pairs: Pair[];
}

export interface Snapshot {
  name: string;
  created_at: number;
  bytes: number;
  files: number;
  took_ms?: number;
  copied?: boolean;
}

export interface SnapshotList {
  snapshots: Snapshot[];
  held_bytes: number;
}

export interface Recompression {
  running: boolean;
  automatic: boolean;
  codec: string;
  started_at: number;
  ended_at: number;
  seconds_left: number | null;
  error?: string;
  progress: {
    pairs: number;
    bytes: number;
    done_pairs: number;
    done_bytes: number;
    written_pairs: number;
    kept_pairs: number;
    skipped_pairs: number;
    merged_pairs: number;
    joined_pairs: number;
    before_bytes: number;
    after_bytes: number;
    paused?: boolean;
    file?: string;
  };
}

export interface HousekeptTable {
  name: string;
  mode: string;
  keep_seconds: number;
  bytes: number;
  pieces: number;
  /** Unix seconds. */
  next?: { name: string; from: number; to: number; bytes: number; due_at: number };
}

export interface Dropped {
  table: string;
  name: string;
  /** Unix seconds. */
  at: number;
  reason: string;
  bytes: number;
  rows?: number;
  took_ms: number;
}

/** The room of the whole database; what is not known is null. Times are Unix seconds. */
export interface Room {
  database_bytes: number;
  wal_bytes: number | null;
  growth_per_day_bytes: number | null;
  wal_per_day_bytes: number | null;
  total_bytes: number;
  free_bytes: number;
  source: '' | 'setting' | 'disk';
  used_percent: number | null;
  full_days: number | null;
  early_drop_percent: number;
  measured_at: number;
}

export interface Housekeeping {
  room: Room;
  mode: string;
  size_bytes: number;
  limit_bytes: number;
  tables: HousekeptTable[];
  dropped: Dropped[];
}

export const getStore = (signal?: AbortSignal): Promise<Store> => get('the store', '/api/storage', {}, signal);

export const getSnapshots = (signal?: AbortSignal): Promise<SnapshotList> => get('the snapshots', '/api/storage/snapshots', {}, signal);

export const makeSnapshot = (name: string): Promise<Snapshot> => send('make the snapshot', 'POST', '/api/storage/snapshots', name === '' ? {} : { name });

export const deleteSnapshot = (name: string): Promise<unknown> => send('delete the snapshot', 'DELETE', `/api/storage/snapshots/${encodeURIComponent(name)}`);

export const getRecompression = (signal?: AbortSignal): Promise<Recompression> => get('the re-compression', '/api/storage/recompress', {}, signal);

export const startRecompression = (codec: string, olderThanSeconds: number, mergeBytes: number): Promise<unknown> =>
  send('start the re-compression', 'POST', '/api/storage/recompress', { codec, older_than_seconds: olderThanSeconds, merge_bytes: mergeBytes });

export const stopRecompression = (): Promise<unknown> => send('stop the re-compression', 'DELETE', '/api/storage/recompress');

/** What values of a kind take in the closed file pairs. */
export interface StorageClass {
  class: 'steady' | 'float' | 'uint' | 'text' | 'binary';
  values: number;
  bytes: number;
}

export const getClasses = (signal?: AbortSignal): Promise<{ classes: StorageClass[] }> => get('the kinds of values', '/api/storage/classes', {}, signal);

/** What a host has of the closed file pairs; host is empty for what was deleted. */
export interface HostShare {
  host_id: string;
  host: string;
  bytes: number;
  summary_bytes: number;
  /** Of what all hosts have. */
  percent: number;
  /** What its values may take before its oldest go first; 0 for no such bound. */
  limit_bytes: number;
  over: boolean;
}

export const getHostShares = (signal?: AbortSignal): Promise<{ hosts: HostShare[]; count: number; factor: number }> => get('what hosts take', '/api/storage/hosts', {}, signal);

export interface TrialCandidate {
  /** Empty for the store as it is. */
  codec: string;
  extent_bytes: number;
  ratio: number;
  bytes_per_sample: number;
  write_cpu_ms_per_million: number;
  query_p50_ms: number;
  query_cold_p50_ms: number;
  projected_retention_days: number;
}

/** The report of the last trial of codecs. */
export interface Trial {
  /** Unix milliseconds. */
  at: number;
  current: TrialCandidate;
  candidates: TrialCandidate[];
  recommended: { codec: string; extent_bytes: number; text: string };
  rounds: number;
  pairs: number;
  sample_pairs: number;
  queries: number;
  queries_made_up: boolean;
}

export const getTrial = (signal?: AbortSignal): Promise<{ trial: Trial | null; problem?: string }> => get('the last trial', '/api/storage/trial', {}, signal);

export const getHousekeeping = (signal?: AbortSignal): Promise<Housekeeping> => get('the housekeeping', '/api/storage/housekeeping', {}, signal);

/** How long values and summaries of all items are kept, whatever the items say; 0 leaves it to the items. Fixed is what the configuration file sets. */
export interface Retention {
  history_seconds: number;
  trends_seconds: number;
  history_fixed: boolean;
  trends_fixed: boolean;
}

export const getRetention = (signal?: AbortSignal): Promise<Retention> => get('the retention', '/api/storage/retention', {}, signal);

export const putRetention = (history: number, trends: number): Promise<Retention> =>
  send('change the retention', 'PUT', '/api/storage/retention', { history_seconds: history, trends_seconds: trends });

/** A standby as its primary knows it; times are Unix milliseconds. */
export interface Followed {
  address: string;
  lag_bytes: number;
  seen_at: number;
  seeding: boolean;
}

/** What this server is among primary and standbys. */
export interface Replication {
  role: 'primary' | 'standby' | 'fenced';
  epoch_text: string;
  fenced_by_text: string;
  fenced_by: number;
  primary: string;
  synchronous: boolean;
  /** Why values are refused; empty when they are not. */
  refusal: string;
  lag: { bytes: number; seconds: number; connected: boolean; problem?: string; configuration_at: number; verified_at: number; differs: boolean } | null;
  standbys: Followed[];
}

export const getReplication = (signal?: AbortSignal): Promise<Replication> => get('the standbys', '/api/standby', {}, signal);

export const promote = (): Promise<{ epoch_text: string; handed_over: boolean; milliseconds: number; problem?: string }> => send('make this server the primary', 'POST', '/api/standby/promote');

/** Whether servers share the database, and which of them works. Times are Unix nanoseconds as text. */
export interface Lease {
  shared: boolean;
  role: 'working' | 'waiting';
  epoch: number;
  holder: string;
  address: string;
  since: string;
  left_seconds: number;
  waiting: { holder: string; address: string; since: string; seen: string }[];
  problem?: string;
}

export const getLease = (signal?: AbortSignal): Promise<Lease> => get('the lease', '/api/lease', {}, signal);

export const handOver = (): Promise<Lease> => send('hand the work over', 'POST', '/api/lease/handover');
