// A form whose fields stand one below the other, that says what went wrong and cannot be sent twice.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Refusal } from './notice.tsx';

interface Props {
  submit: string;
  /** What is done; its failure is shown above the button. */
  run: () => Promise<void>;
  /** Called when it is to be sent, even where the browser finds a field that must be filled in. */
  tried?: () => void;
  cancel?: () => void;
  children: ComponentChildren;
}

export function Form({ submit, run, tried, cancel, children }: Props) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFailure('');
    try {
      await run();
    } catch (error) {
      setFailure(said(error));
    }
    setBusy(false);
  };
  return (
    <form class="form" onSubmit={(event) => void send(event)}>
      {children}
      <Refusal text={failure} />
      <div class="form-end">
        <button type="submit" disabled={busy} onClick={tried}>
          {submit}
        </button>
        {cancel !== undefined && (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

/** said is what a failed call says to people. */
export function said(error: unknown): string {
  const detail = (error as { detail?: unknown }).detail;
  return typeof detail === 'string' ? detail : error instanceof Error ? error.message : String(error);
}

interface FieldProps {
  label: string;
  value: string;
  set: (value: string) => void;
  type?: 'text' | 'password';
  autocomplete?: string;
  hint?: string;
  required?: boolean;
  focus?: boolean;
}

export function Field({ label, value, set, type = 'text', autocomplete = 'off', hint, required = true, focus = false }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input {...({ type } as { type: 'password' })} value={value} autocomplete={autocomplete} required={required} autofocus={focus} onInput={(event) => set(event.currentTarget.value)} />
      {hint !== undefined && <small class="muted">{hint}</small>}
    </label>
  );
}

export function Choice<T extends string>({ label, value, options, set }: { label: string; value: T; options: T[]; set: (value: T) => void }) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value as T)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Check({ label, value, set }: { label: string; value: boolean; set: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => set(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** Sure is a button that asks again before it does what cannot be undone. */
export function Sure({ label, again, run, failed }: { label: string; again: string; run: () => Promise<unknown>; failed: (text: string) => void }) {
  const [asked, setAsked] = useState(false);
  const click = async (): Promise<void> => {
    if (!asked) {
      setAsked(true);
      return;
    }
    setAsked(false);
    try {
      await run();
      failed('');
    } catch (error) {
      failed(said(error));
    }
  };
  return (
    <button type="button" class={asked ? 'small danger' : 'small'} onClick={() => void click()} onBlur={() => setAsked(false)}>
      {asked ? again : label}
    </button>
  );
}
