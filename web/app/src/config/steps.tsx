// The preprocessing steps of an item, in their order.

import { useState } from 'preact/hooks';
import { type Fields, list, type Mistakes, put, text } from './document.ts';
import { ON_FAIL, STEPS, stepSpec } from './fields.ts';
import { MistakeLines, Pick, Text } from './parts.tsx';

/** tried says that saving was tried: then a step that was only just added shows its mistakes too. */
export function Steps({ item, set, mistakes, tried = false }: { item: Fields; set: (item: Fields) => void; mistakes: Mistakes; tried?: boolean }) {
  const steps = list(item, 'preprocessing');
  const change = (next: Fields[]): void => set(put(item, 'preprocessing', next));
  const move = (at: number, by: number): void => {
    const next = [...steps];
    next.splice(at + by, 0, ...next.splice(at, 1));
    change(next);
  };
  return (
    <fieldset class="step-list">
      <legend>Preprocessing steps</legend>
      {steps.length === 0 && <p class="muted">None: the value is stored as it comes.</p>}
      <ol>
        {steps.map((step, n) => (
          <li key={n}>
            <Step
              step={step}
              number={n + 1}
              tried={tried}
              set={(next) => change(steps.map((one, other) => (other === n ? next : one)))}
              mistakes={Object.entries(mistakes).flatMap(([field, found]) => (field.startsWith(`preprocessing[${n}]`) ? found : []))}
            />
            <span class="row-buttons">
              <button type="button" class="small" disabled={n === 0} aria-label={`Move step ${n + 1} up`} onClick={() => move(n, -1)}>
                ↑
              </button>
              <button type="button" class="small" disabled={n === steps.length - 1} aria-label={`Move step ${n + 1} down`} onClick={() => move(n, 1)}>
                ↓
              </button>
              <button type="button" class="small" aria-label={`Remove step ${n + 1}`} onClick={() => change(steps.filter((_, other) => other !== n))}>
                Remove
              </button>
            </span>
          </li>
        ))}
      </ol>
      <MistakeLines mistakes={mistakes.preprocessing ?? []} />
      <label class="field">
        <span>Add a step</span>
        <select
          value=""
          onChange={(event) => {
            const spec = stepSpec(event.currentTarget.value);
            event.currentTarget.value = '';
            change([...steps, put({ type: spec.type }, 'parameters', spec.params.map(() => ''))]);
          }}
        >
          <option value="">Choose…</option>
          {[...new Set(STEPS.map((one) => one.group))].map((group) => (
            <optgroup key={group} label={group}>
              {STEPS.filter((one) => one.group === group).map((one) => (
                <option key={one.type} value={one.type}>
                  {one.title}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
    </fieldset>
  );
}

function Step({ step, number, set, mistakes, tried }: { step: Fields; number: number; set: (step: Fields) => void; mistakes: string[]; tried: boolean }) {
  const spec = stepSpec(text(step, 'type'));
  const params = Array.isArray(step.parameters) ? (step.parameters as string[]) : [];
  const [touched, setTouched] = useState(false);
  const fresh = !tried && !touched && params.every((one) => one === '');
  const shown = Math.max(spec.params.length, params.length);
  const onFail = text(step, 'error_handler', 'ORIGINAL_ERROR');
  const change = (at: number, value: string): void => set({ ...step, parameters: Array.from({ length: shown }, (_, n) => (n === at ? value : (params[n] ?? ''))) });
  return (
    <div class="step" onFocusOut={(event) => !event.currentTarget.contains(event.relatedTarget as Node | null) && setTouched(true)}>
      <b>
        {number}. {spec.title}
      </b>
      {Array.from({ length: shown }, (_, n) => (
        <Text key={n} label={spec.params[n]?.label ?? `Parameter ${n + 1}`} value={params[n] ?? ''} set={(value) => change(n, value)} lines={spec.params[n]?.lines} mono />
      ))}
      <Pick label="A failure" value={onFail} options={ON_FAIL} set={(value) => set(put(value.startsWith('CUSTOM') ? step : put(step, 'error_handler_params', ''), 'error_handler', value, 'ORIGINAL_ERROR'))} />
      {onFail.startsWith('CUSTOM') && <Text label={onFail === 'CUSTOM_VALUE' ? 'Value instead' : 'Error instead'} value={text(step, 'error_handler_params')} set={(value) => set(put(step, 'error_handler_params', value))} />}
      <MistakeLines mistakes={fresh ? [] : mistakes} />
    </div>
  );
}
