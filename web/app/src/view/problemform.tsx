// What a person does to one problem or to many at once: acknowledge, comment, suppress, close, change the severity.

import { useState } from 'preact/hooks';
import { updateProblems } from '../api/client.ts';
import { type Problem, SEVERITIES, type Severity } from '../api/types.ts';
import { Check, Field, Form } from '../part/form.tsx';
import { serverNow } from '../state/live.ts';
import type { Me } from '../state/me.ts';
import { NOTHING, problemsUpdate, type Wishes } from './problemwishes.ts';

const SPANS: [string, string][] = [
  ['', 'as it is'],
  ['1', 'for 1 hour'],
  ['4', 'for 4 hours'],
  ['24', 'for 1 day'],
  ['168', 'for 1 week'],
  ['at', 'until a time …'],
  ['forever', 'until somebody ends it'],
  ['end', 'end it now'],
];

/** mayOperate tells whether somebody may change problems, at least of some hosts. */
export function mayOperate(who: Me | null | undefined): boolean {
  return who !== null && who !== undefined && !(who.role === 'viewer' && who.all_hosts);
}

/** ProblemForm acts on problems; one press acknowledges, More has the rest. */
export function ProblemForm({ problems, done }: { problems: Problem[]; done: () => void }) {
  const [message, setMessage] = useState('');
  const [more, setMore] = useState(false);
  const [wishes, setWishes] = useState(NOTHING);
  const change = (part: Partial<Wishes>): void => setWishes({ ...wishes, ...part });
  const unseen = problems.some((p) => !p.acknowledged);
  const closable = problems.every((p) => p.closable);
  const open = problems.every((p) => p.recovered_at === null);
  const run = async (): Promise<void> => {
    const chosen = { ...(more ? wishes : NOTHING) };
    chosen.acknowledge &&= unseen;
    await updateProblems(
      problemsUpdate(
        problems.map((p) => p.event_id),
        message.trim(),
        chosen,
        serverNow(),
      ),
    );
    setMessage('');
    setWishes(NOTHING);
    setMore(false);
    done();
  };
  return (
    <Form submit={more ? 'Save' : unseen ? 'Acknowledge' : 'Add the comment'} run={run}>
      <Field label="Comment" value={message} set={setMessage} required={false} hint="What you found or do; it may be empty." />
      <button type="button" class="small" aria-expanded={more} onClick={() => setMore(!more)}>
        {more ? 'Only acknowledge or comment' : 'More: severity, suppress, close'}
      </button>
      {more && (
        <>
          {unseen && <Check label="Acknowledge" value={wishes.acknowledge} set={(acknowledge) => change({ acknowledge })} />}
          <label class="field">
            <span>New severity</span>
            <select value={wishes.severity} onChange={(event) => change({ severity: event.currentTarget.value as Severity | '' })}>
              <option value="">as it is</option>
              {SEVERITIES.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          {open && (
            <label class="field">
              <span>Suppress</span>
              <select value={wishes.suppress} onChange={(event) => change({ suppress: event.currentTarget.value })}>
                {SPANS.map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </select>
              <small class="muted">Nobody gets a message of it until then; if it is still there, messages go on.</small>
            </label>
          )}
          {open && wishes.suppress === 'at' && (
            <label class="field">
              <span>Until</span>
              <input type="datetime-local" value={wishes.until} required onInput={(event) => change({ until: event.currentTarget.value })} />
            </label>
          )}
          {open && closable && <Check label="Close: it is over although the trigger does not see that" value={wishes.close} set={(close) => change({ close })} />}
          {open && !closable && <p class="muted">{problems.length === 1 ? 'Its trigger does not' : 'Not all of their triggers'} allow closing by hand.</p>}
        </>
      )}
    </Form>
  );
}
