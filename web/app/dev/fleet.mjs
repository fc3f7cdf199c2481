// Hosts, items, triggers and problems of the fake server.

import { day, hash, noise, spike } from './signal.mjs';

const GiB = 1024 ** 3;
const HOSTILE = '<img src=x onerror="window.__hostile=1">';

/** fleet makes count hosts; the first is the machine itself. */
export function fleet(count, now) {
  const hosts = [makeHost(0, 'local', 'This machine', ['Linux servers'], now)];
  const kinds = [
    ['db', 'Databases', 12],
    ['web', 'Web', 24],
    ['app', 'Applications', 30],
    ['cache', 'Caches', 6],
    ['edge', 'Edge', 9],
  ];
  for (const [prefix, group, size] of kinds) {
    for (let n = 1; n <= size && hosts.length < count; n++) hosts.push(makeHost(hosts.length, `${prefix}-${n}`, `${prefix}-${n}`, [group], now));
  }
  if (count > 60) hosts[7].name = HOSTILE;
  const items = hosts.flatMap((host) => itemsOf(host));
  const triggers = hosts.flatMap((host) => triggersOf(host));
  return { hosts, items, triggers, problems: problemsOf(hosts, triggers, now) };
}

function makeHost(n, host, name, groups, now) {
  const silent = n > 0 && n % 29 === 0;
  return {
    id: String(10 + n),
    host,
    name,
    enabled: true,
    groups,
    templates: ['Linux by Tidemark agent'],
    tags: n % 3 === 1 ? [{ tag: 'service', value: 'shop' }, { tag: 'site', value: 'fra' }] : [],
    silent,
    unknown: n > 0 && n % 41 === 0,
    last_seen: silent ? now - 900_000 : null,
    metadata: 'Linux',
    macros: [{ macro: '{$DISK.MAX}', value: '90' }],
    cores: n === 0 ? 8 : 4,
    disks: n === 0 ? ['nvme0n1', 'sda'] : ['sda'],
    nets: n === 0 ? ['eth0', 'wlan0', 'lo'] : ['eth0', 'lo'],
    mounts: n === 0 ? ['/', '/home', '/var/lib/mongodb'] : ['/'],
  };
}

let nextItem = 1000;

