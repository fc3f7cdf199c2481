// A fake Tidemark for working on the page and for its browser test: the REST API of docs/design/0002-rest.md over seeded
// data with live values every second, and the built page with the content security policy of the real server.
//
//   node dev/server.mjs [--port 8421] [--hosts 80] [--age 90d] [--dist ../dist] [--fire 0]
//
// --hosts 1 is a first start: one machine. --age is how old the store is. --fire N opens a problem after N seconds.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { fleet, openProblem } from './fleet.mjs';
import { alerting } from './alerting.mjs';
import { standby } from './standby.mjs';
import { dashboards, graphs, logLines, states } from './dashboards.mjs';
import { requests } from './requests.mjs';
import { storage } from './storage.mjs';

const { values: flags } = parseArgs({
  options: {
    port: { type: 'string', default: '8421' },
    hosts: { type: 'string', default: '80' },
    age: { type: 'string', default: '7776000' },
    dist: { type: 'string', default: new URL('../../dist', import.meta.url).pathname },
    fire: { type: 'string', default: '0' },
  },
});

const started = Date.now();
const data = fleet(Number(flags.hosts), started);
const oldest = started - Number(flags.age) * 1000;
const itemById = new Map(data.items.map((item) => [item.id, item]));
const hostById = new Map(data.hosts.map((host) => [host.id, host]));
const mongo = requests(data.hosts, oldest, started);
const store = storage(oldest, started);
const alerts = alerting(started);
const boards = dashboards(data.hosts, started);
const listeners = new Set();
const SEVERITIES = ['not classified', 'information', 'warning', 'average', 'high', 'disaster'];

// A quarter of an hour in which local's network values are missing, to see a gap.
const inGap = (item, t) => item.key.startsWith('net.if') && t > started - 420_000 && t < started - 330_000;
const valueAt = (item, t) => (inGap(item, t) || t < oldest || hostById.get(item.host_id).silent ? null : item.value(t));

function textOf(item, t) {
  const value = item.value(t);
  if (item.counter) return String(Math.round(((t - 1.7e12) / 1000) * 2e6 + value));
  if (item.value_type === 'float') return String(Math.round(value * 1e4) / 1e4);
  return item.value_type === 'unsigned' ? String(Math.round(value)) : String(value);
}

// Live counter readings have to add up, so they are summed from the start of the server.
const counters = new Map();

function reading(item, t) {
  const v = counters.get(item.id)?.toString() ?? textOf(item, t);
  return { at_ns: `${t}000000`, at: t, value: { t: item.value_type, v, ...(item.map === undefined ? {} : { mapped: item.map[Number(v)] }) } };
}

function itemJSON(item) {
  const { value, counter, map, ...rest } = item;
  const at = Math.floor(Date.now() / item.interval_ms) * item.interval_ms;
  const last = Math.min(Math.floor(at / 1000) * 1000, Date.now());
  const has = item.state === 'ok' && !hostById.get(item.host_id).unknown;
  return { ...rest, last: has ? reading(item, last) : null, previous: has ? { ...reading(item, last), at: last - 1000, value: { t: item.value_type, v: previousText(item, last) } } : null };
}

function previousText(item, last) {
  const sum = counters.get(item.id);
  return sum === undefined ? textOf(item, last - 1000) : (sum - BigInt(Math.round(item.value(last)))).toString();
}

function hostJSON({ silent, unknown, cores, disks, nets, mounts, ...host }) {
  const open = data.problems.filter((problem) => problem.host_id === host.id && problem.recovered_at === null);
  const worst = open.map((problem) => SEVERITIES.indexOf(problem.severity)).sort((a, b) => b - a)[0];
  return {
    ...host,
    problems: open.length,
    worst: worst === undefined ? '' : SEVERITIES[worst],
    items: data.items.filter((item) => item.host_id === host.id).length,
    last_seen: unknown ? null : silent ? started - 840_000 : Date.now() - 400,
    state: unknown ? 'unknown' : silent ? 'silent' : 'ok',
    seen_by: unknown ? '' : 'agent',
  };
}

