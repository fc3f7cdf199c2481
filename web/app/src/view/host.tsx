// A host: what it is, how it is at a glance, and all its charts in sections.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { getChart, getHost, getItems } from '../api/client.ts';
import type { Host, Item, Problem } from '../api/types.ts';
import { getGraphs } from '../api/dashboards.ts';
import { Board } from '../chart/board.ts';
import { Chart } from '../chart/chart.tsx';
import { marksOf, useMarks } from '../chart/usemarks.ts';
import { Timeline } from '../chart/timeline.tsx';
import { chartOf } from '../dashboard/chartspec.ts';
import { formatAge, formatDuration, plural } from '../format/number.ts';
import { isCounter, numberOf } from '../item/reading.ts';
import { glanceOf, type Section, sectionsOf } from '../item/sections.ts';
import { itemsToCompare, mostUnusual, type Unusual } from '../item/unusual.ts';
import { SeverityShape } from '../part/icon.tsx';
import { Link } from '../part/link.tsx';
import { useLoad, useSecond, useTitle } from '../part/load.ts';
import { Command, Empty, Failure } from '../part/notice.tsx';
import { OnlyHere } from '../part/onlyhere.tsx';
import { Scenarios } from '../part/scenarios.tsx';
import { useCell } from '../state/cell.ts';
import { live, problemsChanged, serverNow } from '../state/live.ts';
import { useTrapper } from '../state/trapper.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { Facts } from './facts.tsx';
import { ProblemTable } from './problems.tsx';
import { SideList } from './sidelist.tsx';
import { HostTriggers } from './triggers.tsx';
import { ValueList } from './values.tsx';

const TABS = [
  ['', 'Charts'],
  ['values', 'Latest values'],
  ['problems', 'Problems'],
  ['triggers', 'Triggers'],
  ['web', 'Web'],
];
const MAX_ITEMS = 10_000;
const SECTION_HEIGHT = 156;
const GLANCE_HEIGHT = 112;

export function HostView({ id, tab }: { id: string; tab: string }) {
  const changed = useCell(problemsChanged);
  const host = useLoad((signal) => getHost(id, signal), [id], changed);
  const items = useLoad((signal) => getItems({ host: id, limit: MAX_ITEMS }, signal), [id]);
  useEffect(() => live.want({ host: id }), [id]);
  useTitle(host.data?.name ?? 'Host');
  // A host that has just registered gets its items within seconds; look again until they are there.
  const few = items.data !== null && items.data.items.length === 0;
  useEffect(() => {
    if (!few) return;
    const timer = setInterval(items.reload, 2_000);
    return () => clearInterval(timer);
  }, [few]);

  if (host.data === null) return host.error === null ? <div class="page loading" /> : <Failure error={host.error} retry={host.reload} />;
  return (
    <div class="page">
      <HostTitle host={host.data} items={items.data?.items ?? []} />
      <nav class="tabs" aria-label="Host">
        {TABS.filter(([path]) => path !== 'web' || tab === 'web' || (items.data?.items ?? []).some((item) => item.key.startsWith('web.test'))).map(([path, title]) => (
          <Link key={path} to={`/hosts/${id}${path === '' ? '' : `/${path}`}`} current={tab === path}>
            {title}
            {path === 'problems' && host.data!.problems > 0 && <b class="tab-count">{host.data!.problems}</b>}
          </Link>
        ))}
      </nav>
      {items.error !== null && items.data === null && <Failure error={items.error} retry={items.reload} />}
      {tab === '' && items.data !== null && <HostCharts host={host.data} items={items.data.items} />}
      {tab === 'values' && <ValueList host={id} />}
      {tab === 'problems' && <ProblemTable fixed={{ host: id }} />}
      {tab === 'triggers' && <HostTriggers host={id} />}
      {tab === 'web' && <Scenarios host={id} />}
    </div>
  );
}

const STATE_WORDS = { ok: 'agent answers', silent: 'agent is silent', unknown: 'nothing came yet' };
const VALUE_WORDS = { ok: 'values arrive', silent: 'no new value', unknown: 'nothing came yet' };

function HostTitle({ host, items }: { host: Host; items: Item[] }) {
  useSecond();
  const uptime = items.find((item) => item.key === 'system.uptime');
  const seconds = uptime === undefined ? null : numberOf(uptime);
  const since = uptime?.last?.at ?? 0;
  return (
    <div class="title-line">
      <h1>
        {host.worst !== '' && <SeverityShape severity={host.worst} />}
        {host.name}
      </h1>
      {host.name !== host.host && <span class="muted">{host.host}</span>}
      <span class={`agent-state ${host.state}`}>
        <i class="dot" />
        {(host.seen_by === 'values' ? VALUE_WORDS : STATE_WORDS)[host.state]}
        {host.state === 'silent' && host.last_seen !== null && ` for ${formatAge(serverNow() - host.last_seen)}`}
      </span>
      {!host.enabled && <span class="muted">switched off</span>}
      {host.proxy && <span class="muted">asked by proxy {host.proxy}</span>}
      {seconds !== null && <span class="muted">up {formatDuration(seconds + Math.max(0, (serverNow() - since) / 1000))}</span>}
      {host.groups.map((group) => (
        <Link key={group} to="/hosts" query={{ group }} class="tag">
          {group}
        </Link>
      ))}
      {host.tags.map((tag) => (
        <span class="tag" key={`${tag.tag}${tag.value}`}>
          {tag.value === '' ? tag.tag : `${tag.tag}: ${tag.value}`}
        </span>
      ))}
      <span class="muted title-end">
        {plural(host.items, 'item')}
        {host.items > 0 && (
          <>
            {' · '}
            <Link to="/dashboards/new" query={{ 'from-host': host.id }} class="markdown-link">
              make a dashboard
            </Link>
          </>
        )}
      </span>
    </div>
  );
}

