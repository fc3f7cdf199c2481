// The server's own figures in plain words: what they count, in which unit, and what to do when they are not as they should be.

export interface Plain {
  /** Which part of the server it is about. */
  part: string;
  title: string;
  units: string;
  /** What to do; said beside figures that are not as they should be. */
  advice?: string;
  /** Not as it should be from this on: for counters what they grow by per second. */
  from?: number;
  /** Parts of a whole: the figure that it is measured against; from is a share of it then. */
  of?: string;
}

const WAY = 'The way of values';
const STORE = 'Store';
const TRIGGERS = 'Triggers and alerts';
const CHECKS = 'Checks and collection';
const PAGE = 'Page and queries';
const PEOPLE = 'People';
const PROCESS = 'The process';

/** PARTS are the headings, in the order of the page. */
export const PARTS = [WAY, STORE, TRIGGERS, CHECKS, PAGE, PEOPLE, PROCESS];

const SLOW = 'The disk or the processor is too slow for what comes. Look at the busy shares above and at the machine’s own page.';

export const FIGURES: Record<string, Plain> = {
  tidemark_trapper_values_total: { part: WAY, title: 'Values from agents and senders', units: '/s' },
  tidemark_poller_values_total: { part: WAY, title: 'Values from checks of this server', units: '/s' },
  tidemark_series_samples_total: { part: WAY, title: 'Samples from scrapes, remote write and OpenTelemetry', units: '/s' },
  tidemark_preproc_values_total: { part: WAY, title: 'Values through preprocessing', units: '/s' },
  tidemark_preproc_waiting_values: { part: WAY, title: 'Values that wait for preprocessing', units: '', from: 50_000, advice: 'Preprocessing is behind. Scripts and regular expressions over large texts take longest.' },
  tidemark_preproc_unsupported_values_total: { part: WAY, title: 'Values that preprocessing could not take', units: '/s', from: 1, advice: 'Items show the reason on their pages; look for “not supported” among the latest values.' },
  tidemark_preproc_unknown_item_values_total: { part: WAY, title: 'Values of items that do not exist', units: '/s', from: 0.1, advice: 'Somebody sends keys that no host has. Check names and keys of the senders.' },
  tidemark_preproc_future_values_total: { part: WAY, title: 'Values dated in the future', units: '/s', from: 0.01, advice: 'The clock of a sender is wrong: set it with NTP.' },
  tidemark_histcache_used_bytes: { part: WAY, title: 'History cache in use', units: 'B', of: 'tidemark_histcache_limit_bytes', from: 0.6, advice: SLOW },
  tidemark_histcache_limit_bytes: { part: WAY, title: 'History cache, at most', units: 'B' },
  tidemark_histcache_values: { part: WAY, title: 'Values that wait to be stored', units: '' },
  tidemark_histcache_blocked_puts_total: { part: WAY, title: 'Collectors that had to wait for room in the history cache', units: '/s', from: 0.1, advice: SLOW },
  tidemark_histsync_values_total: { part: WAY, title: 'Values stored', units: '/s' },
  tidemark_histsync_batches_total: { part: WAY, title: 'Batches stored', units: '/s' },
  tidemark_histsync_append_busy_seconds_total: { part: WAY, title: 'Storing is busy', units: '%', from: 80, advice: SLOW },
  tidemark_histsync_evaluate_busy_seconds_total: { part: WAY, title: 'Evaluating triggers is busy', units: '%', from: 80, advice: 'Too many triggers look at each value, or at long ranges.' },
  tidemark_histsync_refused_values_total: { part: WAY, title: 'Values that could not be stored', units: '/s', from: 0.001, advice: 'The log of the server says why.' },
  tidemark_dbengine_written_bytes_total: { part: STORE, title: 'Written to the disk', units: 'B/s' },
  tidemark_disk_used_percent: { part: STORE, title: 'Disk of the data folder in use', units: '%', from: 90, advice: 'Give the store less room (storage.quota) or the disk more.' },
  tidemark_disk_free_bytes: { part: STORE, title: 'Free on the disk of the data folder', units: 'B' },
  tidemark_storage_quota_used_percent: { part: STORE, title: 'Room of the store in use', units: '%' },
  tidemark_storage_oldest_age_seconds: { part: STORE, title: 'Age of the oldest values', units: 's' },
  tidemark_snapshot_count: { part: STORE, title: 'Snapshots kept', units: '' },
  tidemark_snapshot_held_bytes: { part: STORE, title: 'Held by snapshots alone', units: 'B', advice: 'Delete old snapshots on the page Storage to have the room back.' },
  tidemark_snapshot_failures_total: { part: STORE, title: 'Snapshots that failed', units: '/s', from: 0.000_001, advice: 'The log says why; the next one is tried at its time.' },
  tidemark_trendcache_waiting_hours: { part: STORE, title: 'Hourly trends that are being gathered', units: '' },
  tidemark_housekeeper_freed_bytes_total: { part: STORE, title: 'Freed by housekeeping', units: 'B/s' },
  tidemark_housekeeper_failures_total: { part: STORE, title: 'Housekeeping that failed', units: '/s', from: 0.000_001, advice: 'The log of the server says why.' },
  tidemark_postgres_away: { part: STORE, title: 'PostgreSQL is away', units: '', from: 1, advice: 'Values wait on this machine’s disk. Start the database, or look at the network to it.' },
  tidemark_postgres_pending_bytes: { part: STORE, title: 'Waiting for PostgreSQL', units: 'B' },
  tidemark_postgres_dropped_values_total: { part: STORE, title: 'Values lost because PostgreSQL was away too long', units: '/s', from: 0.001, advice: 'Start the database; more room for waiting values is storage.spool.' },
  tidemark_trigger_triggers: { part: TRIGGERS, title: 'Triggers', units: '' },
  tidemark_trigger_evaluations_total: { part: TRIGGERS, title: 'Triggers evaluated', units: '/s' },
  tidemark_trigger_unknown_results_total: { part: TRIGGERS, title: 'Triggers that could not be evaluated', units: '/s', from: 20, advice: 'The triggers of a host say why on its page, under Triggers.' },
  tidemark_event_open_problems: { part: TRIGGERS, title: 'Open problems', units: '' },
  tidemark_event_events_total: { part: TRIGGERS, title: 'Events', units: '/s' },
  tidemark_event_store_failures_total: { part: TRIGGERS, title: 'Events that could not be written', units: '/s', from: 0.001, advice: 'The disk of the data folder is full or broken; they are kept in memory and tried again.' },
  tidemark_alert_waiting_alerts: { part: TRIGGERS, title: 'Messages that wait to be sent', units: '', from: 100, advice: 'A mail server or webhook does not answer: see the page Alerting.' },
  tidemark_alert_escalations: { part: TRIGGERS, title: 'Escalations under way', units: '' },
  tidemark_valuecache_hits_total: { part: TRIGGERS, title: 'Values of triggers found in the value cache', units: '/s' },
  tidemark_valuecache_history_reads_total: { part: TRIGGERS, title: 'Values of triggers read from the disk', units: '/s', from: 100, advice: 'The value cache is too small for the ranges that triggers look at.' },
  tidemark_valuecache_used_bytes: { part: TRIGGERS, title: 'Value cache in use', units: 'B', of: 'tidemark_valuecache_limit_bytes', from: 0.98, advice: 'It is full: triggers look at long ranges of many items. More memory helps.' },
  tidemark_valuecache_low_memory: { part: TRIGGERS, title: 'Value cache lacks memory', units: '', from: 1, advice: 'Triggers read from the disk now. Give the server more memory.' },
  tidemark_poller_items: { part: CHECKS, title: 'Items that this server asks for', units: '' },
  tidemark_poller_late_items: { part: CHECKS, title: 'Items that are late', units: '', from: 10, advice: 'See the table of checks above: a kind that is busy all the time needs more checks at once, or shorter time limits.' },
  tidemark_poller_dropped_values_total: { part: CHECKS, title: 'Values of checks that were dropped', units: '/s', from: 0.01, advice: 'The history cache was full.' },
  tidemark_trapper_connections: { part: CHECKS, title: 'Connections of agents and senders', units: '', of: 'tidemark_trapper_connections_limit', from: 0.9, advice: 'Nearly as many as the system allows: raise the limit of open files of the service.' },
  tidemark_trapper_connections_full_total: { part: CHECKS, title: 'Connections that were refused because there were too many', units: '/s', from: 0.01, advice: 'Raise the limit of open files of the service.' },
  tidemark_trapper_received_bytes_total: { part: CHECKS, title: 'Received from agents and senders', units: 'B/s' },
  tidemark_scrape_targets: { part: CHECKS, title: 'Targets that are scraped', units: '' },
  tidemark_scrape_failed_scrapes_total: { part: CHECKS, title: 'Scrapes that failed', units: '/s', from: 0.01, advice: 'Targets and their errors are at /api/scrape/targets.' },
  tidemark_snmp_timed_out_requests_total: { part: CHECKS, title: 'SNMP requests without an answer', units: '/s', from: 0.5, advice: 'Devices are off, or community and address are wrong; the items say which.' },
  tidemark_script_processes: { part: CHECKS, title: 'Processes that run scripts', units: '' },
  tidemark_script_failed_runs_total: { part: CHECKS, title: 'Scripts that failed', units: '/s', from: 0.1, advice: 'The items and the log say why.' },
  tidemark_proxies: { part: CHECKS, title: 'Proxies', units: '' },
  tidemark_proxies_twice: { part: CHECKS, title: 'Proxies that run twice', units: '', from: 1, advice: 'Two machines send under one name; see “tidemark proxies list” for their addresses. Stop one or give it another name.' },
  tidemark_proxies_silent: { part: CHECKS, title: 'Proxies that are silent', units: '', from: 1, advice: 'See “tidemark proxies”: the machine may be off, or cannot reach this server.' },
  tidemark_discovery_waiting_values: { part: CHECKS, title: 'Discoveries that wait', units: '' },
  tidemark_confcache_hosts: { part: CHECKS, title: 'Hosts', units: '' },
  tidemark_confcache_items: { part: CHECKS, title: 'Configured items, with discovery rules', units: '' },
  tidemark_catalog_items: { part: CHECKS, title: 'Items that hold values, with those that others send', units: '' },
  tidemark_confcache_faults_total: { part: CHECKS, title: 'Mistakes in the configuration', units: '/s', from: 0.01, advice: 'The log of the server names them.' },
  tidemark_api_requests_in_flight: { part: PAGE, title: 'Requests that are being answered', units: '', from: 200, advice: 'The limit is 256. Somebody asks too much at once.' },
  tidemark_api_refused_requests_total: { part: PAGE, title: 'Requests that were refused', units: '/s', from: 1, advice: 'Their Host or Origin is not this server’s, or too many came at once.' },
  tidemark_api_panics_total: { part: PAGE, title: 'Mistakes of the program in answers', units: '/s', from: 0.000_001, advice: 'Please report it with the lines of the log.' },
  tidemark_query_running: { part: PAGE, title: 'Queries under way', units: '' },
  tidemark_query_values_total: { part: PAGE, title: 'Values read by queries', units: '/s' },
  tidemark_query_limited_total: { part: PAGE, title: 'Queries that asked for too much', units: '/s', from: 0.1, advice: 'The answer says which limit it was: ask for a shorter range or fewer series.' },
  tidemark_query_live_subscriptions: { part: PAGE, title: 'Pages that follow values', units: '' },
  tidemark_query_live_dropped_updates_total: { part: PAGE, title: 'Live values that a slow page did not take', units: '/s', from: 10, advice: 'A browser or its network is slow; it reads its charts again.' },
  tidemark_access_sessions: { part: PEOPLE, title: 'People who are signed in', units: '' },
  tidemark_access_refused_sign_ins_total: { part: PEOPLE, title: 'Sign-ins that were refused', units: '/s', from: 0.1, advice: 'Somebody guesses passwords: the audit log says from where.' },
  tidemark_access_lost_audit_entries_total: { part: PEOPLE, title: 'Entries of the audit log that could not be written', units: '/s', from: 0.000_001, advice: 'The disk of the data folder is full or broken.' },
  process_resident_memory_bytes: { part: PROCESS, title: 'Memory', units: 'B' },
  process_cpu_seconds_total: { part: PROCESS, title: 'Processor', units: '%' },
  process_io_storage_written_bytes_total: { part: PROCESS, title: 'Written by the process', units: 'B/s' },
  process_io_storage_read_bytes_total: { part: PROCESS, title: 'Read from the disk by the process', units: 'B/s' },
  go_goroutines: { part: PROCESS, title: 'Tasks at the same time', units: '', from: 20_000, advice: 'More than there should be; if it grows for hours please report it.' },
};

/** A figure in plain words, ready to be shown. */
export interface Row {
  id: string;
  plain: Plain;
  values: (number | null)[];
  now: number | null;
  /** Of the whole, from 0 to 1; null without one. */
  share: number | null;
  wrong: boolean;
}

/** isWrong tells whether a figure is not as it should be. */
export function isWrong(plain: Plain, now: number | null, share: number | null): boolean {
  if (plain.from === undefined || now === null) return false;
  return plain.of === undefined ? now >= plain.from : share !== null && share >= plain.from;
}
