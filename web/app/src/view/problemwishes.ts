// What a person wants done to problems, and how they stand together.

import type { Problem, ProblemsUpdate, Severity } from '../api/types.ts';

const HOUR_MS = 3_600_000;

/** What is in the form besides the comment. */
export interface Wishes {
  acknowledge: boolean;
  severity: Severity | '';
  suppress: string;
  until: string;
  close: boolean;
}

export const NOTHING: Wishes = { acknowledge: true, severity: '', suppress: '', until: '', close: false };

/** problemsUpdate is the call for what was chosen; it throws what a person has to put right. */
export function problemsUpdate(ids: string[], message: string, wishes: Wishes, now: number): ProblemsUpdate {
  const update: ProblemsUpdate = { event_ids: ids };
  if (wishes.acknowledge) update.acknowledge = true;
  if (message !== '') update.message = message;
  if (wishes.severity !== '') update.severity = wishes.severity;
  if (wishes.close) update.close = true;
  if (wishes.suppress !== '') update.suppress = wishes.suppress !== 'end';
  if (Number(wishes.suppress) > 0) update.suppress_until = Math.floor(now + Number(wishes.suppress) * HOUR_MS);
  if (wishes.suppress === 'at') {
    const at = Date.parse(wishes.until);
    if (!(at > now)) throw new Error('Choose a time in the future until which the problem is suppressed.');
    update.suppress_until = at;
  }
  if (Object.keys(update).length === 1) throw new Error('Write a comment or choose what is to be done.');
  return update;
}

/** problemGroup tells the group of a problem: by host, by trigger, or by the value of a tag ("tag:scope"). */
export function problemGroup(group: string): ((p: Problem) => string) | undefined {
  if (group === 'host') return (p) => p.host_name || p.host;
  if (group === 'trigger') return (p) => p.name;
  if (!group.startsWith('tag:')) return undefined;
  const name = group.slice('tag:'.length);
  return (p) => {
    const values = p.tags.filter((tag) => tag.tag === name).map((tag) => tag.value);
    return values.length === 0 ? `without ${name}` : `${name}: ${values.join(', ')}`;
  };
}
