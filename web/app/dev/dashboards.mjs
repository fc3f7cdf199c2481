// Dashboards of the fake server: kept in memory with their versions, conflicts as the real server has them.

const EVIL = `<img src=x onerror="window.__hostile=1">'"\`{{7*7}}`;

/** dashboards gives a function that answers calls, [status, body] or null for another path. */
export function dashboards(hosts, now) {
  const all = new Map();
  let last = 0;
  const save = (id, dashboard, note) => {
    const versions = all.get(id) ?? [];
    versions.push({ id, name: dashboard.name, everyone: dashboard.everyone === true, owner: dashboard.owner ?? `ada ${EVIL}`, private: dashboard.private === true, groups: dashboard.groups ?? [], editable: true, version: versions.length + 1, saved_at: Date.now(), saved_by: `ada ${EVIL}`, note: note ?? '', dashboard });
    all.set(id, versions);
    return versions.at(-1);
  };
  const head = ({ dashboard: _left, ...rest }) => rest;
  const fail = (status, code, message) => [status, { error: { code, message } }];
  const make = (dashboard, note) => save(String(++last), dashboard, note);
  make(sample(hosts), 'first');
  all.get('1')[0].saved_at = now - 86_400_000;

  return (method, url, body) => {
    const path = url.pathname;
    if (path === '/api/dashboard-file') return [200, { dashboards: [...all.values()].map((versions) => versions.at(-1).dashboard) }];
    if (path === '/api/dashboard-file/plan') return [200, { steps: [{ name: 'From a file', what: 'create' }, { name: `Fleet ${EVIL}`, what: 'change', differences: ['- range: 1h', `+ range: ${EVIL}`] }] }];
    if (!/^\/api\/dashboards(\/|$)/.test(path)) return null;
    const [, , , id, rest] = path.split('/');
    if (id === undefined && method === 'GET') return [200, { dashboards: [...all.values()].map((versions) => head(versions.at(-1))) }];
    if (id === undefined) return [200, head(make(body.dashboard, body.note))];
    const versions = all.get(id);
    if (versions === undefined) return fail(404, 'not_found', `dashboard ${id}: not found`);
    const newest = versions.at(-1);
    if (rest === 'versions') return [200, { dashboards: [...versions].reverse().map(head) }];
    if (method === 'DELETE') return all.delete(id) && [200, {}];
    if (method === 'PUT') {
      if (body.version !== newest.version) return fail(409, 'conflict', `dashboard "${newest.name}": changed meanwhile; you changed version ${body.version}, and version ${newest.version} was saved since`);
      return [200, head(save(id, body.dashboard, body.note))];
    }
    const wanted = Number(url.searchParams.get('version')) || newest.version;
    return versions[wanted - 1] === undefined ? fail(404, 'not_found', 'no such version') : [200, { ...versions[wanted - 1], newest: newest.version }];
  };
}

function sample(hosts) {
  const host = hosts[0].host;
  const group = hosts[0].groups[0];
  return {
    name: `Fleet ${EVIL}`,
    description: 'How the machines are',
    everyone: true,
    variables: [{ name: 'host', title: 'Host', kind: 'host', default: host }, { name: 'group', title: 'Group', kind: 'group', default: group }],
    widgets: [
      { kind: 'number', title: 'CPU', x: 0, y: 0, w: 4, h: 3, items: [{ host: '$host', key: 'system.cpu.util*' }], thresholds: [{ value: 0, severity: 'warning' }] },
      { kind: 'number', title: 'Load of all', x: 4, y: 0, w: 4, h: 3, queries: [{ expr: 'sum(system_cpu_load)' }] },
      { kind: 'text', x: 8, y: 0, w: 16, h: 3, text: `# What this shows\n- the host chosen above and **its group**\n- see [problems](/problems), \`${EVIL}\`` },
      { kind: 'chart', title: 'Load', x: 0, y: 3, w: 12, h: 7, items: [{ host: '$host', key: 'system.cpu.load*' }] },
      { kind: 'chart', title: 'Load of the group', x: 12, y: 3, w: 12, h: 7, queries: [{ expr: 'system_cpu_load{host="$host"}', legend: '{{host}}' }] },
      { kind: 'problems', title: 'Problems', x: 0, y: 10, w: 12, h: 7, limit: 6 },
      { kind: 'graph', x: 12, y: 10, w: 12, h: 7, host: '$host', graph: 'Load' },
      { kind: 'table', title: 'Network', x: 0, y: 17, w: 12, h: 6, items: [{ host: '$host', key: 'net.if*' }] },
      { kind: 'timeline', title: 'States', x: 12, y: 17, w: 12, h: 6, items: [{ host: '$host', key: 'systemd.unit.state*' }] },
      { kind: 'log', title: 'Log', x: 0, y: 23, w: 24, h: 8, items: [{ host: '$host', key: 'log*' }] },
    ],
  };
}

const STATES = ['starting', 'running', `stopped ${EVIL}`];

/** states makes up what /api/states answers. */
export function states(query) {
  const from = Number(query.get('from'));
  const to = Math.min(Number(query.get('to')), Date.now());
  const step = (to - from) / 7;
  const items = query.get('items').split(',').map((id, n) => ({
    id,
    truncated: n === 2,
    states: Array.from({ length: 7 }, (_one, i) => ({ from: Math.round(from + i * step), to: Math.round(from + (i + 1) * step), value: String(i % STATES.length), mapped: STATES[(i + 1) % STATES.length], count: 9 })),
  }));
  return { from, to, items };
}

/** graphs makes up the graphs of a template. */
export function graphs(items, query) {
  const of = (word) => items.filter((item) => item.key.startsWith(word) && (item.value_type === 'float' || item.value_type === 'unsigned')).slice(0, 6);
  const all = [
    { name: 'Load', stack: false, items: of('system.cpu.load') },
    { name: `Network ${EVIL}`, stack: true, items: of('net.if') },
  ].filter((graph) => graph.items.length > 0);
  return { graphs: all.filter((graph) => !query.get('name') || graph.name === query.get('name')), left: 0, empty: 1 };
}

const LINES = ['started', 'WARN: the disk is nearly full', 'connection of 192.0.2.7 failed', `a line with ${EVIL}`, 'request done in 12 ms'];
const LEVELS = ['information', 'warning', 'error', 'information', 'information'];

/** logLines makes up the values of a text item. */
export function logLines(query, to, oldest) {
  const found = [];
  const word = (query.get('search') ?? '').toLowerCase();
  const least = ['', 'information', 'warning', 'error'].indexOf(query.get('level') ?? '');
  for (let t = Math.floor(to / 4_000) * 4_000, n = t / 4_000; t >= oldest && found.length < Number(query.get('limit') ?? 100) && n > 0; t -= 4_000, n--) {
    const v = LINES[n % LINES.length];
    if (!v.toLowerCase().includes(word) || ['', 'information', 'warning', 'error'].indexOf(LEVELS[n % LINES.length]) < least) continue;
    found.push({ at_ns: `${t}000000`, at: t, value: { t: 'log', v, level: LEVELS[n % LINES.length] } });
  }
  return found;
}
