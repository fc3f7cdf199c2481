// MongoDB requests of the fake server: shapes whose rate and latency are functions of the time. Since 40 minutes before the start one shape is
// five times slower; another is new since 25 minutes.

import { day, hash, noise, spike } from './signal.mjs';

const SHAPES = [
  ['orders', 'find', 'find {status: ?, user: ?} sort {created: -1} limit ?', 1204, 0.00026],
  ['carts', 'update', 'update {_id: ?} {$set: {items: [?], seen: ?}}', 310, 0.0011],
  ['orders', 'aggregate', 'aggregate [{$match: {created: {$gte: ?}}}, {$group: {_id: "$status", n: {$sum: ?}}}, {$sort: {n: -1}}]', 4, 0.031],
  ['users', 'find', 'find {_id: ?} limit ?', 890, 0.00012],
  ['orders', 'insert', 'insert', 86, 0.0009],
  ['products', 'find', 'find {category: ?, price: {$gte: ?, $lt: ?}, tags: {$in: [?]}} sort {rating: -1, _id: 1} limit ?', 140, 0.0021],
  ['sessions', 'findAndModify', 'findAndModify {_id: ?} {$set: {seen: ?}}', 420, 0.00021],
  ['audit', 'insert', 'insert', 260, 0.0002],
  ['reports', 'aggregate', 'aggregate [{$match: {day: ?}}, {$lookup: {from: users, localField: user, foreignField: _id, as: u}}, {$unwind: "$u"}, {$project: {name: 1, sum: 1}}]', 0.4, 0.42],
  ['products', 'count', 'count {category: ?}', 22, 0.0016],
  ['events', 'find', 'find {$or: [{kind: ?}, {owner: ?, "a.*.b": ?}]} limit ?', 31, 0.0042],
  ['broken', 'find', 'find {email: ?} limit ?', 12, 0.0007],
  ['coupons', 'find', 'find {code: ?, used: {$exists: ?}} limit ?', 18, 0.0083],
  ['', 'ping', 'ping', 2, 0.00008],
  ['carts', 'delete', 'delete {seen: {$lt: ?}} limit ?', 3, 0.0061],
  ['images', 'getMore', 'find {album: ?} batchSize ?', 44, 0.0033],
];
for (let n = 1; n <= 24; n++) SHAPES.push([`archive_${n % 6}`, ['find', 'update', 'aggregate'][n % 3], `${['find', 'update', 'aggregate'][n % 3]} {field_${n}: ?, year: ?}`, 6 / n, 0.0008 + 0.0002 * n]);

const CLIENTS = [['shop-api', '10.20.0.11', 0.31], ['shop-api', '10.20.0.12', 0.29], ['shop-web', '10.20.0.31', 0.22], ['nightly-report', '10.20.0.90', 0.11], ['', '10.20.0.44', 0.04]];
const SAMPLES = 60;

