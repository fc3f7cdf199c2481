// The address for agents and senders that commands on the page name.

import { useCell } from './cell.ts';
import { me } from './me.ts';

const USUAL_PORT = '10051';
const ALL = ['', '0.0.0.0', '[::]'];

export interface Trapper {
  /** Host and port, as an agent takes them. */
  address: string;
  host: string;
  port: string;
  /** Only programs on the server's own machine reach it. */
  loopback: boolean;
}

/** trapperOf makes of the address on which the server listens the one for others; browser is the server's name in the browser's address. */
export function trapperOf(listen: string | undefined, browser: string): Trapper {
  const found = /^(.*):(\d+)$/.exec(listen ?? '');
  const port = found?.[2] ?? USUAL_PORT;
  const own = found?.[1] ?? '';
  const host = ALL.includes(own) ? browser : own;
  return { address: `${host}:${port}`, host, port, loopback: /^(127\.|\[::1\]$)/.test(own) };
}

export function useTrapper(): Trapper {
  return trapperOf(useCell(me)?.trapper, location.hostname);
}
