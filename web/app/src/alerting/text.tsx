// All settings of alerting as text, to change what has no form.

import { useState } from 'preact/hooks';
import { type Alerting, putAlerting } from '../api/alerting.ts';
import { Form } from '../part/form.tsx';

export function AlertingText({ alerting, changed }: { alerting: Alerting; changed: () => void }) {
  const [text, setText] = useState(JSON.stringify(alerting, null, 2));
  const [done, setDone] = useState(false);
  const run = async (): Promise<void> => {
    setDone(false);
    let change: Alerting;
    try {
      change = JSON.parse(text) as Alerting;
    } catch (error) {
      throw { detail: `this is no JSON: ${error instanceof Error ? error.message : String(error)}` };
    }
    await putAlerting(change);
    setDone(true);
    changed();
  };
  return (
    <>
      <p class="muted">
        Media types, receivers, actions and maintenances as JSON. Saving puts them over those of the same name and deletes none; a secret of ******** keeps its value. A mistake changes nothing and is named.
        The same as a YAML file: tidemark alert apply.
      </p>
      <Form submit="Save" run={run}>
        <label class="field text-field">
          <span>Settings of alerting</span>
          <textarea value={text} rows={28} spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      </Form>
      {done && <p role="status">Saved.</p>}
    </>
  );
}
