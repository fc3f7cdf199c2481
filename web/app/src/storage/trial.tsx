// The last trial of codecs: what each would bring on the store's own values and queries.

import { getTrial, type Trial, type TrialCandidate } from '../api/storage.ts';
import { digits, formatValue } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';

const COLUMNS: Column<TrialCandidate>[] = [
  { id: 'codec', title: 'Codec', cell: (one) => (one.codec === '' ? 'as it is' : `${one.codec}, ${formatValue(one.extent_bytes, 'B')}`) },
  { id: 'ratio', title: 'Times smaller', cell: (one) => digits(one.ratio, 3), sort: (one) => one.ratio, number: true },
  { id: 'each', title: 'A value takes', cell: (one) => `${digits(one.bytes_per_sample, 3)} B`, sort: (one) => one.bytes_per_sample, number: true, minor: true },
  { id: 'cpu', title: 'CPU for a million', cell: (one) => (one.codec === '' ? '–' : `${digits(one.write_cpu_ms_per_million, 3)} ms`), sort: (one) => one.write_cpu_ms_per_million, number: true, minor: true },
  { id: 'p50', title: 'Query', cell: (one) => `${digits(one.query_p50_ms, 2)} ms`, sort: (one) => one.query_p50_ms, number: true },
  { id: 'cold', title: 'Cold query', cell: (one) => `${digits(one.query_cold_p50_ms, 2)} ms`, sort: (one) => one.query_cold_p50_ms, number: true, minor: true },
  { id: 'days', title: 'Reaches back', cell: (one) => `${digits(one.projected_retention_days, 3)} days`, sort: (one) => one.projected_retention_days, number: true },
];

export function LastTrial() {
  const state = useLoad((signal) => getTrial(signal), []);
  return (
    <section aria-labelledby="trial-title">
      <h2 id="trial-title">Last trial of codecs</h2>
      {state.error !== null && <Failure error={state.error} retry={state.reload} />}
      {state.data?.problem !== undefined && <p class="problem-text">{state.data.problem}</p>}
      {state.data !== null && state.data.trial === null && state.data.problem === undefined && (
        <p class="muted">
          None was made yet. <code>tidemark store trial</code> with the data folder, on this server's machine, tries codecs on a sample of the store and on the queries that were asked lately; the result stands here then.
        </p>
      )}
      {state.data !== null && state.data.trial !== null && <Result trial={state.data.trial} />}
    </section>
  );
}

function Result({ trial }: { trial: Trial }) {
  const { recommended } = trial;
  return (
    <>
      <p class="outlook">
        {recommended.codec === '' ? 'Leave it as it is: no candidate saves enough for what it costs.' : `Recommended is ${recommended.text}.`}
      </p>
      <Table caption="Candidates" columns={COLUMNS} rows={[trial.current, ...trial.candidates]} rowKey={(one) => `${one.codec} ${one.extent_bytes}`} />
      <p class="muted">
        {formatClock(trial.at)}, {trial.rounds} rounds over {trial.sample_pairs} of {trial.pairs} closed file pairs, {trial.queries} {trial.queries_made_up ? 'made-up queries' : 'logged queries'} each.
      </p>
    </>
  );
}
