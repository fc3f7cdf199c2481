// What the forms of alerting need besides fields: which operators a condition has, and what is wrong with what was filled in.

import type { Action, Condition, Media, Operation, Receiver } from '../api/alerting.ts';
import { secondsOf } from './words.ts';

const TEXT = ['equals', 'not_equals', 'contains', 'not_contains', 'matches', 'not_matches'];

/** OPERATORS_OF are the operators of each type of condition, the default first. */
export const OPERATORS_OF: Record<string, string[]> = {
  severity: ['at_least', 'at_most', 'equals', 'not_equals'],
  host_group: TEXT,
  host: TEXT,
  template: TEXT.slice(0, 4),
  tag: TEXT.slice(0, 4),
  tag_value: TEXT,
  name: ['contains', 'not_contains', 'equals', 'not_equals', 'matches', 'not_matches'],
  trigger: ['equals', 'not_equals'],
  time: ['in', 'not_in'],
  suppressed: ['equals', 'not_equals'],
};

/** VALUE_HINTS say what the value of a type of condition looks like. */
export const VALUE_HINTS: Record<string, string> = {
  host_group: 'Linux servers',
  host: 'web-1',
  template: 'Linux by Tidemark agent',
  tag: 'scope',
  tag_value: 'prod',
  name: 'disk',
  trigger: '13491, its id',
  time: '1-5,09:00-18:00',
};

/** durationProblem says what is wrong with a time span; empty is left to the default. */
export function durationProblem(label: string, text: string | undefined, least = 0): string {
  if (text === undefined || text === '') return '';
  const seconds = secondsOf(text);
  if (Number.isNaN(seconds)) return `${label}: “${text}” is no time span, expected 90s, 5m, 1h or 1d`;
  return seconds < least ? `${label}: ${text} is too short, expected at least ${least}s` : '';
}

const nameProblem = (name: string): string => (name.trim() === '' ? 'The name is empty.' : '');

function operationProblems(label: string, operation: Operation): string[] {
  const list = [durationProblem(label, operation.duration, 10)];
  if ((operation.receivers ?? []).length === 0 && !operation.involved) list.push(`${label} tells nobody; choose receivers`);
  const { from = 1, to = 0 } = operation;
  if (to > 0 && to < from) list.push(`${label} ends with step ${to} before it begins with step ${from}`);
  return list;
}

function conditionProblem(condition: Condition, i: number): string {
  const label = `Condition ${String.fromCharCode(65 + i)}`;
  if (condition.type === 'tag_value' && !condition.tag) return `${label}: the tag is empty`;
  if (condition.type !== 'tag_value' && !condition.value) return `${label}: the value is empty`;
  return '';
}

/** actionProblems are what is wrong with an action, in words; the server looks again. */
export function actionProblems(action: Action): string[] {
  const operations = action.operations ?? [];
  return [
    nameProblem(action.name),
    ...(action.conditions ?? []).map(conditionProblem),
    action.evaluation === 'formula' && !action.formula ? 'The formula is empty, expected A and (B or not C).' : '',
    durationProblem('Delay', action.delay),
    durationProblem('Time between steps', action.step_duration, 10),
    operations.length === 0 ? 'There is no step, so that nobody would be told.' : '',
    ...operations.flatMap((one, i) => operationProblems(`Operation ${i + 1}`, one)),
    ...(action.recovery ?? []).flatMap((one, i) => operationProblems(`Recovery ${i + 1}`, one)),
    ...(action.update ?? []).flatMap((one, i) => operationProblems(`Update ${i + 1}`, one)),
  ].filter(Boolean);
}

/** receiverProblems are what is wrong with a receiver. */
export function receiverProblems(receiver: Receiver): string[] {
  return [
    nameProblem(receiver.name),
    ...receiver.media.map((way, i) => (way.media === '' || way.to.trim() === '' ? `Way ${i + 1}: choose a media type and say the address` : '')),
  ].filter(Boolean);
}

/** KINDS are the kinds of media types: the field of each, and its name. */
export const KINDS = { mail: 'Mail', webhook: 'Webhook (JSON)', zabbix_webhook: 'Webhook in JavaScript', script: 'Script', command: 'Command on the host' } as const;
export type Kind = keyof typeof KINDS;

/** kindOf says which kind a media type is. */
export const kindOf = (media: Media): Kind => (Object.keys(KINDS) as Kind[]).find((kind) => media[kind] !== undefined) ?? 'mail';

/** newMedia is an empty media type of a kind, with what is common to it. */
export function newMedia(name: string, kind: Kind): Media {
  const body = { channel: '{ALERT.SENDTO}', text: '{ALERT.SUBJECT}\n{ALERT.MESSAGE}' };
  switch (kind) {
    case 'mail':
      return { name, mail: { server: '', from: '' } };
    case 'webhook':
      return { name, webhook: { url: '', body } };
    case 'script':
      return { name, script: { name: '' } };
    case 'command':
      return { name, command: { line: '' } };
  }
  return { name, ticket: true, zabbix_webhook: { script: '', parameters: { To: '{ALERT.SENDTO}', Subject: '{ALERT.SUBJECT}', Message: '{ALERT.MESSAGE}' } } };
}

/** mediaProblems are what is wrong with a media type. */
export function mediaProblems(media: Media, body: string): string[] {
  const list = [nameProblem(media.name), durationProblem('Wait for company', media.group_wait), durationProblem('Time between messages', media.group_interval), durationProblem('Timeout', media.timeout)];
  if (media.mail !== undefined) {
    if (!/^.+:\d+$/.test(media.mail.server)) list.push('Server: expected a name and a port, such as mail.example.com:587');
    if (!media.mail.from.includes('@')) list.push('From: expected an address');
  }
  if (media.webhook !== undefined) {
    if (!/^(https?:\/\/.|\{(ALERT\.SENDTO|SECRET\.))/.test(media.webhook.url)) list.push('URL: expected https://… or {ALERT.SENDTO}');
    try {
      if (body.trim() !== '') JSON.parse(body);
    } catch (error) {
      list.push(`Body: this is no JSON: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (media.script !== undefined && media.script.name.trim() === '') list.push('Program: its name is empty');
  if (media.command !== undefined && media.command.line.trim() === '') list.push('Command: it is empty');
  if (media.zabbix_webhook !== undefined && media.zabbix_webhook.script.trim() === '') list.push('Script: it is empty');
  return list.filter(Boolean);
}

/** changed is a list with one of its entries replaced, or without it. */
export function changed<T>(list: T[], at: number, to: T | null): T[] {
  return to === null ? list.filter((_, i) => i !== at) : list.map((one, i) => (i === at ? to : one));
}
