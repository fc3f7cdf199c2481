// The file pairs of each tier on one line of time.

import { useState } from 'preact/hooks';
import type { Pair, Store } from '../api/storage.ts';
import { formatValue, plural } from '../format/number.ts';
import { type Column, Table } from '../part/table.tsx';
import { axisTimes, dateTime, spanText } from '../time/clock.ts';

const WIDTH = 1000;
const HEIGHT = 26;

const TITLES: Record<string, string> = { values: 'Values', minutes: 'Minutes', hours: 'Hours' };

export function TimeLine({ store, now }: { store: Store; now: number }) {
  const drawn = store.pairs.filter((pair) => pair.to > 0);
  if (drawn.length === 0) return <p class="muted">No file pair is closed yet; new values are in memory and in the log.</p>;
  const from = Math.min(...drawn.map((pair) => pair.from));
  const to = Math.max(now, ...drawn.map((pair) => pair.to));
  const place = (at: number): number => ((at - from) / Math.max(1, to - from)) * WIDTH;
  return (
    <div class="store-line">
      {store.tiers.map((tier) => {
        const pairs = drawn.filter((pair) => pair.tier === tier.tier);
        const label = pairs.length === 0 ? `${TITLES[tier.tier]}: none yet` : `${TITLES[tier.tier]}: ${plural(tier.pairs, 'file pair')}, ${spanText(tier.from, tier.to)}, ${formatValue(tier.bytes, 'B')}`;
        return (
          <div class="store-row" key={tier.tier}>
            <span class="muted">{TITLES[tier.tier]}</span>
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
              <rect class="store-ground" x="0" y="0" width={WIDTH} height={HEIGHT} />
              {pairs.map((pair) => (
                <Block key={pair.name} pair={pair} x={place(pair.from)} end={place(pair.to)} />
              ))}
            </svg>
          </div>
        );
      })}
      <div class="store-row">
        <span />
        <Axis from={from} to={to} />
      </div>
      <PairTable pairs={drawn} />
    </div>
  );
}

// PairTable is the drawing as text.
function PairTable({ pairs }: { pairs: Pair[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && <Table caption="File pairs" columns={PAIR_COLUMNS} rows={pairs} rowKey={(pair) => `${pair.tier} ${pair.name}`} sort="-from" />}
    </details>
  );
}

const PAIR_COLUMNS: Column<Pair>[] = [
  { id: 'tier', title: 'Of', cell: (pair) => TITLES[pair.tier] ?? pair.tier, sort: (pair) => pair.tier },
  { id: 'name', title: 'File pair', class: 'anywhere', cell: (pair) => `${pair.count > 1 ? plural(pair.count, 'file pair') : pair.name}${pair.growing ? ', growing' : ''}`, sort: (pair) => pair.name, minor: true },
  { id: 'from', title: 'From', cell: (pair) => dateTime(pair.from), sort: (pair) => pair.from },
  { id: 'to', title: 'To', cell: (pair) => dateTime(pair.to), sort: (pair) => pair.to },
  { id: 'bytes', title: 'Size', cell: (pair) => formatValue(pair.bytes, 'B'), sort: (pair) => -pair.bytes, number: true },
  { id: 'values', title: 'Values', cell: (pair) => (pair.values > 0 ? pair.values.toLocaleString('en-US') : '–'), sort: (pair) => -pair.values, number: true, minor: true },
];

function Block({ pair, x, end }: { pair: Pair; x: number; end: number }) {
  const many = pair.count > 1 ? `${pair.count} file pairs` : pair.name;
  const values = pair.values > 0 ? `, ${plural(pair.values, 'value')}` : '';
  return (
    <rect class={pair.growing ? 'store-pair growing' : 'store-pair'} x={x} y="1" width={Math.max(1.5, end - x - 0.8)} height={HEIGHT - 2}>
      <title>{`${many}${pair.growing ? ', growing' : ''}\n${spanText(pair.from, pair.to)}\n${formatValue(pair.bytes, 'B')}${values}`}</title>
    </rect>
  );
}

function Axis({ from, to }: { from: number; to: number }) {
  const marks = 5;
  const step = (to - from) / marks;
  const inner = axisTimes(Array.from({ length: marks - 1 }, (_, i) => from + step * (i + 1)), step);
  return (
    <div class="store-axis muted">
      <span>{dateTime(from).replace(/:\d\d$/, '')}</span>
      {inner.map((text, i) => (
        <span key={i} class="minor">
          {text}
        </span>
      ))}
      <span>now</span>
    </div>
  );
}
