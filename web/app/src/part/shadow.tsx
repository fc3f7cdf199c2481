// The line above every view that says that nobody is told of anything, while another server alerts.

import { useEffect, useState } from 'preact/hooks';
import { get } from '../api/client.ts';
import { dateTime } from '../time/clock.ts';
import { Link } from './link.tsx';

const AGAIN_MS = 60_000;

export function ShadowNotice({ path }: { path: string }) {
  const [since, setSince] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    // Without an answer the line stays as it was: other parts of the page say that the server is away.
    const look = (): void => void get<{ since: number }>('whether shadow mode is on', '/api/shadow', {}, abort.signal).then((state) => setSince(state.since), () => undefined);
    look();
    const timer = setInterval(look, AGAIN_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [path]);
  if (since === 0) return null;
  return (
    <p class="shadow-notice" role="status">
      <b>Shadow mode: nobody is told of problems from here.</b>{' '}
      <span>
        Since {dateTime(since)} Zabbix alerts, and the <Link to="/alerting/actions">actions</Link> here are out of force. <code>tidemark shadow cutover</code> ends it.
      </span>
    </p>
  );
}
