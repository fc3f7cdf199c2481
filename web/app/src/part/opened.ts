// Which form of a page is open: kept in the address, so that a copied one opens it too.

import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';

export interface Opened {
  /** What kind of thing, and which; name is empty for a new one. Null while no form is open. */
  now: { kind: string; name: string } | null;
  open: (kind: string, name: string) => void;
  add: (kind: string) => void;
  close: () => void;
}

/** useOpened reads which of kinds the address opens, by KIND=NAME or fresh=KIND. */
export function useOpened(...kinds: string[]): Opened {
  const { params } = useCell(route);
  const none = Object.fromEntries([...kinds, 'fresh'].map((one) => [one, '']));
  const named = kinds.find((one) => params.has(one));
  const fresh = kinds.find((one) => params.get('fresh') === one);
  return {
    now: named !== undefined ? { kind: named, name: params.get(named)! } : fresh !== undefined ? { kind: fresh, name: '' } : null,
    open: (kind, name) => setParams({ ...none, [kind]: name }, false),
    add: (kind) => setParams({ ...none, fresh: kind }, false),
    close: () => setParams(none, false),
  };
}
