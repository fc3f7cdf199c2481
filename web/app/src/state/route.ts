// Where the page is. The address holds everything that is needed to show the same view again.

import { Cell } from './cell.ts';
import { type Range, rangeFromParams, rangeToParams } from '../time/range.ts';

export interface Route {
  path: string;
  params: URLSearchParams;
}

function here(): Route {
  return { path: location.pathname.replace(/\/+$/, '') || '/', params: new URLSearchParams(location.search) };
}

export const route = new Cell<Route>(here());

/** watchHistory follows the back and forward buttons. */
export function watchHistory(): void {
  addEventListener('popstate', () => route.set(here()));
}

/** href builds an address that keeps the time range; query replaces all other parameters. */
export function href(path: string, query: Record<string, string> = {}): string {
  const params = new URLSearchParams();
  rangeToParams(rangeFromParams(route.value.params), params);
  for (const [name, value] of Object.entries(query)) if (value !== '') params.set(name, value);
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** go shows an address of this page. */
export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  route.set(here());
  if (!replace) scrollTo(0, 0);
}

/** setParams changes parameters of the current view; an empty value removes one. */
export function setParams(changes: Record<string, string>, replace = true): void {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') params.delete(name);
    else params.set(name, value);
  }
  show(params, replace);
}

/** setRange changes the one time range of the page. */
export function setRange(range: Range, replace = false): void {
  const params = new URLSearchParams(location.search);
  rangeToParams(range, params);
  show(params, replace);
}

function show(params: URLSearchParams, replace: boolean): void {
  const text = params.toString();
  const address = location.pathname + (text === '' ? '' : `?${text}`);
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  route.set(here());
}
