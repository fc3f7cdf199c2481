// The problems that are marked on charts: those of triggers that name one of their items.

import { useMemo } from 'preact/hooks';
import { getProblems, getTriggers } from '../api/client.ts';
import type { Item, Problem, Trigger } from '../api/types.ts';
import type { ChartSpec } from '../item/sections.ts';
import { useLoad } from '../part/load.ts';
import { useCell } from '../state/cell.ts';
import { problemsChanged } from '../state/live.ts';
import { windowKey, windowNow } from '../state/window.ts';

const MAX_TRIGGERS = 2_000;
const NO_MARKS: Problem[] = [];

/** marksOf are the marks of a chart: the problems of its items. */
export function marksOf(spec: ChartSpec, marks: Map<string, Problem[]>): Problem[] {
  if (marks.size === 0) return NO_MARKS;
  const found = new Set<Problem>();
  for (const series of spec.series) {
    for (const source of series.sources) for (const problem of marks.get(source.item) ?? []) found.add(problem);
  }
  return found.size === 0 ? NO_MARKS : [...found];
}

/** useMarks gives the problems of the window per item that their triggers name. */
export function useMarks(host: string, items: Item[]): Map<string, Problem[]> {
  const changed = useCell(problemsChanged);
  const key = useCell(windowKey);
  const triggers = useLoad((signal) => getTriggers({ host, limit: MAX_TRIGGERS }, signal), [host]);
  const problems = useLoad(
    (signal) => {
      const { from, to, live: follows } = windowNow();
      return getProblems({ host, from: Math.floor(from), to: follows ? undefined : Math.ceil(to), limit: 500 }, signal);
    },
    [host, key],
    changed,
  );
  return useMemo(() => {
    const byTrigger = new Map((triggers.data?.triggers ?? []).map((trigger) => [trigger.id, trigger]));
    const marks = new Map<string, Problem[]>();
    for (const problem of problems.data?.problems ?? []) {
      const trigger = byTrigger.get(problem.trigger_id);
      if (trigger === undefined) continue;
      for (const item of itemsOf(trigger, items)) marks.set(item, [...(marks.get(item) ?? []), problem]);
    }
    return marks;
  }, [triggers.data, problems.data, items]);
}

// itemsOf finds the items that a trigger names: every /host/key in its expressions.
function itemsOf(trigger: Trigger, items: Item[]): string[] {
  const text = trigger.expression + trigger.recovery_expression;
  return items.filter((item) => names(text, `/${item.host}/${item.key}`)).map((item) => item.id);
}

// names tells whether text holds path as a whole key, not as the start of a longer one.
function names(text: string, path: string): boolean {
  for (let at = text.indexOf(path); at >= 0; at = text.indexOf(path, at + 1)) {
    const next = text[at + path.length];
    if (next === undefined || /[,)\s]/.test(next)) return true;
  }
  return false;
}