function overview() {
  const now = Date.now();
  const hosts = data.hosts.map(hostJSON);
  const open = data.problems.filter((problem) => problem.recovered_at === null);
  const used = 1.2e9 + (now - started) * 50;
  return {
    hosts: { total: hosts.length, ok: hosts.filter((h) => h.worst === '' && h.state === 'ok').length, problem: hosts.filter((h) => h.worst !== '').length, unknown: hosts.filter((h) => h.state === 'unknown').length },
    problems: Object.fromEntries(SEVERITIES.map((severity) => [severity, open.filter((p) => p.severity === severity).length])),
    oldest: open.filter((p) => !p.acknowledged).sort((a, b) => a.at - b.at).slice(0, 3),
    values_per_second: data.items.length * (0.96 + 0.05 * Math.sin(now / 9000)),
    history_cache_used: 0.02 + 0.01 * Math.sin(now / 5000),
    store: { used_bytes: Math.round(used), quota_bytes: 4 * 1024 ** 3, from: oldest, to: now, retention_days: data.hosts.length === 1 ? null : 41.6 },
    version: '0.1.0-fake',
    started_at: started,
    time: now,
    utc_offset_seconds: 0,
  };
}

function queue() {
  const late = data.items.slice(0, 3).map((item, i) => ({ id: item.id, host: item.host, key: item.key, due_at: Date.now() - 9_000 * (i + 1) }));
  const kind = (name, busy, flight, limit, waiting) => ({ kind: name, busy_percent: busy, in_flight: flight, limit, waiting });
  return { late: late.length, types: [], items: late, kinds: [kind('agent', 12.4, 5, 100, 0), kind('snmp', 81.2, 41, 50, 12), kind('simple', 0.4, 0, 20, 0), kind('http', 3.1, 1, 20, 0)] };
}

const short = (value) => Number(value.toPrecision(6));

function chart(query) {
  const from = Math.max(Number(query.get('from')), oldest);
  const to = Math.min(Number(query.get('to')), Date.now());
  const points = Number(query.get('points') ?? 500);
  const ids = query.get('items').split(',').slice(0, 200);
  const raw = (Number(query.get('to')) - Number(query.get('from'))) / 1000 <= points;
  const step = raw ? 1000 : Math.ceil((Number(query.get('to')) - Number(query.get('from'))) / points / 1000) * 1000;
  const series = ids.map((id) => itemById.get(id)).filter(Boolean).map((item) => {
    // Slow items are given as they are where fast ones are gathered.
    const own = raw || item.interval_ms > step;
    const every = own ? item.interval_ms : step;
    const at = [];
    const avg = [];
    const min = [];
    const max = [];
    for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
      if (own && valueAt(item, t) === null) continue;
      at.push(t);
      const samples = own ? [valueAt(item, t)] : [0.2, 0.5, 0.8].map((part) => valueAt(item, t + Math.round((part * step) / 1000) * 1000));
      const known = samples.filter((v) => v !== null);
      avg.push(known.length === 0 ? null : short(known.reduce((a, b) => a + b, 0) / known.length));
      min.push(known.length === 0 ? null : short(Math.min(...known)));
      max.push(known.length === 0 ? null : short(Math.max(...known)));
    }
    const units = item.counter ? `${item.units}/s` : item.units;
    return { id: item.id, host: item.host, key: item.key, name: item.name, units, labels: item.labels, value_type: item.value_type, source: to - from > 86_400_000 * 8 ? 'trends' : 'history', at, avg, ...(own ? {} : { min, max }) };
  });
  return { from, to, step_ms: step, series };
}

