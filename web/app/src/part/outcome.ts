// What the last run of a web scenario came to, out of its items.

import type { Scenario } from '../api/network.ts';
import type { Item, Reading } from '../api/types.ts';

/** Known are the items of scenarios by id. */
export type Known = Map<string, Item>;
/** stepThatFailed is the number of a step, zero for none. */
export const stepThatFailed = (last: Reading): number => Number(last.value.v);

/** outcome says in words how the last run of a scenario ended, and whether it failed. */
export function outcome(scenario: Scenario, known: Known): { words: string; failed: boolean; at?: number } {
  const last = known.get(scenario.items.fail ?? '')?.last ?? null;
  if (last === null) return { words: scenario.enabled ? 'has not run yet' : 'off', failed: false };
  const step = stepThatFailed(last);
  if (step === 0) return { words: 'all steps answered as expected', failed: false, at: last.at };
  const why = known.get(scenario.items.error ?? '')?.last ?? null;
  // An older error is that of an earlier run.
  const reason = why !== null && why.at >= last.at ? `: ${why.value.v}` : '';
  return { words: `step ${step} of ${scenario.steps.length} failed${reason}`, failed: true, at: last.at };
}
