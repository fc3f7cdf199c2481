// Rules of network discovery in words.

import type { NetCheck, NetStatus } from '../api/network.ts';

/** checkName is by what a rule names a check: its name, or its type and key. */
export const checkName = (check: NetCheck): string => check.name || (check.key ? `${check.type} ${check.key}` : check.ports ? `${check.type} ${check.ports}` : check.type);

/** stateWords says in words how the work on a rule goes; ago writes how long ago a time is: "12 s", "now". */
export function stateWords(state: NetStatus | undefined, ago: (seconds: number) => string): string {
  if (state === undefined) return '';
  if (state.disabled) return 'off';
  if (state.proxy) return state.last_at ? `proxy ${state.proxy} told something ${past(ago(state.last_at))}` : `proxy ${state.proxy} has not told anything yet`;
  if (state.running) return `looking: ${state.done.toLocaleString('en-US')} of ${state.addresses.toLocaleString('en-US')}`;
  return state.last_at ? `looked ${past(ago(state.last_at))}` : 'has not looked yet';
}

const past = (age: string): string => (age === 'now' ? 'just now' : `${age} ago`);