function problems(query) {
  const word = (query.get('search') ?? '').toLowerCase();
  const from = Number(query.get('from') ?? 0);
  const to = Number(query.get('to') ?? Infinity) || Infinity;
  const found = data.problems
    .filter((p) => query.get('open') !== 'true' || p.recovered_at === null)
    .filter((p) => !query.get('host') || p.host_id === query.get('host'))
    .filter((p) => !query.get('severity') || p.severity === query.get('severity'))
    .filter((p) => `${p.name} ${p.host_name} ${p.host}`.toLowerCase().includes(word))
    .filter((p) => p.at <= to && (p.recovered_at ?? Infinity) >= from);
  return { problems: found.slice(0, Number(query.get('limit') ?? 100)), total: found.length };
}

const marks = new Map();

function problemDetail(id) {
  const problem = data.problems.find((one) => one.event_id === id);
  if (problem === undefined) return null;
  const trigger = data.triggers.find((one) => one.id === problem.trigger_id);
  const items = data.items.filter((one) => one.host_id === problem.host_id).slice(0, 2).map(itemJSON);
  const earlier = data.problems.filter((one) => one.trigger_id === problem.trigger_id && one.at < problem.at).slice(0, 10).map(({ event_id, at, recovered_at }) => ({ event_id, at, recovered_at }));
  return { problem, expression: trigger?.expression ?? '', recovery_expression: '', items, marks: marks.get(id) ?? (problem.acknowledged ? [{ at: problem.at + 90_000, author: `ada ${EVIL}`, done: 'acknowledged and commented', message: `I look at it ${EVIL}` }] : []), earlier };
}

function updateProblems({ event_ids, acknowledge, message = '', severity, suppress, suppress_until, close }) {
  for (const id of event_ids) {
    const problem = data.problems.find((one) => one.event_id === id);
    if (problem === undefined) return null;
    if (acknowledge) problem.acknowledged = true;
    if (severity !== undefined) problem.severity = severity;
    if (suppress !== undefined) problem.suppression = suppress ? { until: suppress_until ?? null } : undefined;
    if (close) problem.recovered_at = Date.now();
    marks.set(id, [...(marks.get(id) ?? []), { at: Date.now(), author: 'ada', done: 'acknowledged and commented', message }]);
  }
  return { event_ids };
}

function list(rows, query, name, text) {
  const word = (query.get('search') ?? '').toLowerCase();
  const found = rows.filter((row) => text(row).toLowerCase().includes(word));
  const limit = Number(query.get('limit') ?? 100);
  return { [name]: found.slice(0, limit), total: found.length, ...(found.length > limit ? { next: 'more' } : {}) };
}

function search(query) {
  const word = (query.get('q') ?? '').toLowerCase();
  const results = [];
  for (const host of data.hosts) if (`${host.host} ${host.name}`.toLowerCase().includes(word)) results.push({ kind: 'host', id: host.id, title: host.name, subtitle: host.groups.join(', '), url: `/hosts/${host.id}` });
  for (const item of data.items) {
    if (results.length >= 20) break;
    if (`${item.name} ${item.key}`.toLowerCase().includes(word)) results.push({ kind: 'item', id: item.id, title: item.name, subtitle: `${item.host} · ${item.key}`, url: `/items/${item.id}` });
  }
  return { results: results.slice(0, 20) };
}

function values(query) {
  const item = itemById.get(query.get('item'));
  const to = Math.min(Number(query.get('to')), Date.now());
  const limit = Number(query.get('limit') ?? 100);
  if (item.value_type === 'log') return { item: itemJSON(item), values: logLines(query, to, Math.max(Number(query.get('from')), oldest)), next: 'more' };
  const found = [];
  for (let t = Math.floor(to / item.interval_ms) * item.interval_ms; t >= Math.max(Number(query.get('from')), oldest) && found.length < limit; t -= item.interval_ms) found.push({ at_ns: `${t}000000`, value: { t: item.value_type, v: textOf(item, t) } });
  return { item: itemJSON(item), values: found, next: 'more' };
}

