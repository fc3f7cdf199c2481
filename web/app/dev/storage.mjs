// The store of the fake server: pairs of three tiers, snapshots, a re-compression that goes on while it is looked at.

const EVIL = `<img src=x onerror="window.__hostile=1">'"\`{{7*7}}`;
const QUOTA = 4 * 1024 ** 3;

const CLASSES = {
  classes: [
    { class: 'float', values: 4.1e8, bytes: 3.9e8 },
    { class: 'text', values: 2.2e6, bytes: 1.9e8 },
    { class: 'uint', values: 2.5e8, bytes: 1.6e8 },
    { class: 'binary', values: 9e5, bytes: 7.7e7 },
    { class: 'steady', values: 5.5e8, bytes: 2.1e7 },
  ],
};

const HOSTS = {
  count: 3,
  factor: 2,
  hosts: [
    { host_id: '2', host: 'db1', bytes: 6.4e8, summary_bytes: 4.1e7, percent: 74.2, limit_bytes: 2.2e8, over: true },
    { host_id: '1', host: 'web1', bytes: 1.8e8, summary_bytes: 2e7, percent: 21.8, limit_bytes: 7e8, over: false },
    { host_id: '', host: '', bytes: 3.7e7, summary_bytes: 0, percent: 4, limit_bytes: 0, over: false },
  ],
};

const candidate = (codec, each, cpu, p50, cold, days) => ({ codec, extent_bytes: codec === '' ? 0 : 65536, ratio: 16 / each, bytes_per_sample: each, write_cpu_ms_per_million: cpu, query_p50_ms: p50, query_cold_p50_ms: cold, projected_retention_days: days });
const TRIAL = {
  current: candidate('', 0.93, 0, 0.021, 0.4, 41.6),
  candidates: [candidate('none', 0.84, 25, 0.024, 0.42, 46.1), candidate('lz4', 0.8, 27, 0.026, 0.44, 48.2), candidate('zstd:3', 0.66, 48, 0.03, 0.51, 58.4)],
  recommended: { codec: 'zstd:3', extent_bytes: 65536, text: `zstd:3, 64 KiB: 29 % less disk than now, writing takes 1.9x the CPU of none, queries unchanged within noise${EVIL}` },
  rounds: 5, pairs: 9, sample_pairs: 5, queries: 200, queries_made_up: false,
};

/** storage answers the routes below /api/storage; null for what is not there, false for what was refused. */
export function storage(oldest, started) {
  const snapshots = [
    { name: 'automatic-20261129-0200', created_at: started - 8e7, bytes: 1.1e9, files: 61 },
    { name: `before ${EVIL}`, created_at: started - 3e8, bytes: 0.9e9, files: 44 },
  ];
  let retention = { history_seconds: 0, trends_seconds: 0, history_fixed: false, trends_fixed: false };
  let run = { running: false, automatic: true, codec: 'zstd:3', started_at: started - 9e6, ended_at: started - 8.4e6, seconds_left: null, progress: progressOf(12, 12, 400e6) };

  function progressOf(pairs, done, bytes) {
    const doneBytes = Math.round((bytes * done) / pairs);
    return { pairs, bytes, done_pairs: done, done_bytes: doneBytes, written_pairs: done, kept_pairs: 0, skipped_pairs: 0, merged_pairs: 0, joined_pairs: 0, before_bytes: doneBytes, after_bytes: Math.round(doneBytes * 0.61), folded_values: 0 };
  }

  function state() {
    const now = Date.now();
    const pairs = [];
    const span = now - oldest;
    const add = (tier, from, to, count, bytes, values) => {
      for (let n = 0; n < count; n++) {
        const at = (part) => Math.round(from + ((to - from) * part) / count);
        pairs.push({ name: `datafile-1-${String(pairs.length + 1).padStart(10, '0')}.ndf`, tier, count: 1, growing: tier === 'values' && n === count - 1, from: at(n), to: at(n + 1), bytes: Math.round(bytes * (0.9 + 0.2 * ((n * 7) % 5) / 5)), values: values === 0 ? 0 : Math.round(values) });
      }
    };
    add('values', Math.max(oldest, now - span * 0.42), now, 9, 9.3e7, 1.35e8);
    add('minutes', Math.max(oldest, now - span * 0.8), now - span * 0.04, 6, 3.1e7, 0);
    add('hours', oldest, now - span * 0.04, 3, 1.2e7, 0);
    const tiers = [['values', QUOTA], ['minutes', Math.round(QUOTA * 0.15)], ['hours', Math.round(QUOTA * 0.05)]].map(([tier, limit]) => {
      const of = pairs.filter((pair) => pair.tier === tier);
      const sum = (field) => of.reduce((left, pair) => left + pair[field], 0);
      return { tier, pairs: of.length, bytes: sum('bytes'), limit_bytes: limit, from: of[0].from, to: of[of.length - 1].to, values: sum('values'), pages: of.length * 9000 };
    });
    const log = 1.3e8;
    const used = Math.round(tiers.reduce((left, tier) => left + tier.bytes, log));
    return { engine: 'dbengine', used_bytes: used, quota_bytes: QUOTA, from: tiers[0].from, to: now, values: tiers[0].values, items: 9000, retention_days: 41.6, log_bytes: log, log_limit_bytes: QUOTA / 4, disk: { file_system: 'ext4', total_bytes: 6.4e10, free_bytes: 1.1e10, used_percent: 82.8, level: 'problem' }, disk_full_days: 210, hold: { at_percent: 80, held: true, ceiling_bytes: used, deleted_pairs: 3, shrink: false }, advice: ['Most file systems slow down past 80 %: free some room on this one, or give storage.disk_space a smaller value.', 'ext4: nothing to set; noatime saves a few writes.'], tiers, pairs };
  }

  function recompression() {
    if (run.running) {
      const done = Math.min(20, Math.floor((Date.now() - run.started_at) / 400));
      run.progress = progressOf(20, done, 800e6);
      run.seconds_left = (20 - done) * 0.4;
      if (done === 20) run = { ...run, running: false, ended_at: Date.now(), seconds_left: null };
    }
    return run;
  }

  return (method, path, body) => {
    if (path === '/api/storage') return state();
    if (path === '/api/storage/classes') return CLASSES;
    if (path === '/api/storage/hosts') return HOSTS;
    if (path === '/api/storage/trial') return { trial: { ...TRIAL, at: started - 6e7 } };
    if (path === '/api/storage/retention') {
      if (method === 'PUT') retention = { ...retention, ...body };
      return retention;
    }
    if (path === '/api/storage/recompress') {
      if (method === 'POST') run = { running: true, automatic: false, codec: body.codec, started_at: Date.now(), ended_at: 0, seconds_left: null, progress: progressOf(20, 0, 800e6) };
      if (method === 'DELETE') run = { ...recompression(), running: false, ended_at: Date.now(), error: 'context canceled' };
      return recompression();
    }
    if (path === '/api/storage/snapshots' && method === 'POST') {
      const made = { name: body.name ?? 'automatic-now', created_at: Date.now(), bytes: 1.2e9, files: 64, took_ms: 3.2 };
      snapshots.push(made);
      return made;
    }
    if (method === 'DELETE') {
      const found = snapshots.findIndex((one) => path === `/api/storage/snapshots/${encodeURIComponent(one.name)}`);
      if (found < 0) return null;
      snapshots.splice(found, 1);
    }
    return path.startsWith('/api/storage/snapshots') ? { snapshots, held_bytes: 2.1e8 } : null;
  };
}
