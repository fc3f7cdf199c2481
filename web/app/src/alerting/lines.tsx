// Parts of the forms of alerting: lists of lines that can be added and removed, several choices, and what is wrong.

import type { ComponentChildren } from 'preact';

/** Problems lists what is wrong with what was filled in. */
export function Problems({ list }: { list: string[] }) {
  if (list.length === 0) return null;
  return (
    <ul class="problem-text form-problems" role="status">
      {list.map((one) => (
        <li key={one}>{one}</li>
      ))}
    </ul>
  );
}

interface LinesProps<T> {
  legend: string;
  list: T[];
  add: string;
  fresh: () => T;
  set: (list: T[]) => void;
  line: (one: T, put: (next: T) => void, i: number) => ComponentChildren;
}

/** Lines is a list of things of which each has fields of its own. */
export function Lines<T>({ legend, list, add, fresh, set, line }: LinesProps<T>) {
  return (
    <fieldset class="lines">
      <legend>{legend}</legend>
      {list.map((one, i) => (
        <div key={i} class="form-line" role="group" aria-label={`${legend} ${i + 1}`}>
          {line(one, (next) => set(list.map((old, n) => (n === i ? next : old))), i)}
          <button type="button" class="small" aria-label={`Remove ${legend} ${i + 1}`} onClick={() => set(list.filter((_, n) => n !== i))}>
            Remove
          </button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => set([...list, fresh()])}>
        {add}
      </button>
    </fieldset>
  );
}

/** Several are names of which any may be chosen. */
export function Several({ legend, all, chosen, set }: { legend: string; all: string[]; chosen: string[]; set: (list: string[]) => void }) {
  return (
    <span class="several" role="group" aria-label={legend}>
      <span class="muted">{legend}</span>
      {all.map((name) => (
        <label key={name} class="check">
          <input type="checkbox" checked={chosen.includes(name)} onChange={(event) => set(event.currentTarget.checked ? [...chosen, name] : chosen.filter((one) => one !== name))} />
          <span>{name}</span>
        </label>
      ))}
      {all.length === 0 && <span>there are none yet</span>}
    </span>
  );
}

interface PickProps {
  label: string;
  value: string;
  options: Record<string, string>;
  set: (value: string) => void;
}

/** Pick is a choice whose options have another name than their value. */
export function Pick({ label, value, options, set }: PickProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {Object.entries(options).map(([option, title]) => (
          <option key={option} value={option}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Area is a field of several lines. */
export function Area({ label, value, set, rows = 6, hint }: { label: string; value: string; set: (value: string) => void; rows?: number; hint?: string }) {
  return (
    <label class="field text-field">
      <span>{label}</span>
      <textarea value={value} rows={rows} spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />
      {hint !== undefined && <small class="muted">{hint}</small>}
    </label>
  );
}
