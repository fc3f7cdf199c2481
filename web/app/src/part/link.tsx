// A link within the page: it changes the address without loading the page again, and keeps the time range.

import type { ComponentChildren } from 'preact';
import { go, href } from '../state/route.ts';

interface Props {
  to: string;
  query?: Record<string, string>;
  class?: string;
  title?: string;
  current?: boolean;
  label?: string;
  children: ComponentChildren;
}

export function Link({ to, query, class: className, title, current, label, children }: Props) {
  const address = href(to, query);
  return (
    <a href={address} class={className} title={title} aria-label={label} aria-current={current ? 'page' : undefined} onClick={(event) => follow(event, address)}>
      {children}
    </a>
  );
}

/** follow handles a plain click on a link of this page; clicks for a new tab or window are left to the browser. */
export function follow(event: MouseEvent, address: string): void {
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(address);
}
