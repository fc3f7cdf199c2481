// Deleting the history of a host or an item: asked for twice, with the name typed.

import { useState } from 'preact/hooks';
import { purge, type Purge as Asked } from '../api/configuration.ts';
import { plural } from '../format/number.ts';
import { Form, said } from '../part/form.tsx';
import { Text } from './parts.tsx';
import { Refusal } from '../part/notice.tsx';

export function Purge({ host }: { host: string }) {
  const [key, setKey] = useState('');
  const [asked, setAsked] = useState<Asked | null>(null);
  const [typed, setTyped] = useState('');
  const [done, setDone] = useState('');
  const [failure, setFailure] = useState('');
  const of = key === '' ? { host } : { host, key };
  const ask = async (): Promise<void> => {
    setDone('');
    setFailure('');
    try {
      setAsked(await purge(of));
      setTyped('');
    } catch (error) {
      setFailure(said(error));
    }
  };
  const confirm = async (): Promise<void> => {
    if (typed !== asked?.confirm) throw { detail: `type ${asked?.confirm} to delete the history` };
    const { items } = await purge({ ...of, token: asked.token, confirm: typed });
    setAsked(null);
    setDone(`The history of ${plural(items, 'item')} is deleted.`);
  };
  return (
    <details class="purge">
      <summary>Delete history</summary>
      <p class="muted">All values and trends go at once and for good; items, triggers and problems stay. Snapshots and backups that were made before keep them.</p>
      {asked === null ? (
        <>
          <Text label="Key of the only item" value={key} set={setKey} mono hint="Empty for all items of the host." />
          <div>
            <button type="button" class="danger" onClick={() => void ask()}>
              Delete the history…
            </button>
          </div>
        </>
      ) : (
        <Form submit={`Delete the history of ${plural(asked.items, 'item')}`} run={confirm} cancel={() => setAsked(null)}>
          <Text label={`Type ${asked.confirm} to confirm`} value={typed} set={setTyped} focus mono />
        </Form>
      )}
      <Refusal text={failure} />
      {done !== '' && <p role="status">{done}</p>}
    </details>
  );
}
