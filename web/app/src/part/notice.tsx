// What stands where content would be: a failure with its reason and a retry, or what to do when there is nothing yet.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from './icon.tsx';

export function Failure({ error, retry }: { error: { what: string; detail: string } | Error; retry?: () => void }) {
  const what = 'what' in error ? error.what : 'this part of the page';
  const detail = 'detail' in error ? error.detail : error.message;
  return (
    <div class="failure" role="alert">
      <p>
        <b>Could not load {what}.</b> <span class="muted">{detail}</span>
      </p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Refusal says why something that was asked for was not done; nothing for an empty text. */
export function Refusal({ text }: { text: string }) {
  if (text === '') return null;
  return (
    <p class="problem-text" role="alert">
      {text}
    </p>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** NotYours stands where a page would be that somebody's role does not show. */
export function NotYours({ role }: { role: string }) {
  return (
    <Empty title={`This page needs the role ${role}.`}>
      <p class="muted">Ask an administrator for it.</p>
    </Empty>
  );
}

/** NotWhole says why a part of a page is missing for those who see some hosts only. */
export function NotWhole({ children }: { children: ComponentChildren }) {
  return <p class="notice">{children} Your role holds on some hosts only; those who see all hosts find it here.</p>;
}

/** NoMatch stands where rows would be when the filters leave none. */
export function NoMatch({ what, clear }: { what: string; clear: () => void }) {
  return (
    <Empty title={`No ${what} matches.`}>
      <p>
        <button type="button" onClick={clear}>
          Clear the filters
        </button>
      </p>
    </Empty>
  );
}

/** Command is a line to copy into a shell. */
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1_500);
    } catch {
      // The text can still be selected by hand.
    }
  };
  return (
    <div class="command">
      <code>{text}</code>
      <button class="quiet" type="button" onClick={() => void copy()} title="Copy">
        <Icon name="copy" />
        <span aria-live="polite">{copied ? 'Copied' : 'Copy'}</span>
      </button>
    </div>
  );
}
