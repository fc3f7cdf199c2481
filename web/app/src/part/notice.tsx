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
