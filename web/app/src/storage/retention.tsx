// How long values are kept: what the items say, or one time for all of them.

import { useState } from 'preact/hooks';
import { getRetention, putRetention, type Retention, type Store } from '../api/storage.ts';
import { Field, Form } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { dateText } from '../time/clock.ts';
import { keptSeconds, keptText, loses } from './kept.ts';

export function RetentionSection({ changes, store, now }: { changes: boolean; store: Store; now: number }) {
  const state = useLoad((signal) => getRetention(signal), []);
  return (
    <section aria-labelledby="retention-title">
      <h2 id="retention-title">Retention</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {state.data !== null && (
        <>
          <p class="outlook">{sentence(state.data, store)}</p>
          {changes && <Change now={now} store={store} state={state.data} reload={state.reload} />}
        </>
      )}
    </section>
  );
}

function sentence(r: Retention, store: Store): string {
  const one = (seconds: number): string => (seconds === 0 ? 'as long as each item says' : `for ${keptText(seconds)}, whatever items say`);
  const room = store.engine === 'dbengine' ? ' In any case the oldest go when the disk space is used up.' : '';
  return `Values are kept ${one(r.history_seconds)}; summaries ${one(r.trends_seconds)}.${room}`;
}

function Change({ state, store, now, reload }: { state: Retention; store: Store; now: number; reload: () => void }) {
  const [history, setHistory] = useState(state.history_seconds === 0 ? '' : keptText(state.history_seconds));
  const [trends, setTrends] = useState(state.trends_seconds === 0 ? '' : keptText(state.trends_seconds));
  const [asked, setAsked] = useState('');
  const [said, setSaid] = useState('');
  if (state.history_fixed && state.trends_fixed) return <p class="muted">Both are set in the configuration file, by storage.override_history and storage.override_trends.</p>;
  const run = async (): Promise<void> => {
    setSaid('');
    const [forHistory, forTrends] = [keptSeconds('Values', history), keptSeconds('Summaries', trends)];
    const lost = loses(forHistory, state.history_seconds, store.from, now);
    if (lost !== null && asked !== history) {
      setAsked(history);
      setSaid(`Values from before ${dateText(lost)} will be deleted, and cannot be brought back. Press the button again if that is meant.`);
      return;
    }
    await putRetention(forHistory, forTrends);
    setAsked('');
    setSaid('In force. What is too old by now goes within ten minutes.');
    reload();
  };
  const change = (set: (text: string) => void) => (text: string) => {
    setSaid('');
    setAsked('');
    set(text);
  };
  return (
    <Form submit="Keep them so long" run={run}>
      {!state.history_fixed && <Field label="Values of all items" value={history} set={change(setHistory)} required={false} hint="Such as 31d, 12h or 2y. Empty: what each item says." />}
      {!state.trends_fixed && <Field label="Summaries of all items" value={trends} set={change(setTrends)} required={false} hint="Such as 365d. Empty: what each item says." />}
      {said !== '' && <p role="status">{said}</p>}
    </Form>
  );
}
