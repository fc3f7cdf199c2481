// Requests: what a MongoDB server spends its time on. Load and latencies over the range, the table of what costs most, one shape closely, two
// ranges compared, and the database and its machine on the same time axis.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { getComparison, getInstances, getProfile, getRanking, type InstanceTotal, type Profile, type Span } from '../api/mongo.ts';
import { Figure } from '../chart/figure.tsx';
import { useLater, useLoad } from '../part/load.ts';
import { Link } from '../part/link.tsx';
import { Command, Empty, Failure, NoMatch } from '../part/notice.tsx';
import { OnlyHere } from '../part/onlyhere.tsx';
import { Sparkline } from '../part/sparkline.tsx';
import { type Choice, choiceOf, COMPARISONS, earlier, GROUPS, pick } from '../requests/address.ts';
import { Beside } from '../requests/beside.tsx';
import { CompareTable } from '../requests/compare.tsx';
import { ShapeDetail } from '../requests/detail.tsx';
import { Heat, Picked } from '../requests/heat.tsx';
import { foundText, RequestTable } from '../requests/table.tsx';
import { errorText, latencyText, loadText, rateText } from '../requests/text.tsx';
import { useCell } from '../state/cell.ts';
import { missed } from '../state/live.ts';
import { route, setParams } from '../state/route.ts';
import { useTrapper } from '../state/trapper.ts';
import { windowKey, windowNow, zoomTo } from '../state/window.ts';
import { spanText } from '../time/clock.ts';

const REFRESH_MS = 10_000;
const POINTS = 160;
const LIMIT = 200;
const LOAD_HEIGHT = 112;

export function RequestsView() {
  const { params } = useCell(route);
  const choice = choiceOf(params);
  const key = useCell(windowKey);
  const beat = useBeat();
  const instances = useLoad((signal) => getInstances(windowNow(), signal), [key, beat]);
  if (instances.data === null) {
    return instances.error === null ? <div class="page loading" /> : <Failure error={instances.error} retry={instances.reload} />;
  }
  const list = instances.data.instances;
  const instance = choice.instance === '' ? list[0] : list.find((one) => one.id === choice.instance);
  return (
    <div class="page requests-page">
      {list.length === 0 ? <NothingWatched /> : instance === undefined ? <Unknown id={choice.instance} /> : <Watched instances={list} instance={instance} choice={choice} beat={beat} />}
    </div>
  );
}

// useBeat counts up while the range follows the clock, so that what is shown is read again.
function useBeat(): number {
  const lost = useCell(missed);
  const [beat, setBeat] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && windowNow().live && setBeat((n) => n + 1), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return beat + lost;
}

function NothingWatched() {
  const server = useTrapper().address;
  return (
    <>
      <h1>Requests</h1>
      <Empty title="No MongoDB server is being watched.">
        <p>An agent on the database's machine shows every kind of request with its load and latency, from the wire, without a user in the database:</p>
        <Command text={`sudo tidemark agent --server ${server} --mongo any`} />
        <OnlyHere />
        <p class="muted">
          For a first look without a server, run <code>tidemark mongo top -i any</code> there.
        </p>
      </Empty>
    </>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <>
      <h1>Requests</h1>
      <Empty title={`No MongoDB server ${id} is known.`}>
        <p>
          <button type="button" onClick={() => setParams({ instance: '' })}>
            Show the most loaded one
          </button>
        </p>
      </Empty>
    </>
  );
}

interface WatchedProps {
  instances: InstanceTotal[];
  instance: InstanceTotal;
  choice: Choice;
  beat: number;
}

function Watched({ instances, instance, choice, beat }: WatchedProps) {
  const key = useCell(windowKey);
  const whole = useLoad((signal) => getProfile(instance.id, 'all', windowNow(), POINTS, signal), [instance.id, key, beat]);
  // A picked part that has left the range is none any more.
  const picked = choice.pick !== null && whole.data !== null && (choice.pick.to <= whole.data.from || choice.pick.from >= whole.data.to) ? null : choice.pick;
  return (
    <>
      <Title instances={instances} instance={instance} profile={whole.data} />
      {whole.error !== null && <Failure error={whole.error} retry={whole.reload} />}
      {whole.data !== null && <Overall profile={whole.data} picked={picked} />}
      <Controls choice={choice} picked={picked} />
      <Rows instance={instance} choice={choice} picked={picked} beat={beat} />
      <Beside instance={instance} />
    </>
  );
}

function Title({ instances, instance, profile }: { instances: InstanceTotal[]; instance: InstanceTotal; profile: Profile | null }) {
  const total = profile?.total ?? instance.total;
  return (
    <div class="title-line requests-title">
      <h1>Requests</h1>
      {instances.length === 1 ? (
        <span class="muted">{nameOf(instance)}</span>
      ) : (
        <select aria-label="MongoDB server" value={instance.id} onChange={(event) => setParams({ instance: event.currentTarget.value, shape: '', pick: '' }, false)}>
          {instances.map((one) => (
            <option key={one.id} value={one.id}>
              {nameOf(one)} · {loadText(one.total.load)}
            </option>
          ))}
        </select>
      )}
      {SAMPLED.test(instance.address) && (
        <span class="tag" title="Told by the server's log or profiler: only slow requests, or some of them">
          sampled
        </span>
      )}
      <span>
        <span class="muted">load</span> <b data-number="load">{loadText(total.load)}</b> <Sparkline values={instance.loads} width={72} height={16} label="Load over the range" />
      </span>
      <b>{rateText(total.rate)}</b>
      <span>
        <span class="muted">p95</span> <b>{latencyText(total.p95)}</b>
      </span>
      <span>
        <span class="muted">errors</span> <b>{errorText(total)}</b>
      </span>
    </div>
  );
}