function prom(query, ranged) {
  const text = query.get('query');
  const name = /[a-z_]+_[a-z_]+/.exec(text)?.[0];
  if (name === undefined || /[({]$/.test(text)) return { status: 'error', errorType: 'bad_data', error: `1:${text.length + 1}: parse error: unexpected end of input` };
  const items = data.items.filter((item) => metricOf(item) === name).slice(0, 24);
  const at = (item, t) => [t / 1000, String(valueAt(item, t) ?? 0)];
  const metric = (item) => ({ __name__: name, host: item.host, key: item.key });
  if (!ranged) return { status: 'success', data: { resultType: 'vector', result: items.map((item) => ({ metric: metric(item), value: at(item, Number(query.get('time')) * 1000) })) } };
  const step = Number(query.get('step')) * 1000;
  const result = items.map((item) => {
    const list = [];
    for (let t = Number(query.get('start')) * 1000; t <= Number(query.get('end')) * 1000; t += step) if (valueAt(item, t) !== null) list.push(at(item, t));
    return { metric: metric(item), values: list };
  });
  return { status: 'success', data: { resultType: 'matrix', result } };
}

function metrics() {
  const seconds = (Date.now() - started) / 1000;
  return [
    `tidemark_trapper_values_total ${Math.round(seconds * data.items.length)}`,
    `tidemark_trapper_connections 3`,
    `tidemark_histcache_used_bytes ${Math.round(2e6 + 4e5 * Math.sin(seconds / 7))}`,
    `tidemark_histcache_limit_bytes 67108864`,
    `tidemark_histsync_batches_total ${Math.round(seconds * 24)}`,
    `tidemark_histsync_batch_seconds_sum ${seconds * 0.03}`,
    `tidemark_histsync_batch_seconds_count ${Math.round(seconds * 24)}`,
    `tidemark_dbengine_written_bytes_total ${Math.round(seconds * 91_000)}`,
    `tidemark_dbengine_fsyncs_total ${Math.round(seconds * 31)}`,
    `tidemark_valuecache_hits_total ${Math.round(seconds * 4_000)}`,
    `tidemark_valuecache_misses_total ${Math.round(seconds * 12)}`,
    `go_goroutines 48`,
    `process_resident_memory_bytes ${Math.round(1.2e8 + 3e6 * Math.sin(seconds / 11))}`,
    '',
  ].join('\n');
}

// People with names that run a script wherever they are taken for HTML.
const EVIL = `<img src=x onerror="window.__hostile=1">'"\`{{7*7}}`;
const NOW = Date.now();
const PEOPLE = {
  '/api/me': { id: '1', name: `ada ${EVIL}`, role: 'administrator', all_hosts: true, via: 'session', first: false },
  '/api/shadow': { since: 0 },
  '/api/users': {
    users: [
      { id: '1', name: `ada ${EVIL}`, role: 'administrator', all_hosts: true, groups: [], disabled: false, has_password: true, created_at: NOW, sessions: 1 },
      { id: '2', name: 'grafana', role: 'viewer', all_hosts: true, groups: [], disabled: false, has_password: false, created_at: NOW, sessions: 0 },
      { id: '3', name: 'web team', role: 'operator', all_hosts: false, groups: [`Web ${EVIL}`], disabled: true, has_password: true, created_at: NOW, sessions: 0 },
    ],
  },
  '/api/user_groups': { groups: [{ name: `Web ${EVIL}`, grants: [{ host_group: `Linux ${EVIL}`, role: 'operator' }], users: 1 }] },
  '/api/tokens': { tokens: [{ id: '1', name: `dashboards ${EVIL}`, user: `grafana ${EVIL}`, role: 'viewer', created_at: NOW, expires_at: NOW + 9e9, used_at: NOW }] },
  '/api/me/tokens': { tokens: [{ id: '1', name: `scripts ${EVIL}`, user: 'ada', role: 'operator', created_at: NOW, expires_at: null, used_at: null }] },
  '/api/audit': {
    entries: [
      { id: '3', at: NOW, actor: `ada ${EVIL}`, via: 'session', address: '192.0.2.7:51324', action: 'PUT /api/users/{id}', object: `user web ${EVIL}`, before: { disabled: false, [EVIL]: EVIL }, after: { disabled: true } },
      { id: '2', at: NOW - 6e4, actor: 'ada', via: 'password', address: '192.0.2.7:51320', action: 'sign-in', object: '', before: null, after: null },
      { id: '1', at: NOW - 9e4, actor: 'command line', via: 'command line', address: '', action: 'POST /api/users', object: 'user ada', before: null, after: { name: 'ada', role: 'administrator' } },
    ],
  },
};

function named(item, query) {
  const fits = (key) => new RegExp(`^${key.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`).test(item.key);
  return (
    (!query.get('host_name') || item.host === query.get('host_name')) &&
    (!query.get('group') || hostById.get(item.host_id).groups.includes(query.get('group'))) &&
    (!query.get('key') || fits(query.get('key')))
  );
}

function api(path, query) {
  if (PEOPLE[path] !== undefined) return PEOPLE[path];
  const id = path.split('/').pop();
  if (path === '/api/overview') return overview();
  if (path === '/api/overview/hour') {
    const { time, values_per_second: rate, store: { used_bytes: used, retention_days: days } } = overview();
    const points = Array.from({ length: 120 }, (_, n) => ({ at: time - (119 - n) * 30_000, values_per_second: rate * (0.9 + 0.1 * Math.sin(n / 7)), used_bytes: used - (119 - n) * 200_000, retention_days: days === null ? null : days + (119 - n) / 200 }));
    return { points };
  }
  if (path === '/api/hosts') return list(data.hosts.filter((h) => !query.get('group') || h.groups.includes(query.get('group'))).map(hostJSON), query, 'hosts', (h) => `${h.host} ${h.name}`);
  if (/^\/api\/hosts\/\d+\/graphs$/.test(path)) return graphs(data.items.filter((i) => i.host_id === path.split('/')[3]).map(itemJSON), query);
  if (path === '/api/states') return states(query);
  if (path.startsWith('/api/hosts/')) return hostById.has(id) ? hostJSON(hostById.get(id)) : null;
  if (path === '/api/items') return withJSON(list(data.items.filter((i) => (!query.get('host') || i.host_id === query.get('host')) && named(i, query)), query, 'items', (i) => `${i.name} ${i.key}`));
  if (path.startsWith('/api/items/')) return itemById.has(id) ? { ...itemJSON(itemById.get(id)), steps: [], description: '', history_days: 31, trends_days: 365 } : null;
  if (path === '/api/values') return values(query);
  if (path === '/api/chart') return chart(query);
  if (path === '/api/problems') return problems(query);
  if (path.startsWith('/api/problems/')) return problemDetail(id);
  if (path === '/api/triggers') return list(data.triggers.filter((t) => !query.get('host') || t.host_id === query.get('host')), query, 'triggers', (t) => t.name);
  if (path === '/api/queue') return queue();
  if (path === '/api/search') return search(query);
  if (path.startsWith('/api/mongo/')) return mongo(path, query);
  if (path === '/api/v1/query_range') return prom(query, true);
  if (path === '/api/v1/query') return prom(query, false);
  if (path === '/api/v1/labels') return { status: 'success', data: ['__name__', 'host', 'key', 'mode'] };
  if (path === '/api/v1/label/host/values') return { status: 'success', data: data.hosts.map((h) => h.host) };
  if (path.startsWith('/api/v1/label/') && !path.includes('__name__')) return { status: 'success', data: [EVIL] };
  if (path === '/api/v1/label/__name__/values') return { status: 'success', data: [...new Set(data.items.map((i) => metricOf(i)))].sort() };
  if (path === '/api/v1/metadata') {
    const item = data.items.find((i) => metricOf(i) === query.get('metric'));
    return { status: 'success', data: item === undefined ? {} : { [query.get('metric')]: [{ type: 'unknown', help: item.name, unit: item.units }] } };
  }
  return null;
}

function metricOf(item) {
  return item.key.replace(/\[.*/, '').replace(/[^a-zA-Z0-9_:]/g, '_');
}

// What can be changed on the page.
function changed(method, url, body) {
  if (url.pathname === '/api/standby') return standby();
  if (url.pathname === '/api/proxies') return { proxies: [{ id: '1', name: 'branch-1', hosts: 12, version: '0.1.0', address: '192.0.2.7', seen_at: Date.now() - 2_000, backlog: false }] };
  if (url.pathname === '/api/alerting/paused') return { paused: false };
  if (url.pathname.startsWith('/api/storage')) return store(method, url.pathname, body);
  if (url.pathname === '/api/problem-updates' && method === 'POST') return updateProblems(body);
  if (url.pathname.startsWith('/api/alert')) return alerts(method, url.pathname, body, url.searchParams);
  return null;
}

async function bodyOf(request) {
  let text = '';
  for await (const chunk of request) text += chunk;
  if (text === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const withJSON = (answer) => ({ ...answer, items: answer.items.map(itemJSON) });

function stream(request, response, query) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(': hello\n\n');
  const ids = query.get('items')?.split(',') ?? [];
  const items = query.get('host') ? data.items.filter((i) => i.host_id === query.get('host')) : ids.map((id) => itemById.get(id)).filter(Boolean);
  const listener = { send: (event, body) => response.write(`event: ${event}\ndata: ${JSON.stringify(body)}\n\n`), items, overview: query.get('overview') === '1' };
  listeners.add(listener);
  request.on('close', () => listeners.delete(listener));
}

function tick() {
  const t = Math.floor(Date.now() / 1000) * 1000;
  for (const item of data.items) if (item.counter && item.value_type === 'unsigned') counters.set(item.id, (counters.get(item.id) ?? 9_007_199_254_740_000n) + BigInt(Math.max(0, Math.round(item.value(t)))));
  const state = overview();
  for (const listener of listeners) {
    const fresh = listener.items.filter((i) => t % i.interval_ms === 0 && i.state === 'ok' && valueAt(i, t) !== null);
    if (fresh.length > 0) listener.send('values', { values: fresh.map((i) => [i.id, t, reading(i, t).value.v]) });
    if (listener.overview) listener.send('overview', state);
  }
}

function fire(seconds) {
  setTimeout(() => {
    data.problems.push(openProblem(data.triggers[2], data.hosts[0], Date.now(), { value: '91.2 %', opdata: 'used 91.2 %' }));
    for (const listener of listeners) listener.send('problems', {});
  }, seconds * 1000);
}

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

function page(path, response) {
  let file = normalize(join(flags.dist, path));
  if (!file.startsWith(normalize(flags.dist)) || !existsSync(file) || statSync(file).isDirectory()) file = join(flags.dist, 'index.html');
  if (!existsSync(file)) return void response.writeHead(404).end('run npm run build first');
  response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-security-policy': POLICY });
  createReadStream(file).pipe(response);
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/api/live') return stream(request, response, url.searchParams);
  if (url.pathname === '/metrics') return response.end(metrics());
  // Opens a problem now, for the browser test.
  if (url.pathname === '/fake/fire') return (fire(0), response.end('fired'));
  if (!url.pathname.startsWith('/api/')) return page(url.pathname, response);
  const body = await bodyOf(request);
  const board = boards(request.method, url, body);
  if (board !== null) return response.writeHead(board[0], { 'content-type': 'application/json' }).end(JSON.stringify(board[1]));
  const answer = changed(request.method, url, body) ?? api(url.pathname, url.searchParams);
  const status = answer === null ? 404 : answer.status === 'error' ? 400 : 200;
  const text = JSON.stringify(answer ?? { error: { code: 'not_found', message: `${url.pathname}: there is no such thing` } });
  response.writeHead(status, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
  response.end(gzipSync(text, { level: 1 }));
});

server.listen(Number(flags.port), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
  setInterval(tick, 1_000);
  if (Number(flags.fire) > 0) fire(Number(flags.fire));
});
