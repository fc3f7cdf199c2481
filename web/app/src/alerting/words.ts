// What actions and maintenances do, in words.

import type { Action, Condition, Maintenance, Media, Operation, Period } from '../api/alerting.ts';

/** OPERATORS are the operators of conditions in words. */
export const OPERATORS: Record<string, string> = {
  equals: 'is',
  not_equals: 'is not',
  contains: 'contains',
  not_contains: 'does not contain',
  matches: 'matches',
  not_matches: 'does not match',
  at_least: 'at least',
  at_most: 'at most',
  in: 'in',
  not_in: 'not in',
};

const DEFAULTS: Record<string, string> = { severity: 'at_least', name: 'contains', time: 'in' };

/** conditionWords is one condition: "severity at least high". */
export function conditionWords(condition: Condition): string {
  const operator = condition.operator || DEFAULTS[condition.type] || 'equals';
  const subject = condition.type === 'tag_value' ? `tag ${condition.tag ?? ''}` : condition.type.replaceAll('_', ' ');
  return `${subject} ${OPERATORS[operator] ?? operator} ${condition.value ?? ''}`.trim();
}

/** whenWords says which events an action is for. */
export function whenWords(action: Action): string {
  const words = (action.conditions ?? []).map(conditionWords);
  if (words.length === 0) return 'every problem';
  switch (action.evaluation) {
    case 'or':
      return words.join(' or ');
    case 'and':
      return words.join(' and ');
    case 'formula':
      return `${action.formula ?? ''}, where ${(action.conditions ?? []).map((one, i) => `${one.label || String.fromCharCode(65 + i)}: ${words[i]}`).join('; ')}`;
  }
  // Conditions of one type are alternatives.
  const types = [...new Set((action.conditions ?? []).map((one) => one.type))];
  const parts = types.map((type) => words.filter((_, i) => action.conditions![i]!.type === type));
  return parts.map((part) => (part.length > 1 && parts.length > 1 ? `(${part.join(' or ')})` : part.join(' or '))).join(' and ');
}

/** whoWords says whom an operation tells, and by what. */
export function whoWords(operation: Operation): string {
  const who = [...(operation.receivers ?? []), ...(operation.involved ? ['all who were told'] : [])].join(', ') || 'nobody';
  const by = (operation.media ?? []).length > 0 ? ` by ${operation.media!.join(', ')}` : '';
  const only = operation.if === 'acknowledged' ? ', if acknowledged' : operation.if === 'not_acknowledged' ? ', if not acknowledged' : '';
  return who + by + only;
}

/** stepWords says which steps an operation belongs to: "step 1", "steps 2 to 4", "from step 5 on". */
export function stepWords(operation: Operation): string {
  const from = Math.max(operation.from ?? 0, 1);
  const to = operation.to ?? 0;
  if (to === -1) return from === 1 ? 'every step' : `from step ${from} on`;
  return to <= from ? `step ${from}` : `steps ${from} to ${to}`;
}

/** mediaWords says how a media type reaches people. */
export function mediaWords(media: Media): string {
  if (media.mail !== undefined) return `mail from ${media.mail.from} over ${media.mail.server}`;
  if (media.webhook !== undefined) return `webhook ${media.webhook.url}`;
  if (media.script !== undefined) return `script ${media.script.name}`;
  if (media.command !== undefined) return `command on the host: ${media.command.line}`;
  return 'webhook in JavaScript';
}

/** periodWords says when a maintenance is in force. */
export function periodWords(period: Period): string {
  const each = (period.interval ?? 1) > 1 ? `every ${period.interval} ${period.every}s` : `every ${period.every}`;
  const days = (period.days ?? []).join(', ');
  const length = `for ${period.for}`;
  switch (period.every) {
    case 'once':
      return `once at ${(period.start ?? '').replace('T', ' ')} ${length}`;
    case 'day':
      return `${each} at ${period.at} ${length}`;
    case 'week':
      return `${each} on ${days} at ${period.at} ${length}`;
  }
  const which = period.day_of_month ? `day ${period.day_of_month}` : `${days} of week ${(period.weeks ?? []).map((week) => (week === 5 ? 'the last' : week)).join(', ')}`;
  const months = (period.months ?? []).length > 0 ? `of months ${period.months!.join(', ')}` : 'of every month';
  return `${which} ${months} at ${period.at} ${length}`;
}

/** whatWords says what a maintenance covers. */
export function whatWords(one: Maintenance): string {
  return [...(one.groups ?? []).map((group) => `group ${group}`), ...(one.hosts ?? [])].join(', ');
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** secondsOf reads "90s", "1h", "2d" or a number of seconds; NaN for anything else. */
export function secondsOf(text: string): number {
  const match = /^(\d+)([smhdw]?)$/.exec(text.trim());
  return match === null ? NaN : Number(match[1]) * UNITS[match[2] || 's']!;
}

/** localText writes a time as the server's clock shows it: 2026-01-31T22:00. */
export function localText(at: number, offsetSeconds: number): string {
  return new Date(at + offsetSeconds * 1000).toISOString().slice(0, 16);
}

/** onceState says whether a maintenance of single periods is still to come, in force or over; null for one that repeats. now is the server's local time as a Unix time. */
export function onceState(one: Maintenance, now: number): 'to come' | 'in force' | 'over' | null {
  const spans = one.periods.map((period) => {
    const from = period.every === 'once' ? Date.parse(`${period.start}:00Z`) : NaN;
    return { from, to: from + secondsOf(period.for) * 1000 };
  });
  if (spans.some((span) => Number.isNaN(span.to))) return null;
  if (spans.some((span) => span.from <= now && now < span.to)) return 'in force';
  return spans.some((span) => span.from > now) ? 'to come' : 'over';
}