function itemsOf(host) {
  const items = [];
  const busy = hash(host.host) % 100;
  const add = (key, name, units, type, labels, value, more = {}) => {
    const seed = `${host.host}/${key}`;
    items.push({
      id: String(nextItem++),
      host_id: host.id,
      host: host.host,
      key,
      name,
      value_type: type,
      units,
      kind: more.configured ? 'configured' : 'declared',
      labels,
      interval_ms: more.interval ?? 1_000,
      enabled: true,
      state: more.error ? 'unsupported' : 'ok',
      error: more.error ?? '',
      counter: labels?.type === 'counter',
      value: (t) => value(t, seed),
    });
  };
  const load = (t) => 0.04 + 0.25 * noise(`${host.host}cpu`, t) * (0.4 + busy / 100) + 0.5 * spike(`${host.host}cpu`, t) + 0.1 * day(t);
  const shares = { user: 0.6, system: 0.2, iowait: 0.08, nice: 0.02, irq: 0.02, softirq: 0.04, steal: 0.01 };
  add('system.cpu.util', 'CPU utilisation', '%', 'float', null, (t) => Math.min(100, 100 * load(t)));
  for (const [mode, share] of Object.entries(shares)) {
    add(`system.cpu.util[,${mode}]`, `CPU ${mode} time`, '%', 'float', { mode }, (t, seed) => Math.min(100, 100 * load(t)) * share * (0.8 + 0.4 * noise(seed, t)));
  }
  add('system.cpu.util[,idle]', 'CPU idle time', '%', 'float', { mode: 'idle' }, (t) => Math.max(0, 100 - 100 * load(t)));
  for (let core = 0; core < host.cores; core++) {
    add(`system.cpu.util[${core}]`, `CPU ${core} utilisation`, '%', 'float', { cpu: String(core) }, (t, seed) => Math.min(100, 100 * load(t) * (0.4 + 1.2 * noise(seed, t))));
  }
  for (const n of [1, 5, 15]) add(`system.cpu.load[all,avg${n}]`, `Load average (${n} min)`, '', 'float', null, (t) => host.cores * (load(t - n * 10_000) * 0.7 + 0.2 * noise(`${host.host}load`, t / n)));
  add('system.cpu.switches', 'Context switches', '/s', 'float', null, (t, seed) => 3000 + 22_000 * load(t) * noise(seed, t));
  add('system.cpu.intr', 'Interrupts', '/s', 'float', null, (t, seed) => 1500 + 9_000 * load(t) * noise(seed, t));
  const total = host.cores * 4 * GiB;
  const used = (t) => total * (0.28 + 0.3 * noise(`${host.host}mem`, t / 4));
  const cached = (t) => total * (0.2 + 0.1 * noise(`${host.host}cache`, t / 4));
  add('vm.memory.size[total]', 'Total memory', 'B', 'unsigned', null, () => total, { interval: 3_600_000 });
  add('vm.memory.size[used]', 'Used memory', 'B', 'unsigned', { mode: 'used' }, used);
  add('vm.memory.size[cached]', 'Cached memory', 'B', 'unsigned', { mode: 'cached' }, cached);
  add('vm.memory.size[buffers]', 'Buffers', 'B', 'unsigned', { mode: 'buffers' }, () => total * 0.02);
  add('vm.memory.size[free]', 'Free memory', 'B', 'unsigned', { mode: 'free' }, (t) => total * 0.97 - used(t) - cached(t));
  add('vm.memory.size[available]', 'Available memory', 'B', 'unsigned', { mode: 'available' }, (t) => total - used(t));
  add('vm.memory.util', 'Memory utilisation', '%', 'float', null, (t) => (100 * used(t)) / total);
  add('system.swap.size[,used]', 'Swap used', 'B', 'unsigned', { mode: 'used' }, (t) => 0.1 * GiB + 0.2 * GiB * noise(`${host.host}swap`, t / 9));
  add('system.swap.size[,free]', 'Swap free', 'B', 'unsigned', { mode: 'free' }, (t) => 1.9 * GiB - 0.2 * GiB * noise(`${host.host}swap`, t / 9));
  for (const mount of host.mounts) {
    const size = (40 + (hash(mount) % 400)) * GiB;
    const share = (t, seed) => 35 + (hash(seed.replace(/,.*/, '')) % 50) + 2 * noise(mount + host.host, t / 20);
    add(`vfs.fs.size[${mount},pused]`, `${mount}: space used, share`, '%', 'float', { fsname: mount }, share);
    add(`vfs.fs.size[${mount},used]`, `${mount}: space used`, 'B', 'unsigned', { fsname: mount }, (t, seed) => (size * share(t, seed)) / 100);
    add(`vfs.fs.size[${mount},total]`, `${mount}: size`, 'B', 'unsigned', { fsname: mount }, () => size, { interval: 3_600_000 });
    add(`vfs.fs.inode[${mount},pused]`, `${mount}: inodes used, share`, '%', 'float', { fsname: mount }, (t, seed) => 5 + 3 * noise(seed, t / 20));
  }
  for (const device of host.disks) {
    add(`vfs.dev.read[${device},bytes]`, `${device}: read`, 'B', 'unsigned', { device, type: 'counter' }, (t, seed) => 4e6 * noise(seed, t) * noise(seed, t / 3) + 9e7 * spike(seed, t));
    add(`vfs.dev.write[${device},bytes]`, `${device}: written`, 'B', 'unsigned', { device, type: 'counter' }, (t, seed) => 9e6 * noise(seed, t) + 5e7 * spike(seed, t, 90_000));
    add(`vfs.dev.read[${device},operations]`, `${device}: reads`, '', 'unsigned', { device, type: 'counter' }, (t, seed) => 140 * noise(seed, t));
    add(`vfs.dev.write[${device},operations]`, `${device}: writes`, '', 'unsigned', { device, type: 'counter' }, (t, seed) => 260 * noise(seed, t));
    add(`vfs.dev.util[${device}]`, `${device}: busy`, '%', 'float', { device }, (t, seed) => Math.min(100, 20 * noise(seed, t) + 60 * spike(seed, t)));
  }
  for (const name of host.nets) {
    const size = name === 'lo' ? 2e5 : 6e6;
    for (const way of ['in', 'out']) {
      add(`net.if.${way}[${name},bytes]`, `${name}: bytes ${way}`, 'B', 'unsigned', { interface: name, type: 'counter' }, (t, seed) => size * noise(seed, t) + size * 4 * spike(seed, t, 70_000));
      add(`net.if.${way}[${name},packets]`, `${name}: packets ${way}`, '', 'unsigned', { interface: name, type: 'counter' }, (t, seed) => (size / 800) * noise(seed, t));
      add(`net.if.${way}[${name},errors]`, `${name}: errors ${way}`, '', 'unsigned', { interface: name, type: 'counter' }, () => 0);
      add(`net.if.${way}[${name},dropped]`, `${name}: drops ${way}`, '', 'unsigned', { interface: name, type: 'counter' }, (t, seed) => (spike(seed, t) > 0.7 ? 3 : 0));
    }
  }
  add('proc.num', 'Processes', '', 'unsigned', null, (t, seed) => Math.round(230 + 60 * noise(seed, t / 3)));
  add('proc.num[,,run]', 'Running processes', '', 'unsigned', null, (t, seed) => Math.round(1 + 6 * noise(seed, t)));
  add('kernel.openfiles', 'Open files', '', 'unsigned', null, (t, seed) => Math.round(4000 + 900 * noise(seed, t / 2)));
  for (const resource of ['cpu', 'memory', 'io']) {
    for (const kind of resource === 'cpu' ? ['some'] : ['some', 'full']) {
      add(`system.pressure[${resource},${kind}]`, `Pressure ${resource} ${kind}`, '%', 'float', { resource, kind }, (t, seed) => 3 * noise(seed, t) * noise(seed, t) + 20 * spike(resource + host.host, t) * (kind === 'full' ? 0.4 : 1));
    }
  }
  add('system.uptime', 'Uptime', 'uptime', 'unsigned', null, (t) => Math.floor(1_000_000 + (hash(host.host) % 5_000_000) + ((t / 1000) % 1e8) - 8e7 + 8e7 - ((t / 1000) % 1e8)), { interval: 30_000 });
  add('system.uname', 'System', '', 'char', null, () => 'Linux 6.1.0-28-amd64 x86_64', { interval: 3_600_000, configured: true });
  add('system.sw.packages.updates', 'Updates waiting', '', 'text', null, () => 'openssl 3.0.15-1, libc6 2.36-9+deb12u9', { interval: 3_600_000, configured: true });
  add('agent.version', 'Agent version', '', 'char', null, () => '0.1.0', { interval: 60_000 });
  if (host.host.startsWith('db') || host.host === 'local') {
    for (const kind of ['insert', 'query', 'update', 'delete', 'getmore', 'command']) add(`mongodb.opcounters[${kind}]`, `Operations: ${kind}`, 'ops', 'unsigned', { type: 'counter' }, (t, seed) => (hash(kind) % 900) * noise(seed, t), { configured: true });
    add('mongodb.connections[current]', 'Connections', '', 'unsigned', null, (t, seed) => Math.round(80 + 40 * noise(seed, t / 2)), { configured: true });
    add('mongodb.cache.bytes', 'Cache size', 'B', 'unsigned', null, (t, seed) => 6 * GiB + GiB * noise(seed, t / 5), { configured: true });
    add('mongodb.ping', 'Ping', 's', 'float', null, (t, seed) => 0.0004 + 0.0009 * noise(seed, t) + 0.02 * spike(seed, t), { configured: true });
    add('mongodb.oplog.lag', 'Replication lag', 's', 'float', null, () => 0, { configured: true, error: 'no such host: mongodb.internal' });
  }
  return items;
}

