// Media types and receivers, and the test message.

import { useState } from 'preact/hooks';
import { type Alerting, deleteAlerting, type Media, type Receiver, testAlert } from '../api/alerting.ts';
import { Choice, Field, Form, Sure } from '../part/form.tsx';
import { Empty } from '../part/notice.tsx';
import { useOpened } from '../part/opened.ts';
import { type Column, Table } from '../part/table.tsx';
import { newMedia } from './draft.ts';
import { ImportMedia, MediaForm, ReceiverForm } from './mediaform.tsx';
import { mediaWords } from './words.ts';

export function MediaView({ alerting, changed }: { alerting: Alerting; changed: () => void }) {
  const [failure, setFailure] = useState('');
  const form = useOpened('media', 'receiver');
  const media = alerting.media ?? [];
  const receivers = alerting.receivers ?? [];
  const done = (saved: boolean): void => {
    form.close();
    if (saved) changed();
  };
  const fresh = form.now?.name === '';
  const editedMedia = form.now?.kind !== 'media' ? undefined : fresh ? newMedia('', 'mail') : media.find((one) => one.name === form.now!.name);
  if (editedMedia !== undefined) return <MediaForm alerting={alerting} media={editedMedia} fresh={fresh} done={done} />;
  const editedReceiver = form.now?.kind !== 'receiver' ? undefined : fresh ? { name: '', media: [{ media: media[0]?.name ?? '', to: '' }] } : receivers.find((one) => one.name === form.now!.name);
  if (editedReceiver !== undefined) return <ReceiverForm alerting={alerting} receiver={editedReceiver} fresh={fresh} done={done} />;
  const edit = (kind: 'media' | 'receiver', name: string) => (
    <button type="button" class="small" onClick={() => form.open(kind, name)}>
      Edit
    </button>
  );
  const mediaColumns: Column<Media>[] = [
    { id: 'name', title: 'Media type', class: 'anywhere', cell: (one) => one.name, sort: (one) => one.name },
    { id: 'how', title: 'How', class: 'anywhere', cell: (one) => mediaWords(one) },
    { id: 'state', title: 'State', minor: true, cell: (one) => (one.disabled ? 'disabled' : 'enabled') },
    { id: 'do', title: '', number: true, cell: (one) => <span class="row-buttons">{edit('media', one.name)}<Sure label="Delete" again={`Delete ${one.name}?`} run={() => deleteAlerting('media', one.name).then(changed)} failed={setFailure} /></span> },
  ];
  const receiverColumns: Column<Receiver>[] = [
    { id: 'name', title: 'Receiver', class: 'anywhere', cell: (one) => one.name, sort: (one) => one.name },
    {
      id: 'media',
      title: 'Reached by',
      class: 'anywhere',
      cell: (one) =>
        one.media.map((way, i) => (
          <div key={i}>
            {way.media}: {way.to} <span class="muted">{[(way.severities ?? []).join(', '), way.when ?? '', way.disabled ? 'disabled' : ''].filter(Boolean).join('; ')}</span>
          </div>
        )),
    },
    { id: 'do', title: '', number: true, cell: (one) => <span class="row-buttons">{edit('receiver', one.name)}<Sure label="Delete" again={`Delete ${one.name}?`} run={() => deleteAlerting('receiver', one.name).then(changed)} failed={setFailure} /></span> },
  ];
  return (
    <>
      {media.length === 0 && receivers.length === 0 && (
        <Empty title="Nobody can be reached yet.">
          <p class="muted">Make a media type, such as mail or a webhook, then a receiver.</p>
        </Empty>
      )}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      <section aria-labelledby="media-title">
        <h2 id="media-title">Media types</h2>
        {media.length === 0 ? <p class="muted">There are none.</p> : <Table caption="Media types" columns={mediaColumns} rows={media} rowKey={(one) => one.name} sort="name" />}
        <p>
          <button type="button" onClick={() => form.add('media')}>
            New media type
          </button>
        </p>
      </section>
      <section aria-labelledby="receivers-title">
        <h2 id="receivers-title">Receivers</h2>
        {receivers.length === 0 ? <p class="muted">There are none.</p> : <Table caption="Receivers" columns={receiverColumns} rows={receivers} rowKey={(one) => one.name} sort="name" />}
        {media.length > 0 && (
          <p>
            <button type="button" onClick={() => form.add('receiver')}>
              New receiver
            </button>
          </p>
        )}
      </section>
      {media.length > 0 && <TestMessage key={media.map((one) => one.name).join('\n')} media={media} receivers={receivers} />}
      <ImportMedia done={changed} />
    </>
  );
}

function TestMessage({ media, receivers }: { media: Media[]; receivers: Receiver[] }) {
  const known = (name: string): string => receivers.flatMap((one) => one.media).find((way) => way.media === name)?.to ?? '';
  const [name, setName] = useState(media[0]!.name);
  const [to, setTo] = useState(known(media[0]!.name));
  const [said, setSaid] = useState('');
  const choose = (next: string): void => {
    setName(next);
    setTo(known(next));
    setSaid('');
  };
  const run = async (): Promise<void> => {
    setSaid('');
    const answer = await testAlert(name, to);
    if (!answer.sent) throw { detail: `It was not sent: ${answer.error}${answer.answer ? ` (the other side said: ${answer.answer})` : ''}` };
    setSaid(`Sent.${answer.answer ? ` The other side said: ${answer.answer}` : ''}`);
  };
  return (
    <section aria-labelledby="test-title">
      <h2 id="test-title">Send a test message</h2>
      <Form submit="Send a test message" run={run}>
        <Choice label="Over" value={name} options={media.map((one) => one.name)} set={choose} />
        <Field label="To" value={to} set={setTo} hint="It is sent at once; nothing is put into the log." />
      </Form>
      {said !== '' && <p role="status">{said}</p>}
    </section>
  );
}
