// In which unit the values of an expression are, as far as that can be told from the units of its metrics. Empty where it cannot.

import { tokensOf } from './tokens.ts';
import { AGGREGATIONS, FUNCTIONS } from './words.ts';

// What keeps the unit of what it is made of.
const KEEPS = new Set([
  ...['sum', 'avg', 'min', 'max', 'topk', 'bottomk', 'quantile', 'stddev'],
  ...['avg_over_time', 'min_over_time', 'max_over_time', 'sum_over_time', 'last_over_time', 'quantile_over_time', 'stddev_over_time'],
  ...['increase', 'delta', 'idelta', 'predict_linear', 'abs', 'ceil', 'floor', 'round', 'clamp', 'clamp_min', 'clamp_max', 'sort', 'sort_desc', 'label_replace', 'label_join', 'scalar'],
]);
const PER_SECOND = new Set(['rate', 'irate', 'deriv']);
// Behind these stand labels, lengths and numbers, not values.
const SKIPS = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
const COMPARES = new Set(['==', '!=', '>', '<', '>=', '<=']);
const COUNTS = new Set(['+', '-', '*', '/', '%', '^']);
const WORDS = new Set(['and', 'or', 'unless', 'offset', 'bool', 'start', 'end', 'inf', 'nan']);

/** metricsOf are the metrics that an expression names. */
export function metricsOf(expression: string): string[] {
  return [...new Set(walk(expression).metrics)];
}

/** unitsOf is the unit of an expression; units has that of each metric. */
export function unitsOf(expression: string, units: Map<string, string>): string {
  const { metrics, calls, signs } = walk(expression);
  const known = new Set(metrics.map((name) => units.get(name) ?? ''));
  // Arithmetic makes another unit; comparing only picks.
  if (known.size !== 1 || signs.some((sign) => COUNTS.has(sign))) return '';
  const [unit] = known;
  if (unit === 'unixtime' || unit === 'uptime') return '';
  const rates = calls.filter((name) => PER_SECOND.has(name)).length;
  if (rates > 1 || calls.some((name) => !KEEPS.has(name) && !PER_SECOND.has(name))) return '';
  return rates === 0 ? unit : unit.endsWith('/s') ? '' : `${unit}/s`;
}

function walk(expression: string): { metrics: string[]; calls: string[]; signs: string[] } {
  const tokens = tokensOf(expression);
  const metrics: string[] = [];
  const calls: string[] = [];
  const signs: string[] = [];
  for (let n = 0; n < tokens.length; n++) {
    const { kind, text } = tokens[n];
    const next = tokens[n + 1]?.text;
    if (kind === 'sign' && (text === '{' || text === '[')) n = closed(tokens.map((token) => token.text), n, text === '{' ? '}' : ']');
    else if (kind === 'sign' && COMPARES.has(text) && tokens[n + 1]?.text === 'bool') return { metrics: [], calls, signs };
    else if (kind === 'sign') signs.push(text);
    else if (kind === 'word' && SKIPS.has(text)) n = next === '(' ? closed(tokens.map((token) => token.text), n + 1, ')') : n;
    else if (kind === 'word' && (text in AGGREGATIONS || (text in FUNCTIONS && next === '('))) calls.push(text);
    else if (kind === 'word' && next === '(') calls.push(text);
    else if (kind === 'word' && !WORDS.has(text.toLowerCase())) metrics.push(text);
  }
  return { metrics, calls, signs };
}

function closed(texts: string[], from: number, end: string): number {
  const at = texts.indexOf(end, from);
  return at < 0 ? texts.length : at;
}
