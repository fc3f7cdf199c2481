// The widgets that are tables: values, problems, MongoDB requests.

import { useEffect } from 'preact/hooks';
import { getProblems, queryInstant } from '../api/client.ts';
import type { Widget } from '../api/dashboards.ts';
import { getRanking } from '../api/mongo.ts';
import type { Item } from '../api/types.ts';
import { nameOf, seriesOf } from '../chart/answer.tsx';
import { formatAge, formatValue } from '../format/number.ts';
import { parseNumber, shownValue } from '../item/reading.ts';
import { chartUnits } from '../item/sections.ts';
import { Link } from '../part/link.tsx';
import { useLoad, useSecond } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { latencyText, loadText, rateText, RowName } from '../requests/text.tsx';
import { useCell } from '../state/cell.ts';
import { missed, problemsChanged, serverNow } from '../state/live.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { useLiveReadings } from '../view/facts.tsx';
import { lasted, SeverityWord, worstFirst } from '../view/problems.tsx';
import { legendOf } from './chartspec.ts';
import { queries } from './limiter.ts';
import { Missing, type Surroundings, useItems, useRefresh } from './widget.tsx';

interface Props {
  id: string;
  widget: Widget;
  around: Surroundings;
}

const ROWS = 20;

export function TableWidget(props: Props) {
  return (props.widget.queries ?? []).length > 0 ? <OfQueries {...props} /> : <OfItems {...props} />;
}

interface ItemRow {
  item: Item;
  name: string;
}

function OfItems({ id, widget, around }: Props) {
  const found = useItems(id, widget, around);
  const rows = (found.data ?? []).flatMap(({ ref, items }) => items.map((item) => ({ item, name: items.length === 1 && ref.name !== undefined ? ref.name : item.name })));
  const shown = useLiveReadings(found.data === null ? NONE : rows.map((row) => row.item));
  useSecond();
  if (found.data === null) return found.error === null ? null : <Failure error={found.error} retry={found.reload} />;
  if (rows.length === 0) return <Missing widget={widget} around={around} />;
  const many = new Set(rows.map((row) => row.item.host)).size > 1;
  const columns: Column<ItemRow>[] = [
    { id: 'host', title: 'Host', cell: ({ item }) => <Link to={`/hosts/${item.host_id}`}>{item.host}</Link>, sort: ({ item }) => item.host, class: 'host-cell' },
    { id: 'name', title: 'Item', cell: ({ item, name }) => <Link to={`/items/${item.id}`}>{name}</Link>, sort: ({ name }) => name, class: 'wide' },
    { id: 'value', title: 'Value', cell: ({ item }) => <span title={shownValue(item, unitsOf(widget, item)).exact}>{shownValue(item, unitsOf(widget, item)).text}</span>, sort: ({ item }) => shownValue(item, chartUnits(item)).number ?? shownValue(item, '').text, number: true },
    { id: 'age', title: 'Age', cell: ({ item }) => (item.last === null ? '–' : formatAge(serverNow() - item.last.at)), sort: ({ item }) => -(item.last?.at ?? 0), number: true, minor: true },
  ];
  return <Table caption={widget.title ?? 'Values'} columns={many ? columns : columns.slice(1)} rows={rows.map((row, n) => ({ ...row, item: shown[n] ?? row.item })).slice(0, widget.limit || ROWS * 5)} rowKey={({ item }) => item.id} />;
}

const NONE: Item[] = [];
const unitsOf = (widget: Widget, item: Item): string => widget.units ?? chartUnits(item);

interface SeriesRow {
  name: string;
  value: number | null;
  text: string;
}

