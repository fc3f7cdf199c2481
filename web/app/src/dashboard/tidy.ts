// What a form gives brought to the form of files: what is empty or does not belong to a kind is left out.

import type { Dashboard, ItemRef, Variable, Widget, WidgetKind } from '../api/dashboards.ts';
import type { Severity } from '../api/types.ts';

export const takesItems = (kind: WidgetKind): boolean => ['chart', 'number', 'table', 'log', 'timeline'].includes(kind);
export const takesQueries = (kind: WidgetKind): boolean => ['chart', 'number', 'table'].includes(kind);
export const single = (kind: WidgetKind): boolean => kind === 'number' || kind === 'log';

/** trimmed leaves out what the kind does not have and what is empty, as files do. */
export function trimmed(widget: Widget): Widget {
  const { kind, x, y, w, h } = widget;
  const out: Widget = { kind, x, y, w, h };
  if (widget.title) out.title = widget.title;
  const queries = takesQueries(kind) ? (widget.queries ?? []).filter((query) => query.expr.trim() !== '') : [];
  const items = takesItems(kind) && queries.length === 0 ? (widget.items ?? []).filter((item) => item.key.trim() !== '') : [];
  if (items.length > 0) out.items = items.map(trimmedItem);
  if (queries.length > 0) out.queries = queries.map(({ expr, legend }) => (legend ? { expr, legend } : { expr }));
  if (kind === 'chart' && widget.stack) out.stack = true;
  if (takesQueries(kind) && widget.units) out.units = widget.units;
  if (kind === 'number' && (widget.thresholds ?? []).length > 0) out.thresholds = widget.thresholds;
  if ((kind === 'problems' || kind === 'graph') && widget.host) out.host = widget.host;
  if (kind === 'problems' && widget.group) out.group = widget.group;
  if (kind === 'problems' && (widget.severities ?? []).length > 0) out.severities = widget.severities;
  if (kind === 'graph') out.graph = widget.graph;
  if (kind === 'requests') out.instance = widget.instance;
  if (['problems', 'requests', 'table'].includes(kind) && widget.limit) out.limit = widget.limit;
  if (kind === 'text') out.text = widget.text;
  return out;
}

function trimmedItem({ host, group, key, name, mirror }: ItemRef): ItemRef {
  return { ...(host ? { host } : { group }), key: key.trim(), ...(name ? { name } : {}), ...(mirror ? { mirror } : {}) };
}

/** mistakeIn says what is missing, before the server is asked. */
export function mistakeIn(widget: Widget): string {
  const { kind, items = [], queries = [] } = trimmed(widget);
  if (takesItems(kind) && items.length + queries.length === 0) return takesQueries(kind) ? 'Name an item or write a query.' : 'Name an item.';
  if (items.some((item) => !item.host && !item.group)) return 'Choose the host or the group of each item.';
  if (kind === 'graph' && !widget.host) return 'Choose the host of the graph.';
  if (kind === 'graph' && !widget.graph) return 'Choose a graph.';
  if (kind === 'requests' && !widget.instance) return 'Choose a MongoDB server.';
  if (kind === 'text' && !widget.text) return 'Write a text.';
  return '';
}

/** tidy leaves out what is empty, as files do. */
export function tidy(dashboard: Dashboard): Dashboard {
  const { name, description, everyone, owner, private: own, groups = [], range, refresh_seconds: refresh, variables = [], widgets } = dashboard;
  const names = groups.map((one) => one.trim()).filter((one) => one !== '');
  return {
    name: name.trim(),
    ...(description ? { description } : {}),
    ...(everyone ? { everyone } : {}),
    ...(owner ? { owner } : {}),
    ...(own ? { private: own } : {}),
    ...(names.length > 0 ? { groups: names } : {}),
    ...(range ? { range } : {}),
    ...(refresh ? { refresh_seconds: refresh } : {}),
    ...(variables.length > 0 ? { variables: variables.map(tidyVariable) } : {}),
    widgets,
  };
}

function tidyVariable(one: Variable): Variable {
  const values = (one.values ?? []).filter((value) => value !== '');
  return {
    name: one.name,
    ...(one.title ? { title: one.title } : {}),
    kind: one.kind,
    ...(one.group ? { group: one.group } : {}),
    ...(one.label ? { label: one.label } : {}),
    ...(one.match ? { match: one.match } : {}),
    ...(values.length > 0 ? { values } : {}),
    ...(one.default ? { default: one.default } : {}),
  };
}

/** severityAt is the severity of the highest threshold that a number has reached. */
export function severityAt(value: number | null, widget: Pick<Widget, 'thresholds'>): Severity | null {
  if (value === null) return null;
  const reached = (widget.thresholds ?? []).filter((threshold) => value >= threshold.value).sort((a, b) => b.value - a.value);
  return reached[0]?.severity ?? null;
}
