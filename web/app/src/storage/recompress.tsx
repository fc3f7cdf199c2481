// Re-compression: what is under way, what the last one saved, starting and stopping.

import { useEffect, useState } from 'preact/hooks';
import { getRecompression, type Recompression, startRecompression, stopRecompression } from '../api/storage.ts';
import { formatDuration, formatValue, plural } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { Choice, Form, Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';

const LOOK_MS = 2_000;

const CODECS: Record<string, string> = { 'columns only, reads stay fast': 'none', 'zstd, smallest': 'zstd:3', lz4: 'lz4' };
const AGES: Record<string, number> = { '1 day': 86_400, '7 days': 604_800, '31 days': 2_678_400, 'everything closed': 0 };
// Merged pairs may take an eighth of the disk space.
const NEIGHBOURS: Record<string, number> = { 'each for itself': 0, 'merge those with small pages': -1 };

export function Recompress({ changes }: { changes: boolean }) {
  const state = useLoad((signal) => getRecompression(signal), []);
  const [codec, setCodec] = useState(Object.keys(CODECS)[0]!);
  const [age, setAge] = useState('1 day');
  const [neighbours, setNeighbours] = useState(Object.keys(NEIGHBOURS)[0]!);
  const [failure, setFailure] = useState('');
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && state.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const run = async (): Promise<void> => {
    await startRecompression(CODECS[codec]!, AGES[age]!, NEIGHBOURS[neighbours]!);
    state.reload();
  };
  return (
    <section aria-labelledby="recompress-title">
      <h2 id="recompress-title">Re-compression</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {state.data !== null && <Progress state={state.data} />}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {changes && state.data?.running && (
        <div>
          <Sure label="Stop" again="Stop it? What is done stays done." run={() => stopRecompression().then(state.reload)} failed={setFailure} />
        </div>
      )}
      {changes && state.data !== null && !state.data.running && (
        <Form submit="Write old pairs anew" run={run}>
          <Choice label="How" value={codec} options={Object.keys(CODECS)} set={setCodec} />
          <Choice label="Older than" value={age} options={Object.keys(AGES)} set={setAge} />
          <Choice label="Neighbours" value={neighbours} options={Object.keys(NEIGHBOURS)} set={setNeighbours} />
        </Form>
      )}
    </section>
  );
}

function Progress({ state }: { state: Recompression }) {
  const { progress: p } = state;
  const saved = p.written_pairs > 0 ? `${plural(p.written_pairs, 'pair')} went from ${formatValue(p.before_bytes, 'B')} to ${formatValue(p.after_bytes, 'B')}.${p.merged_pairs > 0 ? ` ${plural(p.merged_pairs, 'neighbour')} became ${p.joined_pairs}.` : ''}` : '';
  if (state.running) {
    const share = p.bytes > 0 ? p.done_bytes / p.bytes : 0;
    const left = state.seconds_left === null ? '' : `, about ${formatDuration(state.seconds_left)} left`;
    return (
      <div class="store-progress">
        <progress max={1} value={share} aria-label="Re-compression" />
        <p>
          {p.paused ? 'Waiting while the machine is busy' : 'Under way'}: {p.done_pairs} of {plural(p.pairs, 'pair')}
          {left}. {saved}
        </p>
      </div>
    );
  }
  if (state.ended_at === 0) return <p class="muted">File pairs are written quickly first. Written anew when they are old they take less room; reading and writing go on meanwhile. None was written anew since the server started.</p>;
  return (
    <p>
      The last one ended {formatClock(state.ended_at)}
      {state.automatic ? ', by itself' : ''}: {saved === '' ? 'nothing became smaller.' : saved}
      {p.skipped_pairs > 0 && ` ${plural(p.skipped_pairs, 'pair')} could not be done now.`}
      {state.error !== undefined && state.error !== '' && <span class="problem-text"> It ended early: {state.error}</span>}
    </p>
  );
}
