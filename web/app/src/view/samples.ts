// The figures of the overview since the page was opened, for the lines beside its numbers.

import { Cell } from '../state/cell.ts';
import { overview } from '../state/live.ts';

export interface Sample {
  at: number;
  valuesPerSecond: number;
  historyCacheUsed: number;
  storeUsed: number;
}

const MAX_SAMPLES = 600;
const HOUR = 3_600_000;

export const samples = new Cell<Sample[]>([]);

overview.subscribe((state) => {
  if (state === null) return;
  const old = samples.value;
  const last = old[old.length - 1];
  if (last !== undefined && state.time - last.at < 900) return;
  const next = {
    at: state.time,
    valuesPerSecond: state.values_per_second,
    historyCacheUsed: state.history_cache_used,
    storeUsed: state.store.used_bytes,
  };
  samples.set(thinned([...old, next]).filter((sample) => state.time - sample.at <= HOUR));
});

// thinned halves the older part when there is too much of it, so that an hour fits in a few hundred samples.
function thinned(all: Sample[]): Sample[] {
  if (all.length <= MAX_SAMPLES) return all;
  const half = all.length >> 1;
  return all.filter((_sample, i) => i >= half || i % 2 === 0);
}
