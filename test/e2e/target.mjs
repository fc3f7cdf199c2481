// What is tested: the server at TIDEMARK_URL (its agent port at TIDEMARK_TRAPPER), else the fake one of web/app/dev.

import { execFileSync, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

const FAKE = fileURLToPath(new URL('../../web/app/dev/server.mjs', import.meta.url));

const BIN = process.env.TIDEMARK_BIN ?? fileURLToPath(new URL('../../bin/tidemark', import.meta.url));
const CAPTURE = fileURLToPath(new URL('../../sniff/testdata/node_mixed.pcap', import.meta.url));

/** HOSTILE is a name that runs a script wherever it is taken for HTML. */
export const HOSTILE = `<img src=x onerror="window.__hostile=1">'"\`{{7*7}}`;

export async function startTarget(...flags) {
  if (process.env.TIDEMARK_URL) return realTarget(process.env.TIDEMARK_URL.replace(/\/$/, ''));
  return fakeTarget(flags);
}

async function fakeTarget(flags) {
  const child = spawn(process.execPath, [FAKE, '--port', '0', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const base = await new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the fake server ended with ${code}`)));
    child.stdout.once('data', (line) => resolve(String(line).trim()));
  });
  return {
    base,
    fake: true,
    async fire() {
      await fetch(`${base}/fake/fire`);
      return 'Disk / fills up';
    },
    /** The id of an item whose values are states. */
    async states() {
      return (await (await fetch(`${base}/api/items?search=nginx`)).json()).items[0].id;
    },
    async stop() {
      child.removeAllListeners('exit');
      child.kill();
    },
  };
}

const HOST = 'page-test';
const KEY = 'page.test.value';
const uuid = (n) => String(n).padStart(32, '0').replace(/^0{12}/, '0123456789ab');

// A host with a trapper item and a trigger on it, all with hostile names where people can choose names.
const EXPORT = {
  zabbix_export: {
    version: '6.0',
    groups: [{ uuid: uuid(1), name: 'Page test' }],
    hosts: [
      {
        host: HOST,
        name: HOSTILE,
        groups: [{ name: 'Page test' }],
        items: [
          {
            name: `Value ${HOSTILE}`,
            type: 'TRAP',
            key: KEY,
            delay: '0',
            value_type: 'FLOAT',
            triggers: [{ expression: `last(/${HOST}/${KEY})>10`, name: `Too high ${HOSTILE}`, priority: 'HIGH', manual_close: 'YES' }],
          },
        ],
      },
    ],
  },
};

async function realTarget(base) {
  const response = await fetch(`${base}/api/import`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(EXPORT),
  });
  if (!response.ok) throw new Error(`import of the test host: ${response.status} ${await response.text()}`);
  await send('1');
  await sendRequests(await machine(base));
  return {
    base,
    fake: false,
    async fire() {
      await send('42');
      return 'Too high';
    },
    async states() {
      const zabbix_export = { version: '6.0', groups: EXPORT.zabbix_export.groups, hosts: [{ host: 'page-states', name: 'page-states', groups: [{ name: 'Page test' }], items: [{ name: 'State', type: 'TRAP', key: 'state', delay: '0', value_type: 'CHAR' }] }] };
      const response = await fetch(`${base}/api/import`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ zabbix_export }) });
      if (!response.ok) throw new Error(`import of the host with states: ${response.status} ${await response.text()}`);
      for (const value of ['up', 'down']) await send(value, 'page-states', 'state');
      const { hosts } = await (await fetch(`${base}/api/hosts?search=page-states`)).json();
      return (await (await fetch(`${base}/api/items?host=${hosts[0].id}`)).json()).items[0].id;
    },
    async stop() {
      await send('1'); // The problem recovers, so that the next run can open it again.
    },
  };
}

/** Sends one value as zabbix_sender does. */
async function send(value, host = HOST, key = KEY) {
  const answer = await exchange({ request: 'sender data', data: [{ host, key, value }] });
  if (!answer.includes('processed: 1;')) throw new Error(`the value was not taken: ${answer}`);
}

const INTERVAL_MS = 10_000;
const INTERVALS = 90;
const ADDRESS = '192.0.2.7:27017';

/** machine is the host on which the server runs, as soon as its agent has registered it. */
async function machine(base) {
  for (let tries = 0; tries < 240; tries++) {
    const { hosts } = await (await fetch(`${base}/api/hosts?limit=1000`)).json();
    const found = hosts.find((one) => one.host !== HOST && one.items > 50);
    if (found !== undefined) return found.host;
    await new Promise((done) => setTimeout(done, 250));
  }
  throw new Error('the agent of the server did not register within 60 s');
}

// Sends what an agent would that watches a MongoDB server: in each of the last ninety intervals of 10 s the requests of a capture, whose
// statistics come from the binary itself. In the newest ten intervals they take five times as long.
async function sendRequests(host) {
  const report = JSON.parse(execFileSync(BIN, ['mongo', 'report', '--pcap', CAPTURE, '--json'], { encoding: 'utf8' }));
  const declare = [];
  const items = [];
  const thing = (prefix, labels, values) => {
    for (const [name, type, units, value] of values) {
      const key = `${prefix},${name}]`;
      declare.push({ key, name: key, units, type, interval_ms: INTERVAL_MS, labels });
      items.push({ key, value });
    }
  };
  const measures = (shapes) => [
    ['requests', 'unsigned', '', () => sum(shapes, (s) => s.requests)],
    ['errors', 'unsigned', '', () => sum(shapes, (s) => s.errors)],
    ['time', 'float', 's', (slow) => (slow * sum(shapes, (s) => s.time_ms)) / 1000],
    ['latency', 'binary', '', (slow) => sketch(shapes.filter((s) => s.max_ms > 0), slow)],
    ['bytes.in', 'unsigned', 'B', () => sum(shapes, (s) => s.request_bytes ?? s.requests * 100)],
    ['bytes.out', 'unsigned', 'B', () => sum(shapes, (s) => s.reply_bytes ?? s.requests * 100)],
  ];
  thing(`mongo.instance[${ADDRESS}`, { instance: ADDRESS }, measures(report.shapes));
  for (const s of report.shapes) {
    const [db, ...collection] = s.namespace.split('.');
    const labels = { collection: collection.join('.'), command: s.command, db, fingerprint: s.fingerprint, instance: ADDRESS, namespace: s.namespace, shape: s.shape };
    thing(`mongo.shape[${ADDRESS},${s.fingerprint}`, labels, measures([s]));
  }
  thing(`mongo.client[${ADDRESS},shop,192.0.2.8`, { application: 'shop', client: '192.0.2.8', instance: ADDRESS }, measures(report.shapes).filter(([name]) => name !== 'latency'));
  const newest = Math.floor(Date.now() / INTERVAL_MS) * INTERVAL_MS;
  let id = 0;
  for (let back = INTERVALS - 1; back >= 0; back--) {
    const at = newest - back * INTERVAL_MS;
    const data = items.flatMap(({ key, value }) => {
      const v = value(back < 10 ? 5 : 1);
      return v === null ? [] : [{ host, key, value: String(v), id: ++id, clock: at / 1000, ns: 0 }];
    });
    const answer = await exchange({ request: 'agent data', tidemark: 1, session: uuid(Date.now() % 1e9), host, data, declare });
    if (!answer.includes('failed: 0;')) throw new Error(`requests were not taken: ${answer}`);
  }
}

const sum = (list, of) => list.reduce((left, one) => left + of(one), 0);

/** sketch encodes latencies as docs/protocol/latency-sketch.md says, all of a shape at its median; null for none. */
function sketch(shapes, slow) {
  const counts = new Map();
  const nanos = shapes.map((s) => [Math.round(s.p50_ms * 1e6 * slow), s.requests]);
  for (const [v, n] of nanos) {
    const e = 31 - Math.clz32(v);
    const bucket = (e - 10) * 32 + ((v >>> (e - 5)) & 31);
    counts.set(bucket, (counts.get(bucket) ?? 0) + n);
  }
  if (counts.size === 0) return null;
  const bytes = [1];
  const put = (v) => {
    for (; v > 127; v = Math.floor(v / 128)) bytes.push((v % 128) | 128);
    bytes.push(v);
  };
  const values = nanos.map(([v]) => v);
  put(Math.min(...values));
  put(Math.max(...values) - Math.min(...values));
  put(sum(nanos, ([v, n]) => v * n));
  put(counts.size);
  let last = 0;
  for (const [bucket, n] of [...counts].sort(([a], [b]) => a - b)) {
    put(bucket - last);
    put(n);
    last = bucket;
  }
  return Buffer.from(bytes).toString('base64');
}

/** Sends one request in the agent protocol ("ZBXD", flags, length, reserved, JSON) and gives the answer. */
function exchange(request) {
  const [host, port] = (process.env.TIDEMARK_TRAPPER ?? '127.0.0.1:10051').split(':');
  const body = Buffer.from(JSON.stringify(request));
  const head = Buffer.alloc(13);
  head.write('ZBXD\x01');
  head.writeUInt32LE(body.length, 5);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host);
    let answer = '';
    socket.on('error', reject);
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('close', () => resolve(answer.slice(13)));
    socket.end(Buffer.concat([head, body]));
  });
}