/** requests serves /api/mongo/… over the databases of a fleet; started is the time of the fake server's start. */
export function requests(hosts, oldest, started) {
  const instances = hosts.filter((host) => host.host.startsWith('db') || host.host === 'local').map((host) => ({
    id: `${host.host}/10.20.1.${hash(host.host) % 200}:27017`, host_id: host.id, host: host.host, host_name: host.name, address: `10.20.1.${hash(host.host) % 200}:27017`,
    size: 0.3 + (hash(host.host) % 100) / 70,
  }));
  const byId = new Map(instances.map((one) => [one.id, one]));
  const shapes = SHAPES.map(([collection, command, shape, rate, mean], n) => ({
    id: hash(shape, n).toString(16).padStart(8, '0') + hash(collection, n).toString(16).padStart(8, '0'), db: 'shop', ...(collection ? { collection } : {}), command, shape, rate, mean, n,
  }));

  const rateAt = (instance, s, t) => {
    if (t < oldest || (s.n === 12 && t < started - 1_500_000)) return 0;
    const beat = s.n === 8 ? Math.max(0, spike(`${instance.id}report`, t, 600_000) - 0.2) * 4 : 0.45 + 0.6 * noise(`${instance.id}${s.id}`, t) + 0.3 * day(t);
    return s.rate * instance.size * beat * (s.n > 15 && Math.floor(t / 300_000 + s.n) % 3 === 0 ? 0 : 1);
  };
  const meanAt = (instance, s, t) => s.mean * (0.8 + 0.4 * noise(`${s.id}lat`, t)) * (1 + 2 * spike(`${instance.id}lock`, t, 900_000)) * (s.n === 1 && t > started - 2_400_000 ? 5 : 1);
  const errorsOf = (s) => (s.n === 11 ? 0.92 : s.n === 1 ? 0.004 : s.n === 4 ? 0.0007 : 0);

  function sum(instance, some, from, to, share = 1) {
    let [requests, errors, seconds, slow, bytesIn, bytesOut, docs] = [0, 0, 0, 0, 0, 0, 0];
    const means = [];
    const loads = new Array(30).fill(0);
    for (let k = 0; k < SAMPLES; k++) {
      const t = from + ((k + 0.5) / SAMPLES) * (to - from);
      const length = (to - from) / 1000 / SAMPLES;
      for (const s of some) {
        const n = rateAt(instance, s, t) * length * share;
        const mean = meanAt(instance, s, t);
        requests += n;
        errors += n * errorsOf(s);
        seconds += n * mean;
        slow = Math.max(slow, n > 0 ? mean * 22 : 0);
        bytesIn += n * (90 + s.shape.length * 3);
        bytesOut += n * (s.command === 'find' ? 2600 : 240);
        docs += n * (s.command === 'find' ? 9 : 1);
        means.push([mean, n]);
        loads[Math.floor((k / SAMPLES) * 30)] += (n * mean) / length / (SAMPLES / 30);
      }
    }
    const whole = Math.round(requests);
    const watched = (Math.min(to, Date.now()) - Math.max(from, oldest)) / 1000;
    const at = (q, spread) => {
      means.sort((a, b) => a[0] - b[0]);
      let left = q * requests;
      for (const [mean, n] of means) if ((left -= n) <= 0) return mean * spread;
      return (means.at(-1)?.[0] ?? 0) * spread;
    };
    const latency = whole > 0 && share === 1 ? { p50: at(0.5, 0.8), p95: at(0.95, 2.4), p99: at(0.99, 6), max: slow } : { p50: null, p95: null, p99: null, max: null };
    return {
      sums: { requests: whole, errors: Math.round(errors), bytes_in: Math.round(bytesIn), bytes_out: Math.round(bytesOut), docs: Math.round(docs), seconds, load: watched > 0 ? seconds / watched : 0, rate: watched > 0 ? whole / watched : 0, ...latency },
      loads,
    };
  }

  const publicNames = ({ id, db, collection, command, shape }) => ({ id, db, collection, command, shape });
  const bare = ({ size, ...instance }) => instance;

  function rowsOf(instance, query, from, to) {
    const word = (query.get('search') ?? '').toLowerCase();
    const fit = (s) => ['db', 'collection', 'command'].every((name) => query.get(name) === null || (s[name] ?? '') === query.get(name));
    const some = shapes.filter((s) => fit(s) && `shop.${s.collection ?? ''} ${s.command} ${s.shape}`.toLowerCase().includes(word));
    const group = query.get('group_by') || 'shape';
    if (group === 'application' || group === 'client') {
      const names = new Map();
      for (const [application, client, share] of CLIENTS) {
        const id = group === 'client' ? client : application;
        names.set(id, (names.get(id) ?? 0) + share);
      }
      const rows = [...names].filter(([id]) => id.includes(word)).map(([id, share]) => ({ id, ...(group === 'client' ? { client: id } : { application: id }), ...sum(instance, shapes, from, to, share * 0.999) }));
      return word === '' ? [...rows, { id: 'other', rest: true, ...sum(instance, shapes, from, to, 0.03) }] : rows;
    }
    const groups = new Map();
    for (const s of some) {
      const id = group === 'shape' ? s.id : group === 'command' ? s.command : s.collection ? `shop.${s.collection}` : 'shop';
      groups.set(id, [...(groups.get(id) ?? []), s]);
    }
    const names = (id, list) => (group === 'shape' ? publicNames(list[0]) : group === 'command' ? { id, command: id } : { id, db: 'shop', collection: list[0].collection });
    return [...groups].map(([id, list]) => ({ ...names(id, list), ...sum(instance, list, from, to) })).filter((row) => row.sums.requests > 0);
  }

  const value = (row, order) => ({ load: row.sums.seconds, requests: row.sums.requests, errors: row.sums.errors, in: row.sums.bytes_in, out: row.sums.bytes_out, docs: row.sums.docs })[order] ?? row.sums[order] ?? 0;

  function ranking(instance, query, from, to) {
    const order = query.get('order') || 'load';
    const rows = rowsOf(instance, query, from, to).sort((a, b) => value(b, order) - value(a, order));
    return { instance: bare(instance), from, to, watched_ms: to - from, total: sum(instance, shapes, from, to).sums, group_by: query.get('group_by') || 'shape', order, rows: rows.slice(0, Number(query.get('limit') ?? 100)), found: rows.length };
  }

  function profile(instance, id, query, from, to) {
    const some = id === 'all' ? shapes : shapes.filter((s) => s.id === id);
    if (some.length === 0) return null;
    const steps = [10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2419200];
    const step = (steps.find((s) => (to - from) / s / 1000 + 2 <= Number(query.get('points') ?? 120)) ?? 31_449_600) * 1000;
    const start = Math.floor(from / step) * step;
    const at = [];
    for (let t = start; t < to; t += step) at.push(t);
    const columns = { load: [], rate: [], errors: [], bytes_in: [], bytes_out: [], docs: [], p50: [], p95: [], p99: [], max: [] };
    const cells = new Map();
    const rowOf = (seconds) => Math.floor(2 * Math.log2(seconds * 1e9));
    at.forEach((t, column) => {
      const watched = t + step > oldest && !(t > started - 420_000 && t < started - 330_000);
      let [rate, seconds, errors, bytesIn, bytesOut, docs, worst] = [0, 0, 0, 0, 0, 0, 0];
      const means = [];
      for (const s of some) {
        const n = rateAt(instance, s, t + step / 2);
        const mean = meanAt(instance, s, t + step / 2);
        rate += n;
        seconds += n * mean;
        errors += n * errorsOf(s);
        bytesIn += n * (90 + s.shape.length * 3);
        bytesOut += n * (s.command === 'find' ? 2600 : 240);
        docs += n * (s.command === 'find' ? 9 : 1);
        if (n > 0) means.push([mean, n]);
        worst = Math.max(worst, n > 0 ? mean * 16 : 0);
        if (!watched) continue;
        for (const [factor, part] of [[0.35, 0.04], [0.5, 0.14], [0.71, 0.28], [1, 0.26], [1.41, 0.14], [2, 0.07], [2.8, 0.03], [4, 0.015], [5.6, 0.011], [8, 0.007], [11.3, 0.004], [16, 0.002]]) {
          const count = Math.floor(n * (step / 1000) * part + noise(s.id + factor, t));
          const key = `${column} ${rowOf(mean * factor)}`;
          if (count > 0) cells.set(key, (cells.get(key) ?? 0) + count);
        }
      }
      means.sort((a, b) => a[0] - b[0]);
      const q = (share, spread) => {
        let left = share * rate;
        for (const [mean, n] of means) if ((left -= n) <= 0) return mean * spread;
        return null;
      };
      const put = (name, v) => columns[name].push(watched ? v : null);
      put('load', seconds);
      put('rate', rate);
      put('errors', errors);
      put('bytes_in', bytesIn);
      put('bytes_out', bytesOut);
      put('docs', docs);
      put('p50', q(0.5, 0.8));
      put('p95', q(0.95, 2.4));
      put('p99', q(0.99, 6));
      put('max', worst || null);
    });
    const found = [...cells].map(([key, count]) => [...key.split(' ').map(Number), count]);
    const rows = found.map(([, row]) => row);
    const [low, high] = [Math.min(...rows), Math.max(...rows)];
    const bounds = found.length === 0 ? [] : Array.from({ length: high - low + 2 }, (_, n) => 2 ** ((low + n) / 2) / 1e9);
    return {
      instance: bare(instance), ...(id === 'all' ? { id } : publicNames(some[0])), from, to, watched_ms: to - from, total: sum(instance, some, from, to).sums,
      step_ms: step, at, ...columns, heat: { bounds, cells: found.map(([column, row, count]) => [column, row - low, count]) },
      plan: id === 'all' ? null : planOf(to), codes: [],
    };
  }

  // planOf is what the agent would have asked the server.
  const planOf = (to) => ({
    at: to - 120_000, changed_at: to - 720_000, before: 'IXSCAN {status: 1, created: -1}', summary: 'IXSCAN {status: 1}', stages: ['SORT', 'FETCH', 'IXSCAN'], scans: false, sorts: true,
    used: ['status_1'], rejected: 0, trial: { documents: 4_210, keys: 4_210, returned: 101, examined_per_returned: 41.7 },
    indexes: [{ name: '_id_', key: '{_id: 1}', uses: 812_001 }, { name: 'status_1', key: '{status: 1}', uses: 90_412 }], indexes_known: true,
    hints: [{ key: '{status: 1, created: -1}', why: 'equality on status, then the sort {created: -1}' }], notes: [],
  });

  function verdict(before, after) {
    if (before.requests === 0) return 'new';
    if (after.requests === 0) return 'gone';
    const slower = (after.p50 ?? after.seconds / after.requests) / (before.p50 ?? before.seconds / before.requests);
    if (slower >= 1.3) return 'slower';
    if (slower <= 1 / 1.3) return 'faster';
    return after.rate >= 2 * before.rate ? 'more' : after.rate <= before.rate / 2 ? 'less' : 'same';
  }

  function comparison(instance, query, from, to) {
    const before = { from: Number(query.get('before_from') ?? from - 86_400_000), to: Number(query.get('before_to') ?? to - 86_400_000) };
    const nothing = { requests: 0, errors: 0, bytes_in: 0, bytes_out: 0, docs: 0, seconds: 0, load: 0, rate: 0, p50: null, p95: null, p99: null, max: null };
    const rows = new Map();
    for (const { sums, loads, ...names } of rowsOf(instance, query, from, to)) rows.set(names.id, { ...names, before: nothing, after: sums });
    for (const { sums, loads, ...names } of rowsOf(instance, query, before.from, before.to)) rows.set(names.id, { ...names, after: rows.get(names.id)?.after ?? nothing, before: sums });
    const list = [...rows.values()].map((row) => ({ ...row, verdict: verdict(row.before, row.after), load_change: row.after.load - row.before.load }));
    const side = (a, b) => ({ from: a, to: b, watched_ms: b - a, total: sum(instance, shapes, a, b).sums });
    return { instance: bare(instance), group_by: query.get('group_by') || 'shape', before: side(before.from, before.to), after: side(from, to), rows: list.sort((a, b) => Math.abs(b.load_change) - Math.abs(a.load_change)), found: list.length };
  }

  return (path, query) => {
    const to = Number(query.get('to') ?? Date.now());
    const from = Number(query.get('from') ?? to - 3_600_000);
    if (path === '/api/mongo/instances') {
      const list = instances.map((one) => ({ ...bare(one), watched_ms: to - from, total: sum(one, shapes, from, to).sums, loads: sum(one, shapes, from, to).loads }));
      return { from, to, instances: list.sort((a, b) => b.total.seconds - a.total.seconds), total: list.length };
    }
    const instance = byId.get(query.get('instance'));
    if (instance === undefined) return null;
    if (path === '/api/mongo/requests') return ranking(instance, query, from, to);
    if (path === '/api/mongo/compare') return comparison(instance, query, from, to);
    return path.startsWith('/api/mongo/requests/') ? profile(instance, path.split('/').pop(), query, from, to) : null;
  };
}