function OfQueries({ widget, around }: Props) {
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const asked = widget.queries ?? [];
  const loaded = useLoad(
    async (signal) => {
      const { to } = windowNow();
      const answers = await Promise.all(asked.map((query) => queries.run(() => queryInstant(query.expr, to, signal))));
      return answers.flatMap((answer, n) =>
        seriesOf(answer).map((series): SeriesRow => {
          const text = series.value?.[1] ?? '';
          return { name: asked[n].legend ? legendOf(asked[n].legend!, series.metric) : nameOf(series), value: parseNumber(text), text };
        }),
      );
    },
    [JSON.stringify(asked), key, lost],
  );
  useRefresh(loaded.reload, around.refreshMs);
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return null;
  if (loaded.data.length === 0) return <p class="muted">The query has no series now.</p>;
  const columns: Column<SeriesRow>[] = [
    { id: 'name', title: 'Series', cell: (row) => row.name, sort: (row) => row.name, class: 'wide' },
    { id: 'value', title: 'Value', cell: (row) => <span title={row.text}>{formatValue(row.value, widget.units ?? '', 4)}</span>, sort: (row) => row.value ?? -Infinity, number: true },
  ];
  return <Table caption={widget.title ?? 'Series'} columns={columns} rows={loaded.data.slice(0, widget.limit || ROWS * 5)} rowKey={(row) => row.name} sort="-value" />;
}

export function ProblemsWidget({ widget, around }: { widget: Widget; around: Surroundings }) {
  const changed = useCell(problemsChanged);
  const lost = useCell(missed);
  const host = widget.host === undefined ? undefined : around.hosts.find((one) => one.host === widget.host);
  const severity = (widget.severities ?? []).join();
  const loaded = useLoad((signal) => getProblems({ open: true, host: host?.id, severity, limit: 1_000 }, signal), [host?.id, severity, lost], changed);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && loaded.reload(), Math.max(around.refreshMs, 5_000));
    return () => clearInterval(timer);
  }, [around.refreshMs]);
  useSecond();
  if (widget.host !== undefined && host === undefined) return <p class="muted">There is no host {widget.host}.</p>;
  if (loaded.data === null) return loaded.error === null ? null : <Failure error={loaded.error} retry={loaded.reload} />;
  const members = widget.group === undefined ? null : new Set(around.hosts.filter((one) => one.groups.includes(widget.group!)).map((one) => one.id));
  const problems = worstFirst(loaded.data.problems.filter((problem) => members === null || members.has(problem.host_id)));
  if (problems.length === 0) {
    return (
      <p class="all-well widget-well">
        <i class="square ok" /> Nothing is wrong.
      </p>
    );
  }
  const shown = problems.slice(0, widget.limit || ROWS);
  return (
    <>
      <table class="list">
        <caption class="unseen">{widget.title ?? 'Problems'}</caption>
        <thead class="unseen">
          <tr>
            <th scope="col">Severity</th>
            <th scope="col">Host</th>
            <th scope="col">Problem</th>
            <th scope="col">For</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((problem) => (
            <tr key={problem.event_id}>
              <td class="severity-cell">
                <SeverityWord severity={problem.severity} />
              </td>
              <td class="host-cell">
                <Link to={`/hosts/${problem.host_id}/problems`}>{problem.host_name || problem.host}</Link>
              </td>
              <td class="wide">{problem.name}</td>
              <td class="number">{lasted(problem)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {problems.length > shown.length && <p class="muted">and {problems.length - shown.length} more</p>}
    </>
  );
}

export function RequestsWidget({ widget }: { widget: Widget }) {
  const key = useCell(windowKey);
  const instance = widget.instance ?? '';
  const loaded = useLoad((signal) => getRanking({ instance, group_by: 'shape', search: '' }, 'load', windowNow(), widget.limit || 10, signal), [instance, widget.limit, key]);
  useRefresh(loaded.reload, 30_000);
  if (loaded.data === null) return loaded.error === null ? null : <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data.rows.length === 0) return <p class="muted">No request in this range.</p>;
  return (
    <table class="list requests">
      <caption class="unseen">{widget.title ?? 'Requests by load'}</caption>
      <thead>
        <tr>
          <th scope="col" class="number">
            load
          </th>
          <th scope="col" class="number">
            req/s
          </th>
          <th scope="col" class="number minor">
            p95
          </th>
          <th scope="col">Shape</th>
        </tr>
      </thead>
      <tbody>
        {loaded.data.rows.map((row) => (
          <tr key={row.id}>
            <td class="number">{loadText(row.sums.load)}</td>
            <td class="number">{rateText(row.sums.rate)}</td>
            <td class="number minor">{latencyText(row.sums.p95)}</td>
            <td class="wide">
              <Link to="/requests" query={{ instance, shape: row.id }}>
                <RowName row={row} />
              </Link>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
