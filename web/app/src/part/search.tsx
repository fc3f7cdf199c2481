// Search over everything: Ctrl K or Cmd K, type, arrows, Enter.

import { useEffect, useRef, useState } from 'preact/hooks';
import { getSearch } from '../api/client.ts';
import type { SearchResult } from '../api/types.ts';
import { Cell, useCell } from '../state/cell.ts';
import { go, href } from '../state/route.ts';
import { type Me, me, mayEditSome } from '../state/me.ts';
import { PAGES, PARTS } from '../view/pages.ts';
import { Icon } from './icon.tsx';
import { useLater, useLoad } from './load.ts';

export const searchOpen = new Cell(false);

const COMMAND_KEY = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ K' : 'Ctrl K';

export function SearchButton() {
  return (
    <button type="button" class="search-button" aria-keyshortcuts="Control+K Meta+K" onClick={() => searchOpen.set(true)}>
      <Icon name="search" />
      <span class="search-hint">Search hosts, items, triggers, shapes</span>
      <kbd>{COMMAND_KEY}</kbd>
    </button>
  );
}

export function Search() {
  return useCell(searchOpen) ? <SearchBox /> : null;
}

function SearchBox() {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const query = useLater(text.trim(), 80);
  const found = useLoad(async (signal) => (query === '' ? { results: [] } : getSearch(query, signal)), [query]);
  const who = useCell(me);
  const results = [...pagesFor(text, who), ...(found.data?.results ?? []).filter((result) => result.kind !== 'page')];
  const at = Math.min(chosen, Math.max(0, results.length - 1));

  useEffect(() => {
    const before = document.activeElement;
    dialog.current!.showModal();
    return () => (before as HTMLElement | null)?.focus?.();
  }, []);
  useEffect(() => document.getElementById(`result-${at}`)?.scrollIntoView({ block: 'nearest' }), [at]);

  const close = (): void => searchOpen.set(false);
  const open = (result: SearchResult): void => {
    close();
    go(href(result.url));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setChosen(Math.min(at + 1, results.length - 1));
    else if (event.key === 'ArrowUp') setChosen(Math.max(at - 1, 0));
    else if (event.key === 'Enter' && results[at] !== undefined) open(results[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog class="search floating" ref={dialog} aria-label="Search" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <div class="search-line">
        <Icon name="search" />
        <input autofocus value={text} placeholder="Search hosts, items, triggers, shapes, dashboards, pages" aria-label="Search" role="combobox" aria-expanded="true" aria-controls="results" aria-activedescendant={`result-${at}`} autocomplete="off" spellcheck={false} onInput={(event) => (setText(event.currentTarget.value), setChosen(0))} onKeyDown={onKeyDown} />
        <kbd>Esc</kbd>
      </div>
      <ul id="results" role="listbox" aria-label="Results" class={found.loading ? 'dimmed' : ''}>
        {results.map((result, i) => (
          <li key={`${result.kind}${result.id}`} id={`result-${i}`} role="option" aria-selected={i === at} onPointerMove={() => setChosen(i)} onClick={() => open(result)}>
            <span class="result-kind">{result.kind}</span>
            <span class="result-title">{result.title}</span>
            <span class="result-subtitle">{result.subtitle}</span>
          </li>
        ))}
      </ul>
      {found.error !== null && <p class="search-note problem-text">{found.error.message}</p>}
      {results.length === 0 && found.error === null && !found.loading && <p class="search-note muted">Nothing is called like that.</p>}
    </dialog>
  );
}

// With nothing typed the pages of the rail are offered.
function pagesFor(text: string, who: Me | null | undefined): SearchResult[] {
  const word = text.trim().toLowerCase();
  const may = ({ role }: { role?: string }): boolean => role === undefined || role === who?.role || (role === 'editor' && mayEditSome(who));
  return [...PAGES, ...(word === '' ? [] : PARTS)].filter((page) => may(page) && page.title.toLowerCase().includes(word)).map((page) => ({
    kind: 'page',
    id: page.path,
    title: page.title,
    subtitle: page.about,
    url: page.path,
  }));
}
