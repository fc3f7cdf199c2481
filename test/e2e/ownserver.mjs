// A server of its own in an empty folder, without an agent: nothing is in it but what a test puts there.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BIN = process.env.TIDEMARK_BIN ?? '../../bin/tidemark';

export async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-own-'));
  const child = spawn(BIN, ['server', '--data', join(folder, 'data'), '--http', '127.0.0.1:0', '--trapper', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const { base, trapper } = await new Promise((resolve, reject) => {
    const look = (text) => {
      said += text;
      const base = /(http:\/\/127\.0\.0\.1:\d+)/.exec(said)?.[1];
      const ports = [...said.matchAll(/127\.0\.0\.1:(\d+)/g)].map((match) => Number(match[1]));
      const trapper = ports.find((one) => base !== undefined && one !== Number(new URL(base).port));
      if (trapper !== undefined) resolve({ base, trapper });
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  return {
    base,
    /** Sends values as zabbix_sender does, and gives the answer. */
    send(data) {
      const body = Buffer.from(JSON.stringify({ request: 'sender data', data }));
      const head = Buffer.alloc(13);
      head.write('ZBXD\x01');
      head.writeUInt32LE(body.length, 5);
      return new Promise((resolve, reject) => {
        const socket = connect(trapper, '127.0.0.1');
        let answer = '';
        socket.on('error', reject);
        socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
        socket.on('close', () => resolve(answer.slice(13)));
        socket.end(Buffer.concat([head, body]));
      });
    },
    async stop() {
      child.removeAllListeners('exit');
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
