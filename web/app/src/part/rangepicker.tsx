// The one time range of the page: presets, what a person types, half a range back and forth.

import { useEffect, useRef, useState } from 'preact/hooks';
import { useCell } from '../state/cell.ts';
import { serverNow } from '../state/live.ts';
import { route } from '../state/route.ts';
import { chooseRange, currentRange, moveWindow, rangeLength, windowKey } from '../state/window.ts';
import { spanText, zoneName } from '../time/clock.ts';
import { durationWords, parseDuration, parseRange, PRESETS, type Range } from '../time/range.ts';
import { setZone, shortName, zone, zoneNames } from '../time/zone.ts';
import { Icon } from './icon.tsx';

export function RangePicker() {
  useCell(route);
  useCell(windowKey);
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const range = currentRange();

  useEffect(() => {
    if (!open) return;
    const away = (event: Event): void => {
      if (!box.current!.contains(event.target as Node)) setOpen(false);
    };
    addEventListener('pointerdown', away);
    return () => removeEventListener('pointerdown', away);
  }, [open]);

  const close = (): void => {
    setOpen(false);
    box.current?.querySelector<HTMLElement>('.range-now')?.focus();
  };
  const choose = (next: Range): void => {
    chooseRange(next);
    close();
  };
  return (
    <div class="range" ref={box} onKeyDown={(event) => open && event.key === 'Escape' && close()}>
      <button type="button" class="quiet range-move" title="Half a range back  [" aria-label="Half a range back" onClick={() => moveWindow(-0.5)}>
        <Icon name="back" />
      </button>
      <button type="button" class="quiet range-now" aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="clock" />
        <span>{rangeText(range)}</span>
        <small class="muted range-zone">{zoneName()}</small>
      </button>
      <button type="button" class="quiet range-move" title="Half a range forward  ]" aria-label="Half a range forward" onClick={() => moveWindow(0.5)}>
        <Icon name="forward" />
      </button>
      {open && <Choices range={range} choose={choose} />}
    </div>
  );
}

function rangeText(range: Range): string {
  return range.kind === 'span' ? spanText(range.from, range.to) : `last ${durationWords(rangeLength(range))}`;
}

function Choices({ range, choose }: { range: Range; choose: (range: Range) => void }) {
  const [text, setText] = useState('');
  const [problem, setProblem] = useState('');
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    const parsed = parseRange(text, serverNow());
    if (typeof parsed === 'string') setProblem(parsed);
    else choose(parsed);
  };
  return (
    <div class="floating range-choices" role="dialog" aria-label="Time range">
      <form onSubmit={submit}>
        <label class="unseen" for="range-text">
          Time range
        </label>
        <input id="range-text" ref={input} value={text} placeholder="2h, yesterday 9:00 .. 11:00" autocomplete="off" spellcheck={false} aria-invalid={problem !== ''} aria-describedby="range-problem" onInput={(event) => (setText(event.currentTarget.value), setProblem(''))} />
        <button type="submit">Show</button>
      </form>
      <p id="range-problem" class={problem === '' ? 'muted' : 'problem-text'} aria-live="polite">
        {problem || `Times are in ${zoneName()}.`}
      </p>
      <ZoneChoice />
      <div class="presets">
        <button type="button" class="quiet" aria-pressed={range.kind === 'auto'} onClick={() => choose({ kind: 'auto' })}>
          automatic
        </button>
        {PRESETS.map((code) => {
          const ms = parseDuration(code)!;
          return (
            <button key={code} type="button" class="quiet" aria-pressed={range.kind === 'last' && range.ms === ms} onClick={() => choose({ kind: 'last', ms })}>
              {durationWords(ms)}
            </button>
          );
        })}
      </div>
    </div>
  );
}

// The zone that all times of the page are written and read in. It is kept in this browser.
function ZoneChoice() {
  const chosen = useCell(zone);
  return (
    <label class="zone-choice">
      <span>Time zone</span>
      <select value={chosen} onChange={(event) => setZone(event.currentTarget.value)}>
        <option value="">of this browser ({shortName(serverNow(), '')})</option>
        {zoneNames().map((name) => (
          <option key={name} value={name}>
            {name.replaceAll('_', ' ')}
          </option>
        ))}
      </select>
    </label>
  );
}