let nextTrigger = 1;

function triggersOf(host) {
  const make = (name, severity, expression) => ({
    id: String(nextTrigger++),
    host_id: host.id,
    host: host.host,
    name,
    severity,
    expression,
    recovery_expression: '',
    state: 'ok',
    error: '',
    enabled: true,
    changed_at: null,
  });
  return [
    make('CPU is busy for 5 minutes', 'warning', `avg(/${host.host}/system.cpu.util,5m)>90`),
    make('Memory is nearly used up', 'average', `min(/${host.host}/vm.memory.util,5m)>95`),
    make('Disk / fills up', 'high', `last(/${host.host}/vfs.fs.size[/,pused])>90`),
    make('Agent is silent', 'high', `nodata(/${host.host}/system.cpu.util,1m)=1`),
    make('Traffic on eth0 is unusual', 'information', `avg(/${host.host}/net.if.in[eth0,bytes],1m)>5M`),
    make('Data folder will be full within a day', 'disaster', `last(/${host.host}/vfs.fs.size[/,pused])>97`),
  ];
}

let nextEvent = 1;

/** openProblem makes a problem of a trigger. */
export function openProblem(trigger, host, at, values = {}) {
  trigger.state = 'problem';
  trigger.changed_at = at;
  return {
    event_id: String(nextEvent++),
    trigger_id: trigger.id,
    host_id: host.id,
    host: host.host,
    host_name: host.name,
    name: trigger.name,
    severity: trigger.severity,
    at,
    recovered_at: null,
    opdata: values.opdata ?? '',
    tags: [],
    acknowledged: values.acknowledged ?? false,
    value_now: values.value ?? '93.4 %',
  };
}

