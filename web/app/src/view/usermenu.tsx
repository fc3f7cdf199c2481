// The menu in the header that leads to one's own account.

import { useEffect, useRef, useState } from 'preact/hooks';
import { signOut } from '../api/people.ts';
import { Icon } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useCell } from '../state/cell.ts';
import { me } from '../state/me.ts';
import { route } from '../state/route.ts';

export function UserMenu() {
  const who = useCell(me);
  const { path } = useCell(route);
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event): void => {
      if (!place.current?.contains(event.target as Node)) setOpen(false);
    };
    const escape = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      place.current?.querySelector('button')?.focus();
    };
    addEventListener('pointerdown', away);
    addEventListener('focusin', away);
    addEventListener('keydown', escape);
    return () => {
      removeEventListener('pointerdown', away);
      removeEventListener('focusin', away);
      removeEventListener('keydown', escape);
    };
  }, [open]);
  if (who === null || who === undefined || who.via === '') return null;
  const shown = who.via === 'session' ? who.name : 'this machine';
  return (
    <div class="user-menu" ref={place}>
      <button type="button" class="quiet" aria-expanded={open} aria-label={`Account: ${shown}`} title={shown} onClick={() => setOpen(!open)}>
        <Icon name="user" />
        <span class="user-name">{shown}</span>
      </button>
      {open && (
        <div class="floating user-choices">
          <p>
            <b>{shown}</b> <span class="muted">{who.role}</span>
          </p>
          {who.via === 'session' ? (
            <>
              <Link to="/account">Password and tokens</Link>
              <button type="button" class="quiet" onClick={() => void signOut()}>
                Sign out
              </button>
            </>
          ) : (
            <p class="muted">
              {who.first
                ? 'There is no administrator yet, so everybody on this machine is one. Make the first with the link that the server printed when it started.'
                : 'You came in without an account.'}
            </p>
          )}
        </div>
      )}
    </div>
  );
}
