// Vertical scales: a top that does not tremble with every value, and round marks between.

const DECIMAL = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** niceTop is the smallest round number at or above value: 1, 1.5, 2, 3 … × 10ⁿ, or such a multiple of 1024ⁿ. */
export function niceTop(value: number, binary: boolean): number {
  if (value <= 0 || !Number.isFinite(value)) return 1;
  const unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log2(value) / 10)) : 1;
  const size = value / unit;
  const power = 10 ** Math.floor(Math.log10(size));
  const step = DECIMAL.find((n) => n * power >= size * 0.999_999) ?? 10;
  const top = step * power * unit;
  // 1000 KiB is not round; 1 MiB is.
  return binary && size > 800 ? unit * 1024 : top;
}

// Steps that are read easily, the best first; a worse one only where it gives much better a number of marks.
const STEPS: [step: number, cost: number][] = [
  [1, 0],
  [2, 0],
  [5, 0],
  [2.5, 0.6],
  [4, 0.45],
  [3, 0.45],
  [1.5, 1.2],
  [7.5, 1.6],
];
const NOT_ROUND = 9;

/**
 * ticksBetween gives about count round marks from low to high, one of them at the outer end of the longer side, so
 * that the height of a chart can be read off.
 */
export function ticksBetween(low: number, high: number, count: number, binary: boolean): number[] {
  const reach = Math.max(Math.abs(low), Math.abs(high));
  if (!(high > low) || reach === 0) return [low];
  const unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log2(reach) / 10)) : 1;
  const wanted = Math.max(1, Math.round((count * reach) / (high - low)));
  let parts = wanted;
  let least = Infinity;
  for (let n = 1; n <= wanted + (count > 2 ? 2 : 1); n++) {
    const cost = costOf(reach / n / unit) + Math.abs(n - wanted) * (n > wanted ? 0.5 : 0.4);
    if (cost < least) [parts, least] = [n, cost];
  }
  const ticks: number[] = [];
  // Twelve digits are enough for a label, and without them 3 × 0.1 is 0.30000000000000004.
  for (let n = Math.ceil((low * parts) / reach - 1e-9); (n * reach) / parts <= high + 1e-9 * reach && ticks.length < 20; n++) ticks.push(Number(((n * reach) / parts).toPrecision(12)) + 0); // + 0 turns −0 into 0.
  return ticks;
}

function costOf(step: number): number {
  const lead = step / 10 ** Math.floor(Math.log10(step) + 1e-9);
  return STEPS.find(([one]) => Math.abs(lead - one) < 1e-6)?.[1] ?? NOT_ROUND;
}

/**
 * rangeOf is the vertical range for values between low and high (null: no values). Amounts and shares start at
 * zero; top is a height that is always shown.
 */
export function rangeOf(low: number | null, high: number | null, top: number | undefined, binary: boolean): [number, number] {
  if (low === null || high === null) return [0, top ?? 1];
  const upper = Math.max(high, top !== undefined ? Math.min(top, 1e300) : 0);
  const up = upper > 0 ? (top !== undefined && upper === top ? top : niceTop(upper, binary)) : 0;
  const down = low < 0 ? -niceTop(-low, binary) : 0;
  return up === 0 && down === 0 ? [0, 1] : [down, up];
}
