// Fields of configuration forms: each shows its own mistakes.

import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { type Fields, list, type Mistakes, put, text } from './document.ts';
import type { FieldSpec } from './fields.ts';

interface TextProps {
  label: string;
  value: string;
  set: (value: string) => void;
  hint?: string;
  mistakes?: string[];
  lines?: number;
  mono?: boolean;
  secret?: boolean;
  known?: string[];
  focus?: boolean;
  required?: boolean;
  /** Its mistakes are not shown before it was touched. */
  quiet?: boolean;
}

export function Text({ label, value, set: change, hint, mistakes: found = [], lines, mono = false, secret = false, known, focus = false, required = false, quiet = false }: TextProps) {
  const id = useId();
  const [touched, setTouched] = useState(false);
  const mistakes = quiet && !touched ? [] : found;
  const set = (next: string): void => {
    setTouched(true);
    change(next);
  };
  const common = {
    value,
    spellcheck: false,
    autofocus: focus,
    onBlur: () => setTouched(true),
    required,
    class: mono ? 'mono' : undefined,
    'aria-invalid': mistakes.length > 0,
    'aria-describedby': mistakes.length > 0 ? `${id}-mistakes` : undefined,
  };
  return (
    <label class="field">
      <span>{label}</span>
      {lines !== undefined ? (
        <textarea {...common} rows={lines} onInput={(event) => set(event.currentTarget.value)} />
      ) : (
        <input {...common} {...({ type: secret ? 'password' : 'text' } as { type: 'text' })} autocomplete="off" list={known === undefined ? undefined : `${id}-known`} onInput={(event) => set(event.currentTarget.value)} />
      )}
      {known !== undefined && (
        <datalist id={`${id}-known`}>
          {known.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
      <MistakeLines id={`${id}-mistakes`} mistakes={mistakes} />
      {hint !== undefined && <small class="muted">{hint}</small>}
    </label>
  );
}

export function MistakeLines({ id, mistakes }: { id?: string; mistakes: string[] }) {
  if (mistakes.length === 0) return null;
  return (
    <small class="problem-text" id={id}>
      {mistakes.map((one) => (
        <span key={one}>{one} </span>
      ))}
    </small>
  );
}

interface TypeFieldsProps {
  specs: FieldSpec[];
  fields: Fields;
  set: (fields: Fields) => void;
  mistakes: Mistakes;
  quiet: boolean;
}

/** TypeFields are the fields that only objects of a type have. */
export function TypeFields({ specs, fields, set, mistakes, quiet }: TypeFieldsProps) {
  return (
    <>
      {specs.map(({ key, label, hint, lines, secret, options }) => {
        if (options !== undefined) {
          const missing = options[0]![0];
          return <Pick key={key} label={label} value={text(fields, key, missing)} options={options} set={(value) => set(put(fields, key, value, missing))} mistakes={mistakes[key]} />;
        }
        return <Text key={key} label={label} value={text(fields, key)} set={(value) => set(put(fields, key, value))} hint={hint} lines={lines} secret={secret} quiet={quiet} mono={lines !== undefined} mistakes={mistakes[key]} />;
      })}
    </>
  );
}

export function Pick({ label, value, options, set, mistakes = [] }: { label: string; value: string; options: [string, string][]; set: (value: string) => void; mistakes?: string[] }) {
  const known = options.some(([name]) => name === value) ? options : [...options, [value, value] as [string, string]];
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {known.map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      <MistakeLines mistakes={mistakes} />
    </label>
  );
}

/** Names is a list of names: one is added with Enter, or by leaving the field. */
export function Names({ label, value, set, known, hint, mistakes = [] }: { label: string; value: string[]; set: (value: string[]) => void; known: string[]; hint?: string; mistakes?: string[] }) {
  const id = useId();
  const [next, setNext] = useState('');
  const add = (): void => {
    const name = next.trim();
    setNext('');
    if (name !== '' && !value.includes(name)) set([...value, name]);
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {value.length > 0 && (
        <ul class="names">
          {value.map((name) => (
            <li key={name}>
              <button type="button" class="tag" title={`Remove ${name}`} aria-label={`Remove ${name}`} onClick={() => set(value.filter((one) => one !== name))}>
                {name} ×
              </button>
            </li>
          ))}
        </ul>
      )}
      <span class="with-button">
        <input
          id={id}
          value={next}
          list={`${id}-known`}
          autocomplete="off"
          onInput={(event) => setNext(event.currentTarget.value)}
          onBlur={add}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || next.trim() === '') return;
            event.preventDefault();
            add();
          }}
        />
        <button type="button" onClick={add}>
          Add
        </button>
      </span>
      <datalist id={`${id}-known`}>
        {known
          .filter((one) => !value.includes(one))
          .map((one) => (
            <option key={one} value={one} />
          ))}
      </datalist>
      <MistakeLines mistakes={mistakes} />
      {hint !== undefined && <small class="muted">{hint}</small>}
    </div>
  );
}

/** Pairs edits a list of objects with two texts, such as tags and headers. */
export function Pairs({ title, fields, of, names, labels, set }: { title: string; fields: Fields; of: string; names: [string, string]; labels: [string, string]; set: (fields: Fields) => void }) {
  const rows = list(fields, of);
  const change = (at: number, key: string, value: string): void => set(put(fields, of, rows.map((row, n) => (n === at ? { ...row, [key]: value } : row))));
  return (
    <fieldset class="pairs">
      <legend>{title}</legend>
      {rows.map((row, n) => (
        <div class="pair" key={n}>
          <input aria-label={`${labels[0]} ${n + 1}`} placeholder={labels[0]} value={text(row, names[0])} onInput={(event) => change(n, names[0], event.currentTarget.value)} />
          <input aria-label={`${labels[1]} ${n + 1}`} placeholder={labels[1]} value={text(row, names[1])} onInput={(event) => change(n, names[1], event.currentTarget.value)} />
          <button type="button" class="quiet" aria-label={`Remove ${labels[0].toLowerCase()} ${n + 1}`} onClick={() => set(put(fields, of, rows.filter((_, other) => other !== n)))}>
            ×
          </button>
        </div>
      ))}
      <button type="button" class="small" onClick={() => set(put(fields, of, [...rows, { [names[0]]: '', [names[1]]: '' }]))}>
        Add
      </button>
    </fieldset>
  );
}

export const Tags = ({ fields, set }: { fields: Fields; set: (fields: Fields) => void }) => (
  <Pairs title="Tags" fields={fields} of="tags" names={['tag', 'value']} labels={['Tag', 'Value']} set={set} />
);

/** Switch is the field status of items, triggers and hosts. */
export function Switch({ fields, set }: { fields: Fields; set: (fields: Fields) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={text(fields, 'status') !== 'DISABLED'} onChange={(event) => set(put(fields, 'status', event.currentTarget.checked ? '' : 'DISABLED'))} />
      <span>Enabled</span>
    </label>
  );
}

/** Whole shows the mistakes of an object that no field has. */
export function Whole({ mistakes }: { mistakes: Mistakes }) {
  if (mistakes[''] === undefined) return null;
  return (
    <p class="problem-text" role="alert">
      {mistakes[''].join(' ')}
    </p>
  );
}

/** Columns are parts of a form beside each other. What is typed is kept at once; there is nothing to send. */
export function Columns({ children }: { children: ComponentChildren }) {
  return (
    <form class="columns" onSubmit={(event) => event.preventDefault()}>
      {children}
    </form>
  );
}
