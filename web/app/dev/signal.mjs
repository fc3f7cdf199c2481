// Seeded signals: the value of an item is a function of its name and the time, so any range can be asked for again and
// gives the same picture.

/** hash makes 32 bits of a text and a number. */
export function hash(text, n = 0) {
  let h = 2166136261 ^ n;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h = Math.imul(h ^ (h >>> 15), 2246822507);
  h = Math.imul(h ^ (h >>> 13), 3266489909);
  return (h ^ (h >>> 16)) >>> 0;
}

// Seeds are texts; their numbers are kept, because every value of every item asks for several.
const seeds = new Map();

function unit(seed, n) {
  let h = seeds.get(seed);
  if (h === undefined) seeds.set(seed, (h = hash(seed)));
  h = Math.imul(h ^ n, 2246822507);
  h = Math.imul(h ^ (h >>> 13), 3266489909);
  return ((h ^ (h >>> 16)) >>> 0) / 4294967296;
}

// One octave of value noise, 0…1.
function octave(seed, t, period) {
  const x = t / period;
  const n = Math.floor(x);
  const f = x - n;
  const s = f * f * (3 - 2 * f);
  return unit(seed, n) * (1 - s) + unit(seed, n + 1) * s;
}

/** noise is 0…1 with slow and fast parts; t is in milliseconds. */
export function noise(seed, t) {
  return 0.5 * octave(`${seed}a`, t, 1_800_000) + 0.25 * octave(`${seed}b`, t, 120_000) + 0.15 * octave(`${seed}c`, t, 9_000) + 0.1 * unit(`${seed}d`, Math.floor(t / 1000));
}

/** spike is now and then a bump of some ten seconds, 0…1. */
export function spike(seed, t, every = 240_000) {
  const slot = Math.floor(t / every);
  const start = unit(`${seed}s`, slot) * every * 0.8;
  const at = t - slot * every - start;
  const length = 8_000 + unit(`${seed}l`, slot) * 25_000;
  if (at < 0 || at > length) return 0;
  return Math.sin((at / length) * Math.PI) * unit(`${seed}h`, slot);
}

/** day is 0…1, low at night. */
export function day(t) {
  return 0.5 - 0.5 * Math.cos(((t % 86_400_000) / 86_400_000) * 2 * Math.PI);
}
