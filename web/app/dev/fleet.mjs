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

// smooth is the mean over minutes before t, as the kernel's load averages are.
function smooth(f, t, minutes) {
  let sum = 0;
  for (let n = 0; n < 12; n++) sum += f(t - n * minutes * 5_000);
  return sum / 12;
}

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
      map: more.map,
      value: (t) => value(t, seed),
    });
  };
  const load = (t) => 0.04 + 0.25 * noise(`${host.host}cpu`, t) * (0.4 + busy / 100) + 0.5 * spike(`${host.host}cpu`, t) + 0.1 * day(t);
  const shares = { user: 0.6, system: 0.2, iowait: 0.08, nice: 0.02, irq: 0.02, softirq: 0.04, steal: 0.01 };
  const modes = { used: 1, user: 0.62, nice: 0.02, system: 0.22, iowait: 0.08, irq: 0.02, softirq: 0.04, steal: 0.01, guest: 0, idle: -1 };
  for (const [mode, share] of Object.entries(modes)) {
    const value = (busy) => (t, seed) => (mode === 'idle' ? 100 - busy(t) : busy(t) * share * (mode === 'used' ? 1 : 0.8 + 0.4 * noise(seed, t)));
    add(`system.cpu.util[all,${mode},last]`, `CPU: ${mode}`, '%', 'float', { mode, section: 'cpu' }, value((t) => Math.min(100, 100 * load(t))));
    for (let core = 0; core < host.cores; core++) {
      const own = (t) => Math.min(100, 100 * load(t) * (0.4 + 1.2 * noise(`${host.host}core${core}`, t)));
      add(`system.cpu.util[${core},${mode},last]`, `CPU ${core}: ${mode}`, '%', 'float', { cpu: String(core), mode, section: 'cpu' }, value(own));
    }
  }
  for (const n of [1, 5, 15]) add(`system.cpu.load[all,avg${n}]`, `Load average, ${n} min`, '', 'float', { mode: `avg${n}`, section: 'cpu' }, (t) => host.cores * (smooth(load, t, n) * 0.8 + 0.1 * noise(`${host.host}load`, t / n)));
  add('system.cpu.num', 'Processors online', '', 'unsigned', { section: 'cpu' }, () => host.cores, { interval: 60_000 });
  add('system.cpu.switches', 'Context switches', '', 'unsigned', { section: 'cpu', type: 'counter' }, (t, seed) => 3000 + 22_000 * load(t) * noise(seed, t));
  add('system.cpu.intr', 'Interrupts', '', 'unsigned', { section: 'cpu', type: 'counter' }, (t, seed) => 1500 + 9_000 * load(t) * noise(seed, t));
  const total = host.cores * 4 * GiB;
  const anon = (t) => total * (0.28 + 0.3 * noise(`${host.host}mem`, t / 4));
  const cached = (t) => total * (0.2 + 0.1 * noise(`${host.host}cache`, t / 4));
  const memory = (mode, name, value, more) => add(`vm.memory.size[${mode}]`, `Memory: ${name}`, mode.startsWith('p') ? '%' : 'B', mode.startsWith('p') ? 'float' : 'unsigned', { mode, section: 'memory' }, value, more);
  memory('total', 'total', () => total, { interval: 60_000 });
  memory('available', 'available', (t) => total * 0.95 - anon(t));
  memory('free', 'free', (t) => total * 0.93 - anon(t) - cached(t));
  memory('buffers', 'buffers', () => total * 0.02);
  memory('cached', 'page cache', cached);
  memory('slab', 'kernel objects', () => total * 0.03);
  memory('anon', 'of programs', anon);
  memory('shared', 'shared', () => total * 0.01);
  memory('dirty', 'to be written', (t, seed) => 4e7 * noise(seed, t));
  memory('writeback', 'being written', (t, seed) => 2e6 * spike(seed, t));
  memory('committed', 'promised', (t) => anon(t) * 1.6);
  memory('pavailable', 'available, share', (t) => 95 - (100 * anon(t)) / total);
  add('vm.faults[major]', 'Page faults that read from disk', '', 'unsigned', { mode: 'major', section: 'memory', type: 'counter' }, (t, seed) => 12 * spike(seed, t));
  add('vm.oom', 'Processes killed for want of memory', '', 'unsigned', { section: 'memory', type: 'counter' }, () => 0);
  add('system.swap.size[,total]', 'Swap: total', 'B', 'unsigned', { mode: 'total', section: 'swap' }, () => 2 * GiB, { interval: 60_000 });
  add('system.swap.size[,used]', 'Swap: used', 'B', 'unsigned', { mode: 'used', section: 'swap' }, (t) => 0.1 * GiB + 0.2 * GiB * noise(`${host.host}swap`, t / 9));
  add('system.swap.size[,free]', 'Swap: free', 'B', 'unsigned', { mode: 'free', section: 'swap' }, (t) => 1.9 * GiB - 0.2 * GiB * noise(`${host.host}swap`, t / 9));
  add('system.swap.size[,pfree]', 'Swap: free, share', '%', 'float', { mode: 'pfree', section: 'swap' }, (t) => 95 - 10 * noise(`${host.host}swap`, t / 9));
  add('system.swap.in', 'Pages read from swap', '', 'unsigned', { section: 'swap', type: 'counter' }, (t, seed) => 40 * spike(seed, t));
  add('system.swap.out', 'Pages written to swap', '', 'unsigned', { section: 'swap', type: 'counter' }, (t, seed) => 30 * spike(seed, t));
  for (const mount of host.mounts) {
    const labels = (mode) => ({ fsname: mount, fstype: 'ext4', mode, section: 'filesystem' });
    const size = (40 + (hash(mount) % 400)) * GiB;
    const share = (t) => 35 + (hash(mount + host.host) % 50) + 2 * noise(mount + host.host, t / 20);
    add(`vfs.fs.size[${mount},total]`, `${mount}: size`, 'B', 'unsigned', labels('total'), () => size, { interval: 60_000 });
    add(`vfs.fs.size[${mount},free]`, `${mount}: free`, 'B', 'unsigned', labels('free'), (t) => size * (1 - share(t) / 100));
    add(`vfs.fs.size[${mount},used]`, `${mount}: used`, 'B', 'unsigned', labels('used'), (t) => (size * share(t)) / 100);
    add(`vfs.fs.size[${mount},pused]`, `${mount}: used, share`, '%', 'float', labels('pused'), share);
    add(`vfs.fs.inode[${mount},pfree]`, `${mount}: free inodes, share`, '%', 'float', labels('pfree'), (t, seed) => 95 - 3 * noise(seed, t / 20));
  }
  for (const devname of host.disks) {
    const labels = (mode, type) => ({ devname, section: 'disk', ...(mode ? { mode } : {}), ...(type ? { type } : {}) });
    for (const [way, word, scale] of [['read', 'read', 4e6], ['write', 'written', 9e6]]) {
      add(`vfs.dev.${way}[${devname},bytes]`, `${devname}: bytes ${word}`, 'B', 'unsigned', labels('bytes', 'counter'), (t, seed) => scale * noise(seed, t) * noise(seed, t / 3) + scale * 9 * spike(seed, t));
      add(`vfs.dev.${way}[${devname},operations]`, `${devname}: operations, ${way}`, '', 'unsigned', labels('operations', 'counter'), (t, seed) => 200 * noise(seed, t));
      add(`vfs.dev.${way}.await[${devname}]`, `${devname}: time per ${way}`, 's', 'float', labels(), (t, seed) => 0.0004 + 0.002 * noise(seed, t) + 0.03 * spike(seed, t));
    }
    add(`vfs.dev.util[${devname}]`, `${devname}: busy`, '%', 'float', labels(), (t, seed) => Math.min(100, 20 * noise(seed, t) + 60 * spike(seed, t)));
    add(`vfs.dev.queue[${devname}]`, `${devname}: requests under way`, '', 'float', labels(), (t, seed) => 3 * noise(seed, t) * noise(seed, t));
  }
  for (const ifname of host.nets) {
    const labels = (mode) => ({ ifname, mode, section: 'network', type: 'counter' });
    const size = ifname === 'lo' ? 2e5 : 6e6;
    for (const [way, word] of [['in', 'received'], ['out', 'sent']]) {
      add(`net.if.${way}[${ifname}]`, `${ifname}: bytes ${word}`, 'B', 'unsigned', labels('bytes'), (t, seed) => size * noise(seed, t) + size * 4 * spike(seed, t, 70_000));
      add(`net.if.${way}[${ifname},packets]`, `${ifname}: packets, ${word}`, '', 'unsigned', labels('packets'), (t, seed) => (size / 800) * noise(seed, t));
      if (ifname === 'lo') continue;
      add(`net.if.${way}[${ifname},errors]`, `${ifname}: errors, ${word}`, '', 'unsigned', labels('errors'), () => 0);
      add(`net.if.${way}[${ifname},dropped]`, `${ifname}: dropped, ${word}`, '', 'unsigned', labels('dropped'), (t, seed) => (spike(seed, t) > 0.7 ? 3 : 0));
    }
  }
  add('proc.num[]', 'Processes', '', 'unsigned', { section: 'process' }, (t, seed) => 230 + 60 * noise(seed, t / 3));
  add('system.procs[running]', 'Processes running', '', 'unsigned', { mode: 'running', section: 'process' }, (t, seed) => 1 + 6 * noise(seed, t));
  add('system.procs[blocked]', 'Processes waiting for I/O', '', 'unsigned', { mode: 'blocked', section: 'process' }, (t, seed) => 3 * spike(seed, t));
  add('system.procs[forks]', 'Processes started', '', 'unsigned', { mode: 'forks', section: 'process', type: 'counter' }, (t, seed) => 14 * noise(seed, t));
  add('proc.num[,,zomb]', 'Processes that nobody has waited for', '', 'unsigned', { mode: 'zomb', section: 'process' }, () => 0, { interval: 60_000 });
  add('kernel.maxproc', 'Processes, limit', '', 'unsigned', { section: 'process' }, () => 4_194_304, { interval: 60_000 });
  for (const resource of ['cpu', 'memory', 'io']) {
    for (const kind of resource === 'cpu' ? ['some'] : ['some', 'full']) {
      const labels = (mode, type) => ({ resource, kind, mode, section: 'pressure', ...(type ? { type } : {}) });
      const stall = (t, seed) => 3 * noise(seed, t) * noise(seed, t) + 20 * spike(resource + host.host, t) * (kind === 'full' ? 0.4 : 1);
      add(`system.pressure[${resource},${kind},avg10]`, `${kind} work waits for ${resource}, 10 s mean`, '%', 'float', labels('avg10'), stall);
      add(`system.pressure[${resource},${kind},total]`, `${kind} work waits for ${resource}, total time`, 's', 'float', labels('total', 'counter'), (t, seed) => stall(t, seed) / 100);
    }
  }
  const system = (key, name, type, value, more = {}) => add(key, name, more.units ?? '', type, { section: more.section ?? 'system' }, value, more);
  system('agent.ping', 'Agent answers', 'unsigned', () => 1);
  system('system.uptime', 'Uptime', 'unsigned', (t) => (t - 1.79e12) / 1000 + (hash(host.host) % 5e6), { units: 'uptime' });
  system('system.localtime', 'Clock', 'unsigned', (t) => t / 1000, { units: 'unixtime' });
  system('system.users.num', 'Users logged in', 'unsigned', () => 2, { interval: 60_000 });
  system('kernel.openfiles', 'Open files', 'unsigned', (t, seed) => 4000 + 900 * noise(seed, t / 2));
  system('kernel.maxfiles', 'Open files, limit', 'unsigned', () => 9.2e18, { interval: 60_000 });
  system('system.boottime', 'Started at', 'unsigned', () => 1.79e9 - (hash(host.host) % 5e6), { units: 'unixtime', interval: 60_000 });
  system('system.uname', 'Kernel and machine', 'char', () => 'Linux 6.1.0-28-amd64 #1 SMP PREEMPT_DYNAMIC x86_64', { interval: 3_600_000 });
  system('system.hostname', 'Host name', 'char', () => host.host, { interval: 3_600_000 });
  system('system.sw.os[name]', 'Operating system', 'char', () => 'Debian GNU/Linux 12 (bookworm)', { interval: 3_600_000 });
  system('agent.version', 'Agent: version', 'char', () => '0.1.0', { section: 'agent', interval: 60_000 });
  system('agent.cpu.util', 'Agent: CPU use of its process, of one core', 'float', (t, seed) => 0.6 + 0.5 * noise(seed, t), { section: 'agent', units: '%' });
  system('agent.memory', 'Agent: memory of its process', 'unsigned', (t, seed) => 2.1e7 + 1e6 * noise(seed, t / 3), { section: 'agent', units: 'B' });
  system('agent.buffer[rows]', 'Agent: values that wait for the server', 'unsigned', (t, seed) => 200 * noise(seed, t), { section: 'agent' });
  for (const unit of ['nginx', 'mongod']) system(`systemd.unit.state[${unit}]`, `${unit}: state`, 'unsigned', (t, seed) => (spike(seed, t) > 0.5 ? 1 : 0), { configured: true, section: 'services', map: ['running', 'stopped'] });
  system('log[/var/log/syslog]', 'System log', 'log', () => 'a line', { configured: true });
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
    make('CPU is busy for 5 minutes', 'warning', `avg(/${host.host}/system.cpu.util[all,used,last],5m)>90`),
    make('Memory is nearly used up', 'average', `max(/${host.host}/vm.memory.size[pavailable],5m)<5`),
    make('Disk / fills up', 'high', `last(/${host.host}/vfs.fs.size[/,pused])>90`),
    make('Agent is silent', 'high', `nodata(/${host.host}/agent.ping,1m)=1`),
    make('Traffic on eth0 is unusual', 'information', `avg(/${host.host}/net.if.in[eth0],1m)>5M`),
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
    suppression: values.suppression,
    closable: true,
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
    if (hosts.length > 1 && dice === 15) problems.push(openProblem(own[1], host, now - 93_000_000, { value: '95.9 %', suppression: { until: now + 3_600_000 } }));
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
