// The table of requests: what costs most comes first. A row opens below itself.

import { Fragment } from 'preact';
import type { Ranking, RankRow, Span, Sums } from '../api/mongo.ts';
import { plural } from '../format/number.ts';
import { Sparkline } from '../part/sparkline.tsx';
import { setParams } from '../state/route.ts';
import type { Choice } from './address.ts';
import { ShapeDetail } from './detail.tsx';
import { bytesText, errorText, latencyText, loadText, rateText, RowName, titleOf } from './text.tsx';

interface Column {
  order: string;
  title: string;
  about: string;
  cell: (sums: Sums, seconds: number) => string;
  class?: string;
}

const COLUMNS: Column[] = [
  { order: 'requests', title: 'req/s', about: 'Requests per second', cell: (sums) => rateText(sums.rate) },
  { order: 'p50', title: 'p50', about: 'Median latency of the range', cell: (sums) => latencyText(sums.p50), class: 'minor' },
  { order: 'p95', title: 'p95', about: '95 % of the requests are at most so long', cell: (sums) => latencyText(sums.p95) },
  { order: 'p99', title: 'p99', about: '99 % of the requests are at most so long', cell: (sums) => latencyText(sums.p99), class: 'minor' },
  { order: 'errors', title: 'errors', about: 'Share of the requests that failed; sorted by their number', cell: errorText },
  { order: 'in', title: 'in', about: 'Bytes of requests per second', cell: (sums, seconds) => bytesText(sums.bytes_in, seconds), class: 'minor' },
  { order: 'out', title: 'out', about: 'Bytes of replies per second', cell: (sums, seconds) => bytesText(sums.bytes_out, seconds), class: 'minor' },
];

const NAMES: Record<string, string> = { shape: 'Shape', collection: 'Collection', command: 'Command', application: 'Application', client: 'Client' };

export function RequestTable({ ranking, choice, span, dimmed }: { ranking: Ranking; choice: Choice; span: Span; dimmed: boolean }) {
  const head = (order: string, title: string, about: string, name: string) => (
    <th scope="col" class={name} aria-sort={ranking.order === order ? 'descending' : undefined}>
      <button type="button" class="sort" title={about} onClick={() => setParams({ order: order === 'load' ? '' : order })}>
        {title}
      </button>
    </th>
  );
  const most = Math.max(...ranking.rows.map((row) => row.sums.seconds), 1e-12);
  return (
    <table class={`list linked requests${dimmed ? ' dimmed' : ''}`}>
      <caption class="unseen">Requests by {choice.group_by}</caption>
      <thead>
        <tr>
          {head('load', 'load', 'Time spent in these requests per second: 100 % is one at every moment', 'load-cell')}
          <th scope="col" class="trend minor">
            trend
          </th>
          {COLUMNS.map((column) => head(column.order, column.title, column.about, `number ${column.class ?? ''}`))}
          <th scope="col" class="name-cell">
            {NAMES[choice.group_by]}
          </th>
        </tr>
      </thead>
      <tbody>
        {ranking.rows.map((row) => (
          <Row key={`${row.rest ? 'rest ' : ''}${row.id}`} row={row} ranking={ranking} choice={choice} span={span} most={most} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ row, ranking, choice, span, most }: { row: RankRow; ranking: Ranking; choice: Choice; span: Span; most: number }) {
  const open = choice.group_by === 'shape' && choice.open === row.id;
  const narrow = narrowing(row, choice);
  const act = choice.group_by === 'shape' ? () => setParams({ shape: open ? '' : row.id }, false) : narrow;
  const seconds = ranking.watched_ms / 1000;
  const share = ranking.total.seconds > 0 ? row.sums.seconds / ranking.total.seconds : 0;
  const click = (event: MouseEvent): void => {
    if ((event.target as Element).closest('a,button') === null && !getSelection()?.toString()) act?.();
  };
  return (
    <Fragment>
      <tr class={act === undefined ? 'still' : open ? 'open' : ''} data-row={row.id} onClick={click}>
        <td class="load-cell" title={`${(share * 100).toFixed(1)} % of all load`}>
          <i class="load-bar" style={{ width: `${Math.max(0.5, (row.sums.seconds / most) * 100)}%` }} />
          <span>{loadText(row.sums.load)}</span>
        </td>
        <td class="trend minor">
          <Sparkline values={row.loads} width={84} height={20} label={`Load of ${titleOf(row)}`} />
        </td>
        {COLUMNS.map((column) => (
          <td key={column.order} class={`number ${column.class ?? ''}${column.order === 'errors' && row.sums.errors > row.sums.requests / 100 ? ' bad' : ''}`} data-title={column.title}>
            {column.cell(row.sums, seconds)}
          </td>
        ))}
        <td class="name-cell">
          {act === undefined ? (
            <RowName row={row} />
          ) : (
            <button type="button" class="row-button" aria-expanded={choice.group_by === 'shape' ? open : undefined} onClick={act}>
              <RowName row={row} />
            </button>
          )}
        </td>
      </tr>
      {open && (
        <tr class="detail-row">
          <td colSpan={COLUMNS.length + 3}>
            <ShapeDetail instance={ranking.instance.id} id={row.id} span={span} />
          </td>
        </tr>
      )}
    </Fragment>
  );
}

// narrowing is what a click on a row of a group does: it shows the shapes of the collection or the command.
function narrowing(row: RankRow, { group_by }: Choice): (() => void) | undefined {
  if (group_by === 'collection') return () => setParams({ group: '', db: row.db ?? '', collection: row.collection || '-' }, false);
  if (group_by === 'command') return () => setParams({ group: '', command: row.command ?? '' }, false);
  return undefined;
}

/** FoundText says how many rows there are. */
export function foundText(ranking: Ranking): string {
  const what = plural(ranking.found, NAMES[ranking.group_by].toLowerCase());
  return ranking.found > ranking.rows.length ? `the first ${ranking.rows.length.toLocaleString('en-US')} of ${what}` : what;
}
