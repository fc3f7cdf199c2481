// How long the store will last, in words and numbers.

import type { StorageClass, Store, Tier } from '../api/storage.ts';

const DAY_MS = 86_400_000;

export interface Outlook {
  /** Short, to be read at a glance. */
  short: string;
  /** One or two sentences. */
  long: string;
}

const days = (n: number): string => {
  if (n >= 730) return `${(n / 365).toFixed(1)} years`;
  if (n >= 10) return `${Math.round(n).toLocaleString('en-US')} days`;
  if (n >= 2) return `${n.toFixed(1)} days`;
  return `${Math.max(1, Math.round(n * 24))} hours`;
};

/** outlookOf says how far back the store will reach, and when it will be full. when writes a date. */
export function outlookOf(store: Store, now: number, when: (at: number) => string): Outlook {
  if (store.quota_bytes === 0) return { short: 'no limit', long: 'The store has no limit of its own; values go when they are past their retention.' };
  if (store.retention_days === null) {
    return { short: 'not known yet', long: 'How long it will last is worked out from its growth: ten minutes after the start, and only while it grows.' };
  }
  const fullness = store.used_bytes / store.quota_bytes;
  const goes = store.engine === 'dbengine' ? 'the oldest file pair goes' : 'the oldest pieces of tables go';
  if (fullness >= 0.9) {
    return { short: days(store.retention_days), long: `The store is full and holds ${days(store.retention_days)}: ${goes} whenever room is needed.` };
  }
  const left = store.retention_days * (1 - fullness);
  return {
    short: days(store.retention_days),
    long: `At today's rate it fills in ${days(left)}, about ${when(now + left * DAY_MS)}. From then on ${goes}, and values reach back about ${days(store.retention_days)}.`,
  };
}

/** A value as it arrives: a time and a number of eight bytes each. */
export const PLAIN_BYTES = 16;

/** bytesPerValue is null where there are no values. */
export function bytesPerValue(tier: Tier): number | null {
  return tier.values === 0 ? null : tier.bytes / tier.values;
}

/** So many values in closed file pairs say what a value takes; the growing pair has its room long before it has values. */
export const ENOUGH_VALUES = 100_000;

/** closedBytesPerValue is what a value of a tier takes in closed file pairs; null while these hold too few to say. */
export function closedBytesPerValue(store: Store, tier: Tier['tier']): number | null {
  const closed = store.pairs.filter((pair) => pair.tier === tier && !pair.growing);
  const values = closed.reduce((sum, pair) => sum + pair.values, 0);
  return values < ENOUGH_VALUES ? null : closed.reduce((sum, pair) => sum + pair.bytes, 0) / values;
}

/** A kind of values with what is worked out of it. */
export interface ClassRow extends StorageClass {
  /** Its part of the room, 0 to 1. */
  share: number;
  /** Bytes for a value. */
  each: number;
  /** How many times smaller than it arrives; null for what has no size of its own. */
  smaller: number | null;
}

export function classRows(classes: StorageClass[]): ClassRow[] {
  const total = classes.reduce((sum, one) => sum + one.bytes, 0);
  return classes
    .filter((one) => one.values > 0)
    .map((one) => {
      const each = one.bytes / one.values;
      const number = one.class !== 'text' && one.class !== 'binary';
      return { ...one, share: total > 0 ? one.bytes / total : 0, each, smaller: number && each > 0 ? PLAIN_BYTES / each : null };
    });
}
