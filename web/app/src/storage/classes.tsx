// What takes the room: how small each kind of values became.

import { getClasses, type StorageClass } from '../api/storage.ts';
import { digits, formatValue } from '../format/number.ts';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { classRows, type ClassRow } from './outlook.ts';

const KINDS: Record<StorageClass['class'], string> = {
  steady: 'Numbers that stay the same, or grow evenly',
  float: 'Other numbers with a fraction',
  uint: 'Other whole numbers',
  text: 'Texts and log lines',
  binary: 'Latency sketches',
};

const COLUMNS: Column<ClassRow>[] = [
  { id: 'class', title: 'Kind of values', cell: (row) => KINDS[row.class] },
  { id: 'share', title: 'Of the room', cell: (row) => `${digits(row.share * 100, 2)} %`, sort: (row) => row.share, number: true },
  { id: 'bytes', title: 'Size', cell: (row) => formatValue(row.bytes, 'B'), sort: (row) => row.bytes, number: true },
  { id: 'values', title: 'Values', cell: (row) => row.values.toLocaleString('en-US'), sort: (row) => row.values, number: true, minor: true },
  { id: 'each', title: 'A value takes', cell: (row) => `${digits(row.each, 2)} B`, sort: (row) => row.each, number: true },
  { id: 'smaller', title: 'Times smaller', cell: (row) => (row.smaller === null ? '–' : digits(row.smaller, 3)), sort: (row) => row.smaller ?? 0, number: true, minor: true },
];

export function Classes() {
  const state = useLoad((signal) => getClasses(signal), []);
  return (
    <section aria-labelledby="classes-title">
      <h2 id="classes-title">Compression by kind of values</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {state.data !== null && state.data.classes.length === 0 && <p class="muted">Known once a file pair of values is closed.</p>}
      {state.data !== null && state.data.classes.length > 0 && (
        <>
          <Table caption="Kinds of values" columns={COLUMNS} rows={classRows(state.data.classes)} rowKey={(row) => row.class} sort="-share" />
          <p class="muted">Closed file pairs, reckoned from a sample of them. Numbers are compared with 16 bytes of time and number as they arrive.</p>
        </>
      )}
    </section>
  );
}
