// Numbers for people: at most four significant digits, the right prefix, the unit. Sizes in bytes take IEC
// prefixes (KiB = 1024 B), rates and everything else SI prefixes (kB/s = 1000 B/s).

import { clockTime, dateText } from '../time/clock.ts';

/** How a number of some unit is divided and named on a page. */
export interface Scale {
  factor: number;
  /** Prefix and unit together, "MiB", "%", "". */
  unit: string;
}

const IEC = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const SI = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
const SMALL = ['', 'm', 'µ', 'n'];

/** Units that never take a prefix. */
const PLAIN = new Set(['%', '°C', 'rpm', 'dB', 'dBm', 'ppm']);

/** canonicalUnit maps the spellings of Zabbix templates to the ones that the page shows. */
export function canonicalUnit(units: string): string {
  switch (units) {
    case 'Bps':
      return 'B/s';
    case 'bps':
      return 'bit/s';
    case 'b':
      return 'bit';
    case 'vps':
      return 'values/s';
    case 'ops':
      return 'ops/s';
    case 'sps':
      return 'sectors/s';
    default:
      return units;
  }
}

/** isBinary tells whether amounts of the unit are counted in powers of 1024. */
export function isBinary(units: string): boolean {
  return units === 'B';
}

/** scaleFor picks the prefix for numbers up to max (its sign does not matter). */
export function scaleFor(max: number, rawUnits: string): Scale {
  const literal = rawUnits.startsWith('!');
  const units = canonicalUnit(literal ? rawUnits.slice(1) : rawUnits);
  const size = Math.abs(max);
  if (literal || PLAIN.has(units) || !Number.isFinite(size)) return { factor: 1, unit: units };
  if (units === 's') return secondsScale(size);
  if (units === 's/s') return { ...secondsScale(size), unit: `${secondsScale(size).unit}/s` };
  if (isBinary(units)) return prefixed(size, 1024, IEC, units);
  if (units === '' || !/^(B|bit|Hz|W|V|A)/.test(units)) {
    // Counts stay whole as long as four digits can hold them.
    if (size < 10_000) return { factor: 1, unit: units };
  }
  return prefixed(size, 1000, SI, units);
}

function prefixed(size: number, base: number, names: string[], units: string): Scale {
  let power = 0;
  let factor = 1;
  // 999.95 would be shown as 1000, so the next prefix starts a little earlier than its factor.
  while (size >= factor * base * 0.99995 && power < names.length - 1) {
    factor *= base;
    power++;
  }
  return { factor, unit: joinPrefix(names[power], units) };
}

function joinPrefix(prefix: string, units: string): string {
  if (prefix === '') return units;
  if (units === '' || units.startsWith('/')) return prefix + units;
  if (/^(B|bit|Hz|W|V|A)/.test(units)) return prefix + units;
  return `${prefix} ${units}`;
}

function secondsScale(size: number): Scale {
  if (size === 0 || size >= 1) return { factor: 1, unit: 's' };
  let power = 0;
  let factor = 1;
  while (size < factor * 0.99995 && power < SMALL.length - 1) {
    factor /= 1000;
    power++;
  }
  return { factor, unit: SMALL[power] + 's' };
}

/** digits writes a number with at most four significant digits and thousands separators. */
export function digits(value: number, significant = 4): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  let text: string;
  if (size >= 1e15 || size < 1e-6) {
    text = size.toExponential(significant - 1).replace(/\.?0+e/, 'e').replace('e+', 'e');
  } else {
    const lead = Math.floor(Math.log10(size));
    const decimals = Math.max(0, significant - 1 - lead);
    text = size.toFixed(Math.min(decimals, 9));
    if (text.includes('.')) text = text.replace(/0+$/, '').replace(/\.$/, '');
    text = grouped(text);
  }
  return value < 0 ? '−' + text : text;
}

function grouped(text: string): string {
  const [whole, fraction] = text.split('.');
  const parted = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return fraction === undefined ? parted : `${parted}.${fraction}`;
}

/** withUnit joins a number and its unit: "3.1 MB/s", "62 %", "310/s". */
export function withUnit(text: string, unit: string): string {
  if (unit === '') return text;
  if (unit.startsWith('/')) return text + unit;
  if (/^[kMGTPE]\/|^[kMGTPE]$/.test(unit)) return `${text} ${unit}`;
  return `${text} ${unit}`;
}

/** formatValue writes one number with its own best prefix. */
export function formatValue(value: number | null | undefined, units: string, significant = 3): string {
  if (value === null || value === undefined) return '–';
  if (units === 'uptime') return formatDuration(value);
  if (units === 'unixtime') return value === 0 ? 'never' : `${dateText(value * 1000)} ${clockTime(value * 1000)}`;
  if (units === 's' && Math.abs(value) >= 60) return formatDuration(value);
  const scale = scaleFor(value, units);
  const whole = scale.factor === 1 && Number.isInteger(value) && Math.abs(value) < 10_000;
  return withUnit(digits(value / scale.factor, whole ? 4 : significant), scale.unit);
}

/** formatShare writes a percentage of which the smallest parts do not matter: "under 0.1 %". */
export function formatShare(value: number | null | undefined): string {
  return typeof value === 'number' && value > 0 && value < 0.1 ? 'under 0.1 %' : formatValue(value, '%', 4);
}

/** formatPercent writes a percentage beside others, so that their smallest digits do not differ: at most two decimals, "< 0.01 %". */
export function formatPercent(value: number | null | undefined): string {
  if (typeof value !== 'number') return '–';
  const size = Math.abs(value);
  return size > 0 && size < 0.01 ? `< ${withUnit('0.01', '%')}` : formatValue(Math.round(value * 100) / 100, '%');
}

/** formatScaled writes a number in a scale that was chosen for a whole chart. */
export function formatScaled(value: number | null | undefined, scale: Scale, significant = 4): string {
  if (value === null || value === undefined) return '–';
  return withUnit(digits(value / scale.factor, significant), scale.unit);
}

/** formatDuration writes seconds in the two largest units that say something: "12 d 4 h", "3 min 5 s". */
export function formatDuration(seconds: number): string {
  const sign = seconds < 0 ? '−' : '';
  const total = Math.abs(seconds);
  if (total < 1) return sign + formatShort(total);
  if (total < 60) return `${sign}${digits(total, 2)} s`;
  const steps: [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  let rest = Math.round(total);
  const parts: string[] = [];
  for (const [length, name] of steps) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count.toLocaleString('en-US')} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return sign + parts.join(' ');
}

function formatShort(seconds: number): string {
  const scale = secondsScale(seconds);
  return withUnit(digits(seconds / scale.factor, 3), scale.unit);
}

/** formatAge writes how long ago something was, in one unit: "now", "12 s", "5 min", "3 h", "2 d". */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 1) return 'now';
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400).toLocaleString('en-US')} d`;
}

/** formatAgo is formatAge in a sentence: "just now", "12 s ago". */
export function formatAgo(ms: number): string {
  const age = formatAge(ms);
  return age === 'now' ? 'just now' : `${age} ago`;
}

/** plural writes a count with its noun. */
export function plural(count: number, one: string, many = one + 's'): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}
