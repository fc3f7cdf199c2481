// Snapshots that the server keeps: the list, making one, deleting one.

import { useState } from 'preact/hooks';
import { deleteSnapshot, getSnapshots, makeSnapshot, type Snapshot } from '../api/storage.ts';
import { digits, formatValue, plural } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { Field, Form, Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';

export function Snapshots({ changes }: { changes: boolean }) {
  const list = useLoad((signal) => getSnapshots(signal), []);
  const [name, setName] = useState('');
  const [said, setSaid] = useState('');
  const [failure, setFailure] = useState('');
  const run = async (): Promise<void> => {
    setSaid('');
    const made = await makeSnapshot(name.trim());
    setSaid(`Made ${made.name} of ${plural(made.files, 'file')}; they were held for ${digits(made.took_ms ?? 0, 3)} ms.`);
    setName('');
    list.reload();
  };
  const columns: Column<Snapshot>[] = [
    { id: 'name', title: 'Snapshot', class: 'anywhere', cell: (one) => one.name, sort: (one) => one.name },
    { id: 'at', title: 'Made', cell: (one) => formatClock(one.created_at), sort: (one) => one.created_at },
    { id: 'bytes', title: 'Size', cell: (one) => formatValue(one.bytes, 'B'), sort: (one) => one.bytes, number: true },
    { id: 'files', title: 'Files', cell: (one) => one.files.toLocaleString('en-US'), sort: (one) => one.files, number: true, minor: true },
  ];
  if (changes) {
    columns.push({ id: 'do', title: '', number: true, cell: (one) => <Sure label="Delete" again={`Delete ${one.name}?`} run={() => deleteSnapshot(one.name).then(list.reload)} failed={setFailure} /> });
  }
  return (
    <section aria-labelledby="snapshots-title">
      <h2 id="snapshots-title">Snapshots</h2>
      <p class="muted">
        Everything as it was at one moment. Files are shared with the store, so a snapshot takes room only for what the store has deleted since
        {list.data !== null && list.data.snapshots.length > 0 ? `: ${formatValue(list.data.held_bytes, 'B')} now.` : '.'}
      </p>
      {list.error !== null && <Failure error={list.error} retry={list.reload} />}
      {list.data !== null && list.data.snapshots.length === 0 && <p>None is kept.</p>}
      {list.data !== null && list.data.snapshots.length > 0 && <Table caption="Snapshots" columns={columns} rows={list.data.snapshots} rowKey={(one) => one.name} sort="-at" />}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {changes && (
        <Form submit="Make a snapshot" run={run}>
          <Field label="Name of the new snapshot" value={name} set={setName} required={false} hint="Empty names it after the time." />
        </Form>
      )}
      {said !== '' && <p role="status">{said}</p>}
    </section>
  );
}
