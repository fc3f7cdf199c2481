// Two ranges side by side: what is new, what became slower. What changed the load most comes first.

import type { Change, Comparison, Sums, Verdict } from '../api/mongo.ts';
import { digits } from '../format/number.ts';
import { Empty } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';
import { spanText } from '../time/clock.ts';
import type { Choice } from './address.ts';
import { latencyText, loadText, rateText, RowName } from './text.tsx';

const VERDICTS: [Verdict, string, string][] = [
  ['new', 'new', 'No such request before'],
  ['slower', 'slower', 'Median or p95 at least 1.3 times as long'],
  ['more', 'more', 'At least twice as many a second'],
  ['same', 'the same', 'Neither latency nor rate changed much'],
  ['less', 'fewer', 'At most half as many a second'],
  ['faster', 'faster', 'Median or p95 at least 1.3 times as short'],
  ['gone', 'gone', 'No such request any more'],
];

export function CompareTable({ comparison, choice, dimmed }: { comparison: Comparison; choice: Choice; dimmed: boolean }) {
  const { params } = useCell(route);
  const only = VERDICTS.find(([verdict]) => verdict === params.get('verdict'))?.[0] ?? '';
  const setOnly = (verdict: Verdict | ''): void => setParams({ verdict });
  const counts = new Map<Verdict, number>();
  for (const row of comparison.rows) counts.set(row.verdict, (counts.get(row.verdict) ?? 0) + 1);
  const rows = comparison.rows.filter((row) => only === '' || row.verdict === only);
  const { before, after } = comparison;
  return (
    <div class={dimmed ? 'dimmed' : ''}>
      <p class="compare-spans">
        <span>
          <span class="muted">before</span> {spanText(before.from, before.to)}
        </span>
        <span>
          <span class="muted">after</span> {spanText(after.from, after.to)}
        </span>
        <span>
          <span class="muted">load</span> <Pair before={before.total} after={after.total} value={(sums) => sums.load} text={loadText} />
        </span>
        <span>
          <span class="muted">p95</span> <Pair before={before.total} after={after.total} value={(sums) => sums.p95} text={latencyText} />
        </span>
      </p>
      {before.watched_ms === 0 && <p class="muted">Nothing is kept of the range before, so everything is new.</p>}
      <div class="choice verdicts" role="group" aria-label="Show only">
        <button type="button" aria-pressed={only === ''} onClick={() => setOnly('')}>
          all {comparison.rows.length}
        </button>
        {VERDICTS.filter(([verdict]) => counts.has(verdict)).map(([verdict, word, about]) => (
          <button type="button" key={verdict} title={about} aria-pressed={only === verdict} onClick={() => setOnly(verdict)}>
            {word} {counts.get(verdict)}
          </button>
        ))}
      </div>
      {rows.length === 0 ? (
        <Empty title="No requests in either range." />
      ) : (
        <table class="list requests compared linked">
          <caption class="unseen">Changes of requests</caption>
          <thead>
            <tr>
              <th scope="col">change</th>
              <th scope="col" class="number">load</th>
              <th scope="col" class="number">by</th>
              <th scope="col" class="number">p50</th>
              <th scope="col" class="number">p95</th>
              <th scope="col" class="number minor">req/s</th>
              <th scope="col" class="name-cell">request</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={`${row.rest ? 'rest ' : ''}${row.id}`} row={row} choice={choice} />
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Row({ row, choice }: { row: Change; choice: Choice }) {
  const show = choice.group_by === 'shape' && row.verdict !== 'gone' ? () => setParams({ compare: '', shape: row.id }, false) : undefined;
  const word = VERDICTS.find(([verdict]) => verdict === row.verdict)?.[1];
  const sign = row.load_change > 0 ? '+' : '−';
  return (
    <tr class={show === undefined ? 'still' : ''} data-row={row.id} onClick={(event) => (event.target as Element).closest('button') === null && !getSelection()?.toString() && show?.()}>
      <td>
        <span class={`verdict ${row.verdict}`}>{word}</span>
      </td>
      <td class="number" data-title="load">
        <Pair before={row.before} after={row.after} value={(sums) => sums.load} text={loadText} />
      </td>
      <td class="number load-change" data-title="by">
        {Math.abs(row.load_change) < 0.0001 ? '–' : `${sign}${loadText(Math.abs(row.load_change))}`}
      </td>
      <td class="number" data-title="p50">
        <Pair before={row.before} after={row.after} value={(sums) => sums.p50} text={latencyText} />
      </td>
      <td class="number" data-title="p95">
        <Pair before={row.before} after={row.after} value={(sums) => sums.p95} text={latencyText} />
      </td>
      <td class="number minor" data-title="req/s">
        <Pair before={row.before} after={row.after} value={(sums) => sums.rate} text={rateText} />
      </td>
      <td class="name-cell">
        {show === undefined ? (
          <RowName row={row} />
        ) : (
          <button type="button" class="row-button" onClick={show}>
            <RowName row={row} />
          </button>
        )}
      </td>
    </tr>
  );
}

interface PairProps {
  before: Sums;
  after: Sums;
  value: (sums: Sums) => number | null;
  text: (value: number) => string;
}

// Pair writes before and after, and how many times more it is where that says something.
function Pair({ before, after, value, text }: PairProps) {
  const [was, is] = [value(before), value(after)];
  const side = (sums: Sums, number: number | null): string => (sums.requests === 0 || number === null ? '–' : text(number));
  const ratio = was !== null && is !== null && was > 0 ? is / was : null;
  return (
    <span class="pair">
      <span class="muted">{side(before, was)} →</span> {side(after, is)}
      {ratio !== null && ratio >= 1.3 && <b class="times"> {digits(ratio, 2)}×</b>}
    </span>
  );
}
