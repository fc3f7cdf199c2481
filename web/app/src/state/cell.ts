// A cell holds one value and tells who listens when it changes. All state that several parts of the page share is in
// cells; everything else is in the component that needs it.

import { useEffect, useReducer } from 'preact/hooks';

export class Cell<T> {
  private listeners = new Set<(value: T) => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener(value);
  }

  /** subscribe calls listener at every change until the returned function is called. */
  subscribe(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** useCell reads a cell and renders again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, render] = useReducer<number, void>((n) => n + 1, 0);
  const shown = cell.value;
  useEffect(() => {
    const stop = cell.subscribe(() => render());
    // The value may have changed between rendering and subscribing.
    if (!Object.is(shown, cell.value)) render();
    return stop;
  }, [cell]);
  return shown;
}
