// Says that no alerts are sent, and sends them again.

import { useState } from 'preact/hooks';
import { getAlertPause, putAlertPause } from '../api/alerting.ts';
import { Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';

export function Paused({ edits }: { edits: boolean }) {
  const pause = useLoad((signal) => getAlertPause(signal), []);
  const [failure, setFailure] = useState('');
  if (pause.data === null || !pause.data.paused) return null;
  const { reason } = pause.data;
  const resume = async (): Promise<void> => {
    await putAlertPause(false);
    pause.reload();
  };
  return (
    <section aria-label="Alerts are paused">
      <p class="problem-text" role="status">
        No alerts are sent: {reason === undefined ? 'this server was started with --alerts-paused, or somebody paused them. What happened meanwhile is told when they are resumed.' : reason}
      </p>
      {edits && reason === undefined && (
        <div>
          <Sure label="Send alerts" again="Really send alerts from this server?" run={resume} failed={setFailure} />
        </div>
      )}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
    </section>
  );
}
