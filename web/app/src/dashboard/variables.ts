// Variables of a dashboard: what was chosen is in the address, "$name" in widgets stands for it.

import type { Variable, Widget } from '../api/dashboards.ts';

export type Values = Record<string, string>;

const REFERENCE = /\$\{([a-z][a-z0-9_]{0,31})\}|\$([a-z][a-z0-9_]{0,31})/g;

/** paramOf is the name of a variable's parameter in the address. */
export const paramOf = (name: string): string => `var-${name}`;

/** expanded puts values in the place of variables; one that is not known stays as it is. */
export function expanded(text: string, values: Values, escape: (value: string) => string = (value) => value): string {
  return text.replace(REFERENCE, (whole, braced?: string, plain?: string) => {
    const value = values[braced ?? plain ?? ''];
    return value === undefined ? whole : escape(value);
  });
}

/** inPromQL escapes a value for the inside of quotes. */
export const inPromQL = (value: string): string => value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');

/** expandedWidget puts values into all texts of a widget. */
export function expandedWidget(widget: Widget, values: Values): Widget {
  const text = (one: string | undefined): string | undefined => (one === undefined ? undefined : expanded(one, values));
  return {
    ...widget,
    title: text(widget.title),
    host: text(widget.host),
    group: text(widget.group),
    graph: text(widget.graph),
    instance: text(widget.instance),
    text: text(widget.text),
    items: widget.items?.map((item) => ({ ...item, host: text(item.host), group: text(item.group), key: expanded(item.key, values), name: text(item.name) })),
    queries: widget.queries?.map((query) => ({ expr: expanded(query.expr, values, inPromQL), legend: text(query.legend) })),
  };
}

/** chosenValues are the values in the address, else the defaults, else the first choices. */
export function chosenValues(variables: Variable[], params: URLSearchParams, choices: Record<string, string[]>): Values {
  const values: Values = {};
  for (const variable of variables) {
    const value = params.get(paramOf(variable.name)) ?? variable.default ?? choices[variable.name]?.[0];
    if (value !== undefined && value !== '') values[variable.name] = value;
    else if (choices[variable.name]?.[0] !== undefined) values[variable.name] = choices[variable.name][0];
  }
  return values;
}

/** noHost says why a widget has no items when a variable that it names fits no host. */
export function noHost(widget: Widget, empty: Values): string | undefined {
  const names = (widget.items ?? []).flatMap((item) => [...(item.host ?? '').matchAll(REFERENCE)].map((found) => found[1] ?? found[2]));
  return names.map((name) => empty[name]).find((reason) => reason !== undefined);
}

/** fits reports whether a key is a pattern in which * stands for anything. */
export function fits(pattern: string, key: string): boolean {
  if (!pattern.includes('*')) return pattern === key;
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('[^]*')}$`).test(key);
}

