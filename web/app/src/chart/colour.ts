// Colours of series. Eight that people with any colour vision can tell apart, given by name, so that a core or a
// disk keeps its colour on every chart of a host.

import { natural } from '../format/natural.ts';

export const SLOTS = 8;

// Names that are on almost every host get their own fixed slot, in an order in which neighbours differ well.
const FIXED: Record<string, number> = {
  user: 0,
  system: 1,
  iowait: 2,
  nice: 4,
  irq: 6,
  softirq: 5,
  steal: 3,
  guest: 7,
  used: 0,
  in: 0,
  read: 0,
  received: 0,
  out: 1,
  write: 1,
  sent: 1,
  some: 0,
  full: 1,
  'avg 1 min': 0,
  'avg 5 min': 2,
  'avg 15 min': 4,
  buffers: 2,
  cached: 4,
  shared: 5,
  available: 4,
  free: 7,
};

/** slotOf gives the preferred colour slot, 0…7, of a name. */
export function slotOf(name: string): number {
  const fixed = FIXED[name];
  if (fixed !== undefined) return fixed;
  const tail = /(\d+)$/.exec(name);
  if (tail !== null && Number(tail[1]) < 4096) return Number(tail[1]) % SLOTS;
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash >>> 0) % SLOTS;
}

/**
 * assignSlots gives each name a slot. Names are placed in sorted order on their preferred slot or the next free one,
 * so up to eight of them never share a colour and the same set always gets the same colours.
 */
export function assignSlots(names: string[]): Map<string, number> {
  const taken = new Set<number>();
  const slots = new Map<string, number>();
  for (const name of [...new Set(names)].sort(byFixedThenName)) {
    let slot = slotOf(name);
    if (taken.size < SLOTS) {
      while (taken.has(slot)) slot = (slot + 1) % SLOTS;
      taken.add(slot);
    }
    slots.set(name, slot);
  }
  return slots;
}

function byFixedThenName(a: string, b: string): number {
  const fixed = Number(FIXED[b] !== undefined) - Number(FIXED[a] !== undefined);
  return fixed !== 0 ? fixed : natural(a, b);
}
