// Alerting: who is told of problems, how and when, and what was sent.

import { useEffect } from 'preact/hooks';
import { Actions } from '../alerting/actions.tsx';
import { Maintenances } from '../alerting/maintenance.tsx';
import { MediaView } from '../alerting/media.tsx';
import { Messages } from '../alerting/messages.tsx';
import { Paused } from '../alerting/paused.tsx';
import { AlertingText } from '../alerting/text.tsx';
import { getAlerting } from '../api/alerting.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure, NotYours } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { live } from '../state/live.ts';
import { me } from '../state/me.ts';

const ALERTING_TABS: Record<string, string> = { '': 'Messages', actions: 'Actions', media: 'Media and receivers', maintenance: 'Maintenance', text: 'Edit as text' };

export function AlertingView({ tab }: { tab: string }) {
  const who = useCell(me);
  useEffect(() => live.want({}), []);
  const edits = (who?.role === 'administrator' || who?.role === 'editor') && who.all_hosts;
  return (
    <div class="page alerting">
      <h1>Alerting</h1>
      {who?.all_hosts && <Paused edits={edits === true} />}
      {edits && (
        <nav class="tabs" aria-label="Alerting">
          {Object.entries(ALERTING_TABS).map(([path, title]) => (
            <Link key={path} to={path === '' ? '/alerting' : `/alerting/${path}`} current={tab === path}>
              {title}
            </Link>
          ))}
        </nav>
      )}
      {tab === '' ? <Messages /> : edits ? <Settings tab={tab} /> : <NotYours role="editor on all hosts" />}
    </div>
  );
}

function Settings({ tab }: { tab: string }) {
  const alerting = useLoad((signal) => getAlerting(signal), []);
  if (alerting.error !== null) return <Failure error={alerting.error} retry={alerting.reload} />;
  if (alerting.data === null) return null;
  if (tab === 'actions') return <Actions alerting={alerting.data} changed={alerting.reload} />;
  if (tab === 'media') return <MediaView alerting={alerting.data} changed={alerting.reload} />;
  if (tab === 'maintenance') return <Maintenances alerting={alerting.data} changed={alerting.reload} />;
  return <AlertingText alerting={alerting.data} changed={alerting.reload} />;
}
