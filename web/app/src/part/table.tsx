// A table: sticky head, sorting by any column, numbers to the right, the whole row as the link.

import { type ComponentChildren, Fragment } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { natural } from '../format/natural.ts';
import { useCell } from '../state/cell.ts';
import { go, href, route, setParams } from '../state/route.ts';
import { groupBy } from './group.ts';

export interface Column<Row> {
  id: string;
  title: string;
  /** What stands in the head instead of the title. */
  head?: ComponentChildren;
  cell: (row: Row) => ComponentChildren;
  /** What rows are sorted by; a column without it cannot be sorted. */
  sort?: (row: Row) => number | string;
  number?: boolean;
  /** Left out on narrow screens. */
  minor?: boolean;
  class?: string;
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  rowLink?: (row: Row) => string;
  /** What a click on a row does instead of following a link, and what stands below the row while it is open; null for nothing. */
  rowClick?: (row: Row) => void;
  detail?: (row: Row) => ComponentChildren;
  /** Column and direction at first: "name" or "-name". */
  sort?: string;
  /** The parameter of the address that holds the order; without one it is forgotten with the view. */
  param?: string;
  /** All rows are shown at once; else the first 300, and more when asked for. */
  whole?: boolean;
  /** Rows of the same group stand together below its name; in the order of their first rows. */
  groupOf?: (row: Row) => string;
  dimmed?: boolean;
}

// Thousands of rows at once would make each change of the page slow.
const FIRST_ROWS = 300;
const MORE_ROWS = 1_000;

export function Table<Row>({ caption, columns, rows, rowKey, rowLink, rowClick, detail, sort = '', param, whole = false, groupOf, dimmed = false }: Props<Row>) {
  const [order, setOrder] = useOrder(sort, param);
  const [most, setMost] = useState(FIRST_ROWS);
  const sorted = useMemo(() => sortRows(rows, columns, order), [rows, columns, order]);
  const room = whole ? rows.length : most;
  let before = 0;
  // The head of a group counts all that are in it, shown or not.
  const groups = [...groupBy(sorted, groupOf ?? (() => ''))].map(([group, members]) => {
    const shown = members.slice(0, Math.max(0, room - before));
    before += members.length;
    return { group, count: members.length, shown };
  });
  const click = (event: MouseEvent, row: Row): void => {
    if ((event.target as Element).closest('a,button,input') !== null || getSelection()?.toString()) return;
    rowClick?.(row);
    if (rowLink === undefined) return;
    if (event.metaKey || event.ctrlKey) open(href(rowLink(row)), '_blank', 'noopener');
    else go(href(rowLink(row)));
  };
  const table = (
    <table class={`list${dimmed ? ' dimmed' : ''}${rowLink === undefined && rowClick === undefined ? '' : ' linked'}`}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.id} scope="col" class={classes(column)} aria-sort={ariaSort(order, column.id)}>
              {column.head !== undefined ? (
                column.head
              ) : column.sort === undefined ? (
                column.title
              ) : (
                <button type="button" class="sort" onClick={() => setOrder(order === column.id ? `-${column.id}` : column.id)}>
                  {column.title}
                </button>
              )}
            </th>
          ))}
        </tr>
      </thead>
      {groups.filter(({ shown }) => shown.length > 0).map(({ group, count, shown }) => (
        <tbody key={group}>
          {groupOf !== undefined && (
            <tr class="group-row">
              <th scope="rowgroup" colSpan={columns.length}>
                {group} <span class="muted">{count}</span>
              </th>
            </tr>
          )}
          {shown.map((row) => (
            <Fragment key={rowKey(row)}>
              <tr onClick={(event) => click(event, row)}>
                {columns.map((column) => (
                  <td key={column.id} class={classes(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
              <Below columns={columns.length}>{detail?.(row)}</Below>
            </Fragment>
          ))}
        </tbody>
      ))}
    </table>
  );
  if (rows.length <= room) return table;
  return (
    <>
      {table}
      <button type="button" class="more" onClick={() => setMost(most + MORE_ROWS)}>
        Show {Math.min(MORE_ROWS, rows.length - most).toLocaleString('en-US')} more of {rows.length.toLocaleString('en-US')}
      </button>
    </>
  );
}

function useOrder(first: string, param: string | undefined): [string, (order: string) => void] {
  const { params } = useCell(route);
  const [own, setOwn] = useState(first);
  if (param === undefined) return [own, setOwn];
  return [params.get(param) ?? first, (order) => setParams({ [param]: order === first ? '' : order })];
}

function Below({ columns, children }: { columns: number; children?: ComponentChildren }) {
  if (children === undefined || children === null) return null;
  return (
    <tr class="detail-row">
      <td colSpan={columns}>{children}</td>
    </tr>
  );
}

function classes<Row>(column: Column<Row>): string {
  return [column.number ? 'number' : '', column.minor ? 'minor' : '', column.class ?? ''].filter(Boolean).join(' ');
}

function ariaSort(order: string, id: string): 'ascending' | 'descending' | undefined {
  return order === id ? 'ascending' : order === `-${id}` ? 'descending' : undefined;
}

function sortRows<Row>(rows: Row[], columns: Column<Row>[], order: string): Row[] {
  const down = order.startsWith('-');
  const by = columns.find((column) => column.id === order.replace(/^-/, ''))?.sort;
  if (by === undefined) return rows;
  const compare = (a: number | string, b: number | string): number =>
    typeof a === 'number' && typeof b === 'number' ? a - b : natural(String(a), String(b));
  return [...rows].sort((a, b) => (down ? -1 : 1) * compare(by(a), by(b)));
}