// The items of shapes and clients are thousands; the page Requests shows them.
const OF_REQUESTS = /^mongo\.(shape|client)\[/;

function HostCharts({ host, items: all }: { host: Host; items: Item[] }) {
  const items = useMemo(() => all.filter((item) => !OF_REQUESTS.test(item.key)), [all]);
  const watched = all.find((item) => item.key.startsWith('mongo.instance['))?.labels?.instance;
  const graphs = useGraphs(host.id);
  const sections = useMemo(() => [...sectionsOf(items), ...graphs], [items, graphs]);
  const glance = useMemo(() => glanceOf(items), [items]);
  const board = useMemo(() => new Board(), [host.id]);
  useEffect(() => board.setCounters(new Set(items.filter(isCounter).map((item) => item.id))), [board, items]);
  useEffect(() => {
    board.start();
    return () => board.stop();
  }, [board]);
  const marks = useMarks(host.id, items);
  const unusual = useUnusual(sections, items);
  const server = useTrapper().address;

  if (items.length === 0) {
    return (
      <Empty title={`${host.name} has no items yet.`}>
        <p>They appear by themselves as soon as its agent is connected. To connect one, run this on the machine:</p>
        <Command text={`tidemark agent --server ${server} --host ${host.host}`} />
        <OnlyHere />
      </Empty>
    );
  }
  return (
    <div class="with-side">
      <SideList sections={sections} unusual={unusual} />
      <div class="sections">
        {watched !== undefined && (
          <p>
            <Link to="/requests" query={{ instance: `${host.host}/${watched}` }} class="more">
              Requests of MongoDB at {watched} →
            </Link>
          </p>
        )}
        {glance.length > 0 && (
          <section class="glance" aria-label="At a glance">
            {glance.map((spec) => (
              <Chart key={spec.id} board={board} spec={spec} section="glance" height={GLANCE_HEIGHT} marks={marksOf(spec, marks)} />
            ))}
          </section>
        )}
        {sections.map((section) => (
          <HostSection key={section.id} section={section} board={board} marks={marks} />
        ))}
      </div>
    </div>
  );
}

function HostSection({ section, board, marks }: { section: Section; board: Board; marks: Map<string, Problem[]> }) {
  return (
    <section class="section" id={section.id} aria-labelledby={`${section.id}-title`}>
      <h2 id={`${section.id}-title`}>{section.title}</h2>
      <div class="charts">
        {section.charts.map((spec) => (
          <Chart key={spec.id} board={board} spec={spec} section={section.id} height={SECTION_HEIGHT} marks={marksOf(spec, marks)} />
        ))}
      </div>
      {section.states.length > 0 && <Timeline id={`${section.id}-states`} title="States" items={section.states} changedOnly />}
      {section.facts.length > 0 && <Facts items={section.facts} />}
    </section>
  );
}

const NO_SECTIONS: Section[] = [];

// useGraphs gives the graphs of the host's templates as a section of their own; none without any.
function useGraphs(host: string): Section[] {
  const loaded = useLoad((signal) => getGraphs(host, '', signal), [host]);
  return useMemo(() => {
    const charts = (loaded.data?.graphs ?? [])
      .map((graph, n) => chartOf(`graph-${n}`, { kind: 'graph', x: 0, y: 0, w: 1, h: 1, title: graph.name, stack: graph.stack }, graph.items.map((item) => ({ ref: { key: item.key }, items: [item] }))))
      .filter((spec) => spec.series.length > 0);
    return charts.length === 0 ? NO_SECTIONS : [{ id: 'graphs', title: 'Graphs', charts, facts: [], states: [] }];
  }, [loaded.data]);
}

const COMPARE_POINTS = 120;
const COMPARE_ITEMS = 200;
const COMPARE_EVERY_MS = 30_000;
// The charts come first.
const COMPARE_AFTER_MS = 1_500;

// useUnusual looks now and then for the section that behaves unlike itself.
function useUnusual(sections: Section[], items: Item[]): Unusual | null {
  const key = useCell(windowKey);
  const [unusual, setUnusual] = useState<Unusual | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const ids = itemsToCompare(sections, COMPARE_ITEMS);
    const look = async (): Promise<void> => {
      if (document.hidden || ids.length === 0) return;
      const { from, to } = windowNow();
      try {
        setUnusual(mostUnusual(sections, items, (await getChart(ids, from, to, COMPARE_POINTS, abort.signal)).series));
      } catch {
        // A hint that could not be computed is no hint; the charts say what is wrong.
      }
    };
    const first = setTimeout(() => void look(), COMPARE_AFTER_MS);
    const timer = setInterval(() => void look(), COMPARE_EVERY_MS);
    return () => {
      abort.abort();
      clearTimeout(first);
      clearInterval(timer);
    };
  }, [sections, key]);
  return unusual;
}
