// What is tested: the server at TIDEMARK_URL (its agent port at TIDEMARK_TRAPPER), else the fake one of web/app/dev.

import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

const FAKE = fileURLToPath(new URL('../../web/app/dev/server.mjs', import.meta.url));

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
            triggers: [{ expression: `last(/${HOST}/${KEY})>10`, name: `Too high ${HOSTILE}`, priority: 'HIGH' }],
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
  return {
    base,
    fake: false,
    async fire() {
      await send('42');
      return 'Too high';
    },
    async stop() {
      await send('1'); // The problem recovers, so that the next run can open it again.
    },
  };
}

/** Sends one value as zabbix_sender does: "ZBXD", flags, length, reserved, JSON. */
function send(value) {
  const [host, port] = (process.env.TIDEMARK_TRAPPER ?? '127.0.0.1:10051').split(':');
  const body = Buffer.from(JSON.stringify({ request: 'sender data', data: [{ host: HOST, key: KEY, value }] }));
  const head = Buffer.alloc(13);
  head.write('ZBXD\x01');
  head.writeUInt32LE(body.length, 5);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host);
    let answer = '';
    socket.on('error', reject);
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
    socket.on('close', () => (answer.includes('processed: 1;') ? resolve() : reject(new Error(`the value was not taken: ${answer.slice(13)}`))));
    socket.end(Buffer.concat([head, body]));
  });
}
