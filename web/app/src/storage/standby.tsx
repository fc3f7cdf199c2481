// Standby: whether this server is a primary or follows one, how far standbys are behind, and taking over.

import { useEffect, useState } from 'preact/hooks';
import { type Followed, getReplication, promote, type Replication } from '../api/storage.ts';
import { digits, formatAgo, formatDuration, formatValue } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { serverNow } from '../state/live.ts';

const LOOK_MS = 2_000;

export function Standby({ changes }: { changes: boolean }) {
  const state = useLoad((signal) => getReplication(signal), []);
  const [said, setSaid] = useState('');
  const [failure, setFailure] = useState('');
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && state.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const run = async (): Promise<void> => {
    const done = await promote();
    const how = done.handed_over ? 'The old primary handed over: everything it had is here.' : `The old primary did not hand over (${done.problem ?? 'no reason'}): what was here counts.`;
    setSaid(`This server is the primary now, with epoch ${done.epoch_text}, after ${digits(done.milliseconds, 3)} ms. ${how}`);
    state.reload();
  };
  return (
    <section aria-labelledby="standby-title">
      <h2 id="standby-title">Standby</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {state.data !== null && <Part state={state.data} />}
      {said !== '' && <p role="status">{said}</p>}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {changes && state.data?.role === 'standby' && (
        <div>
          <Sure label="Make this server the primary" again="Take over from the primary?" run={run} failed={setFailure} />
        </div>
      )}
    </section>
  );
}

function Part({ state }: { state: Replication }) {
  if (state.role === 'standby') return <Following state={state} />;
  if (state.role === 'fenced') {
    return <p class="problem-text">Another server was promoted in the place of this one (epoch {state.fenced_by_text}). Values and changes are refused here, and no device is asked. Start this server with --standby-of the new primary.</p>;
  }
  return (
    <>
      {state.refusal !== '' && <p class="problem-text">{state.refusal}</p>}
      {state.standbys.length === 0 && state.refusal === '' && (
        <p class="muted">No standby follows this server. One has everything that this server has, and can take over: start a second server with --standby-of this one's address.</p>
      )}
      {state.standbys.length > 0 && (
        <>
          <p class="muted">
            {state.synchronous ? 'Values are acknowledged when a standby has them too.' : 'Values are acknowledged when they are on this disk; standbys have them moments later.'} Epoch {state.epoch_text}.
          </p>
          <Table caption="Standbys" columns={COLUMNS} rows={state.standbys} rowKey={(one) => one.address} sort="address" />
        </>
      )}
    </>
  );
}

const COLUMNS: Column<Followed>[] = [
  { id: 'address', title: 'Standby', class: 'anywhere', cell: (one) => one.address, sort: (one) => one.address },
  { id: 'lag', title: 'Behind', cell: (one) => (one.seeding ? 'copies everything' : formatValue(one.lag_bytes, 'B')), sort: (one) => one.lag_bytes, number: true },
  { id: 'seen', title: 'Asked last', cell: (one) => formatAgo(serverNow() - one.seen_at), sort: (one) => one.seen_at, number: true },
];

function Following({ state }: { state: Replication }) {
  const { lag } = state;
  if (lag === null) return <p>This server follows {state.primary}.</p>;
  const behind = lag.bytes === 0 && lag.connected ? 'It has everything that the primary has.' : `It is ${formatValue(lag.bytes, 'B')} and ${formatDuration(lag.seconds)} behind.`;
  return (
    <>
      <p>
        This server follows {state.primary}, epoch {state.epoch_text}. {behind} {lag.configuration_at > 0 && `The configuration is that of ${formatClock(lag.configuration_at)}.`}{' '}
        {lag.verified_at > 0 && !lag.differs && `Values were compared at ${formatClock(lag.verified_at)}: they are equal.`}
      </p>
      {!lag.connected && <p class="problem-text">The primary does not answer{lag.problem === undefined ? '' : `: ${lag.problem}`}</p>}
      {lag.differs && <p class="problem-text">Values differ from the primary's. Remove the data folder of this server and start it again, so that everything is copied.</p>}
      <p class="muted">It answers queries. It takes no values and no changes, and sends no alerts, until it is made the primary.</p>
    </>
  );
}
