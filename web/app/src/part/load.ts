// Loading for a view: the old answer stays while the next one is on its way.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { AGAIN_MS, passes } from '../api/client.ts';
import { Cell } from '../state/cell.ts';

/** How many parts of the page have nothing to show yet because their first answer is on its way. */
export const waiting = new Cell(0);

export interface Loaded<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  reload: () => void;
}

/**
 * useLoad calls read whenever one of deps changes; an answer that was overtaken by a newer call is dropped. What reload asks for, or changed by another
 * value, waits for a call that is on its way, so that a timer never gives up an answer that takes longer than the timer. What failed because the server
 * or its database was away is tried again.
 */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, deps: unknown[], changed = 0): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'>>({ data: null, error: null, loading: true });
  const [round, setRound] = useState(0);
  const running = useRef(false);
  const wanted = useRef(false);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    const abort = new AbortController();
    let again = 0;
    let counted = state.data === null;
    const count = (by: number): void => void (counted && waiting.set(waiting.value + by));
    const over = (): void => {
      count(-1);
      counted = false;
    };
    count(1);
    running.current = true;
    wanted.current = false;
    setState((old) => ({ ...old, loading: true }));
    reader
      .current(abort.signal)
      .then((data) => !abort.signal.aborted && setState({ data, error: null, loading: false }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        setState((old) => ({ data: old.data, error: error instanceof Error ? error : new Error(String(error)), loading: false }));
        if (passes(error)) again = window.setInterval(() => !document.hidden && setRound((n) => n + 1), AGAIN_MS);
      })
      .finally(() => {
        over();
        if (abort.signal.aborted) return;
        running.current = false;
        if (wanted.current) setRound((n) => n + 1);
      });
    return () => {
      clearInterval(again);
      abort.abort();
      over();
    };
  }, [...deps, round]);
  const reload = useCallback(() => {
    if (running.current) wanted.current = true;
    else setRound((n) => n + 1);
  }, []);
  const seen = useRef(changed);
  useEffect(() => {
    if (seen.current === changed) return;
    seen.current = changed;
    reload();
  }, [changed]);
  return { ...state, reload };
}

/** useLater gives value after it stood still for a while, so that typing does not call the server at each key. */
export function useLater<T>(value: T, ms = 150): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return later;
}

/** useSecond renders again every second while the page is in front, for ages. */
export function useSecond(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** useTitle names the window after what a view shows. */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = `${name} · Tidemark`;
  }, [name]);
}
