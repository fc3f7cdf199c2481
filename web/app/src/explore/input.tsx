// The field for an expression: it offers what can come next. Arrows choose, Enter or Tab take, Escape leaves them alone.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { get, getMetricNames } from '../api/client.ts';
import { getLabelValues } from '../api/dashboards.ts';
import { useLater, useLoad } from '../part/load.ts';
import { type Choice, choicesFor, placeOf, taken } from './complete.ts';

interface Props {
  value: string;
  set: (text: string) => void;
  /** Runs what the field holds, which may be newer than value. */
  run: (text: string) => void;
}

const MAX_METRICS = 20_000;

export function QueryInput({ value, set, run }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [cursor, setCursor] = useState(value.length);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const next = useRef<number | null>(null);
  const place = useMemo(() => placeOf(value, Math.min(cursor, value.length)), [value, cursor]);
  const metrics = useLoad((signal) => getMetricNames(signal), []);
  const about = useLater(`${place.kind === 'label' || place.kind === 'value' ? place.metric : ''}\n${place.kind === 'value' ? place.label : ''}`, 120);
  const [metric, label] = about.split('\n');
  const match = metric === '' ? '' : `{__name__="${metric}"}`;
  const labels = useLoad((signal) => get<{ data: string[] }>('the labels', '/api/v1/labels', match === '' ? {} : { 'match[]': match }, signal), [match]);
  const values = useLoad(async (signal) => (label === '' ? { data: [] } : getLabelValues(label, match, signal)), [label, match]);
  const choices = useMemo(
    () => (open ? choicesFor(place, { metrics: (metrics.data?.data ?? []).slice(0, MAX_METRICS), labels: labels.data?.data ?? [], values: values.data?.data ?? [] }) : []),
    [open, place, metrics.data, labels.data, values.data],
  );
  const at = Math.min(chosen, choices.length - 1);

  useEffect(() => {
    if (next.current === null) return;
    input.current!.setSelectionRange(next.current, next.current);
    setCursor(next.current);
    next.current = null;
  }, [value]);
  useEffect(() => document.getElementById(`promql-choice-${at}`)?.scrollIntoView({ block: 'nearest' }), [at]);

  const take = (choice: Choice): void => {
    const result = taken(value, place, choice);
    next.current = result.cursor;
    set(result.text);
    setChosen(-1);
    // What is chosen inside parentheses leads to the next choice.
    setOpen(choice.back > 0);
    input.current!.focus();
  };
  const follow = (): void => setCursor(input.current!.selectionStart ?? value.length);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown' && choices.length > 0) setChosen(Math.min(at + 1, choices.length - 1));
    else if (event.key === 'ArrowDown') setOpen(true);
    else if (event.key === 'ArrowUp' && choices.length > 0) setChosen(Math.max(at - 1, -1));
    else if ((event.key === 'Enter' || event.key === 'Tab') && at >= 0 && choices[at] !== undefined && !event.shiftKey) take(choices[at]);
    else if (event.key === 'Escape' && open) setOpen(false);
    else {
      if (event.key === 'Enter') {
        setOpen(false);
        event.preventDefault();
        run(input.current!.value);
      }
      return;
    }
    event.preventDefault();
  };
  return (
    <div class="query-input">
      <input
        id="promql"
        ref={input}
        value={value}
        placeholder="PromQL, for example rate(net_if_in[1m])"
        autocomplete="off"
        spellcheck={false}
        role="combobox"
        aria-expanded={choices.length > 0}
        aria-controls="promql-choices"
        aria-autocomplete="list"
        aria-activedescendant={at >= 0 ? `promql-choice-${at}` : undefined}
        onInput={(event) => {
          set(event.currentTarget.value);
          setCursor(event.currentTarget.selectionStart ?? 0);
          setOpen(true);
          setChosen(-1);
        }}
        onKeyDown={onKeyDown}
        onKeyUp={follow}
        onClick={follow}
        onBlur={() => setOpen(false)}
      />
      <ul id="promql-choices" class="floating query-choices" role="listbox" aria-label="What can come here" hidden={choices.length === 0}>
        {choices.map((choice, n) => (
          <li
            key={choice.text}
            id={`promql-choice-${n}`}
            role="option"
            aria-selected={n === at}
            onPointerDown={(event) => {
              event.preventDefault();
              take(choice);
            }}
          >
            <code>{choice.text}</code>
            <span class="muted">{choice.about}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