/** Instances whose requests were not seen on the wire are named after where they were told. */
const SAMPLED = /\((log|profiler)\)$/;

const nameOf = (one: InstanceTotal): string => `${one.host_name} · ${one.address}`;

function Overall({ profile, picked }: { profile: Profile; picked: Span | null }) {
  const window = useMemo(() => ({ from: profile.from, to: profile.to }), [profile]);
  const at = useMemo(() => profile.at.map((start) => start + profile.step_ms / 2), [profile]);
  const lines = useMemo(() => [{ name: 'load', slot: 0, values: profile.load.map((load) => (load === null ? null : load * 100)) }], [profile]);
  return (
    <section class="overall" aria-label="Load and latency over the range">
      <Heat id="requests-heat" title="Latency · drag over a part to rank it" profile={profile} window={window} picked={picked} onDrag={pick} />
      <div class="picked-over">
        <Figure id="requests-load" title="Load" units="%" at={at} lines={lines} window={window} height={LOAD_HEIGHT} onDrag={(from, to) => pick({ from, to })} />
        <Picked picked={picked} window={window} />
      </div>
    </section>
  );
}

function Controls({ choice, picked }: { choice: Choice; picked: Span | null }) {
  const [search, setSearch] = useState(choice.search);
  const later = useLater(search.trim(), 200);
  useEffect(() => setParams({ search: later }), [later]);
  // The address may change without the field: a button clears the filters.
  useEffect(() => void (choice.search !== later && setSearch(choice.search)), [choice.search]);
  const chip = (text: string, title: string, clear: () => void) => (
    <button type="button" class="tag" title={title} onClick={clear}>
      {text} ×
    </button>
  );
  const place = choice.db === undefined && choice.collection === undefined ? null : [choice.db, choice.collection].filter(Boolean).join('.');
  return (
    <div class="filters request-filters">
      <label>
        <span class="muted">group by</span>
        <select value={choice.group_by} onChange={(event) => setParams({ group: event.currentTarget.value === 'shape' ? '' : event.currentTarget.value, shape: '' }, false)}>
          {GROUPS.map(([id, word]) => (
            <option key={id} value={id}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span class="muted">compare with</span>
        <select value={choice.compare} onChange={(event) => setParams({ compare: event.currentTarget.value }, false)}>
          {COMPARISONS.map(([id, word]) => (
            <option key={id} value={id}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <input type="search" value={search} placeholder="Filter: collection, field, command" aria-label="Filter requests" onInput={(event) => setSearch(event.currentTarget.value)} />
      {place !== null && chip(place, 'Show all collections', () => setParams({ db: '', collection: '' }, false))}
      {choice.command !== undefined && chip(choice.command, 'Show all commands', () => setParams({ command: '' }, false))}
      {picked !== null && (
        <>
          {chip(spanText(picked.from, picked.to), 'Rank the whole range', () => pick(null))}
          <button
            type="button"
            class="quiet"
            title="Make this the range of the page"
            onClick={() => {
              setParams({ pick: '' });
              zoomTo(picked.from, picked.to);
            }}
          >
            zoom in
          </button>
        </>
      )}
    </div>
  );
}

function NoRequests({ instance, choice, span }: { instance: InstanceTotal; choice: Choice; span: Span }) {
  const filtered = choice.search !== '' || choice.db !== undefined || choice.collection !== undefined || choice.command !== undefined;
  if (filtered) return <NoMatch what="request" clear={() => setParams({ search: '', db: '', collection: '', command: '' }, false)} />;
  return (
    <Empty title="No requests in this range.">
      <p>
        Nothing was seen of {nameOf(instance)} between {spanText(span.from, span.to)}. Choose a longer range, or see on <Link to={`/hosts/${instance.host_id}`}>{instance.host_name}</Link> whether its agent still sends.
      </p>
    </Empty>
  );
}

function Rows({ instance, choice, picked, beat }: { instance: InstanceTotal; choice: Choice; picked: Span | null; beat: number }) {
  const key = useCell(windowKey);
  const filter = { ...choice, instance: instance.id };
  const asked = JSON.stringify([instance.id, choice.group_by, choice.search, choice.db, choice.collection, choice.command, choice.order, choice.compare, picked, key]);
  const loaded = useLoad(
    async (signal) => {
      const { from, to } = picked ?? windowNow();
      const span = { from, to };
      if (choice.compare !== '') return { asked, span, comparison: await getComparison(filter, span, earlier(span, choice.compare), LIMIT, signal), ranking: null };
      return { asked, span, comparison: null, ranking: await getRanking(filter, choice.order, span, LIMIT, signal) };
    },
    // A picked part does not move, so it need not be read again.
    [asked, picked === null ? beat : 0],
  );
  if (loaded.error !== null && loaded.data?.asked !== asked) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return <div class="loading" />;
  const { ranking, comparison, span } = loaded.data;
  const dimmed = loaded.data.asked !== asked;
  if (comparison !== null) return <CompareTable comparison={comparison} choice={choice} dimmed={dimmed} />;
  if (ranking === null) return null;
  const missing = choice.open !== '' && choice.group_by === 'shape' && !ranking.rows.some((row) => row.id === choice.open);
  return (
    <div class="request-rows">
      {missing && <ShapeDetail instance={instance.id} id={choice.open} span={span} />}
      {ranking.rows.length === 0 ? <NoRequests instance={instance} choice={choice} span={span} /> : <RequestTable ranking={ranking} choice={choice} span={span} dimmed={dimmed} />}
      <p class="muted" aria-live="polite">
        {ranking.rows.length > 0 && foundText(ranking)}
      </p>
    </div>
  );
}
