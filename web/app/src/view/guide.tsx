// The first steps, on the overview while there is little to see: a host, MongoDB, an alert, Grafana.

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { getAlerting } from '../api/alerting.ts';
import { getInstances } from '../api/mongo.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Command } from '../part/notice.tsx';
import { OnlyHere } from '../part/onlyhere.tsx';
import { useCell } from '../state/cell.ts';
import { serverNow } from '../state/live.ts';
import { me } from '../state/me.ts';
import { useTrapper } from '../state/trapper.ts';

const DISMISSED = 'tidemark.guide';
const HOUR = 3_600_000;
/** With more hosts nobody needs first steps any more. */
const GUIDE_HOSTS = 1;

function dismissed(): boolean {
  try {
    return localStorage.getItem(DISMISSED) === 'off';
  } catch {
    return false; // Storage may be forbidden; then the guide is there each time.
  }
}

/** Guide shows the first steps, or its children when nobody needs them. */
export function Guide({ hosts, children }: { hosts: number; children?: ComponentChildren }) {
  const who = useCell(me);
  const server = useTrapper().address;
  const [off, setOff] = useState(dismissed);
  const edits = (who?.role === 'administrator' || who?.role === 'editor') && who.all_hosts;
  const told = useLoad(async (signal) => (edits ? (await getAlerting(signal)).actions?.length ?? 0 : 0), [edits]);
  const watched = useLoad(async (signal) => (await getInstances({ from: serverNow() - HOUR, to: serverNow() }, signal)).instances.length, []);
  if (off || !edits || hosts > GUIDE_HOSTS) return <>{children}</>;
  const hide = (): void => {
    setOff(true);
    try {
      localStorage.setItem(DISMISSED, 'off');
    } catch {
      // Then it is hidden until the page is opened again.
    }
  };
  return (
    <section aria-labelledby="guide-title" class="first-steps">
      <div class="object-head">
        <h2 id="guide-title">First steps</h2>
        <button type="button" class="quiet" onClick={hide}>
          Hide
        </button>
      </div>
      <ol class="guide">
        <li class={hosts > 0 ? 'done' : undefined}>
          <b>Add a host</b>
          <p>Start an agent on a machine; its charts appear within seconds.</p>
          <Command text={`tidemark agent --server ${server} --host $(hostname)`} />
          <OnlyHere />
          <p class="links">
            <Link to="/configuration/add">With templates, another name or encryption</Link>
          </p>
        </li>
        <li class={(watched.data ?? 0) > 0 ? 'done' : undefined}>
          <b>See what MongoDB does</b>
          <p>The agent on a MongoDB machine reads requests from the wire, by shape, without a change of the database.</p>
          <Command text={`tidemark agent --server ${server} --host $(hostname) --mongo any`} />
          <p class="links">
            <Link to="/requests">Requests</Link>
          </p>
        </li>
        <li class={(told.data ?? 0) > 0 ? 'done' : undefined}>
          <b>Be told of problems</b>
          <p>A media type says how, mail or webhook; a receiver whom; an action when. A test message shows whether it arrives.</p>
          <p class="links">
            <Link to="/alerting/media">Media and receivers</Link>
          </p>
        </li>
        <li>
          <b>Connect Grafana</b>
          <p>
            Add a data source of the type Prometheus with this address, and the header Authorization: Bearer and a token. You make one <Link to="/account">under your name</Link>.
          </p>
          <Command text={location.origin} />
        </li>
      </ol>
    </section>
  );
}