function problemsOf(hosts, triggers, now) {
  const problems = [];
  for (const host of hosts) {
    const own = triggers.filter((trigger) => trigger.host_id === host.id);
    if (host.silent) problems.push(openProblem(own[3], host, now - 840_000, { value: 'no data' }));
    const dice = hash(host.host, 5) % 23;
    if (hosts.length > 1 && dice === 3) problems.push(openProblem(own[2], host, now - 5_400_000 - dice * 1000, { value: '94.1 %', opdata: 'used 94.1 %, free 2.4 GiB' }));
    if (hosts.length > 1 && dice === 7) problems.push(openProblem(own[0], host, now - 700_000, { value: '96.2 %', acknowledged: true }));
    if (hosts.length > 1 && dice === 11) problems.push(openProblem(own[4], host, now - 150_000, { value: '7.31 MB/s' }));
    if (hosts.length > 1 && dice === 15) problems.push(openProblem(own[1], host, now - 93_000_000, { value: '95.9 %' }));
    if (hosts.length > 40 && host.host === 'db-4') problems.push(openProblem(own[5], host, now - 260_000, { value: '97.8 %' }));
    for (let n = 0; n < 3; n++) {
      const at = now - 400_000 - (hash(host.host, n) % 9_000_000);
      const past = openProblem(own[n], host, at, {});
      past.recovered_at = at + 60_000 + (hash(host.host, n + 50) % 500_000);
      if (past.recovered_at < now) {
        own[n].state = problems.some((p) => p.trigger_id === own[n].id && p.recovered_at === null) ? 'problem' : 'ok';
        problems.push(past);
      }
    }
  }
  return problems;
}
