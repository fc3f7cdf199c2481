// One shape closely: what it is, its latencies, how often it comes, what it moves, how often it fails.

import { useMemo } from 'preact/hooks';
import { getProfile, type Profile, type Span } from '../api/mongo.ts';
import { Figure, type FigureLine } from '../chart/figure.tsx';
import { digits, formatValue } from '../format/number.ts';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { Heat } from './heat.tsx';
import { PlanView } from './plan.tsx';
import { errorText, latencyText, loadText, namespaceOf } from './text.tsx';

const POINTS = 120;
const HEIGHT = 120;
const SHOWN_CODES = 8;

const codeText = ({ code, name, count }: Profile['codes'][number]): string => `${code === 'other' ? 'others' : code}${name === undefined ? '' : ` ${name}`}: ${count.toLocaleString('en-US')}`;

export function ShapeDetail({ instance, id, span }: { instance: string; id: string; span: Span }) {
  const loaded = useLoad((signal) => getProfile(instance, id, span, POINTS, signal), [instance, id, span.from, span.to]);
  if (loaded.data === null) return loaded.error === null ? <div class="shape-detail loading" /> : <Failure error={loaded.error} retry={loaded.reload} />;
  return <Detail profile={loaded.data} />;
}

function Detail({ profile }: { profile: Profile }) {
  const window = useMemo(() => ({ from: profile.from, to: profile.to }), [profile]);
  const at = useMemo(() => profile.at.map((start) => start + profile.step_ms / 2), [profile]);
  const lines = useMemo(() => linesOf(profile), [profile]);
  const { total } = profile;
  const each = (n: number): string => (total.requests > 0 ? digits(n / total.requests, 3) : '–');
  return (
    <section class="shape-detail" aria-label="Details of the shape">
      <p class="shape-full">
        <span class="muted">{namespaceOf(profile)}</span> <code>{profile.shape}</code>
      </p>
      <dl class="shape-facts">
        <Fact name="Load" value={loadText(total.load)} />
        <Fact name="Requests" value={total.requests.toLocaleString('en-US')} />
        <Fact name="Errors" value={total.errors === 0 ? 'none' : `${total.errors.toLocaleString('en-US')} (${errorText(total)})`} />
        {profile.codes.length > 0 && <Fact name="Errors by code" value={profile.codes.slice(0, SHOWN_CODES).map(codeText).join(', ')} />}
        <Fact name="p50, p95, p99" value={`${latencyText(total.p50)}, ${latencyText(total.p95)}, ${latencyText(total.p99)}`} />
        <Fact name="Longest" value={latencyText(total.max)} />
        <Fact name="Documents each" value={each(total.docs)} />
        <Fact name="Bytes each, in and out" value={total.requests > 0 ? `${formatValue(total.bytes_in / total.requests, 'B')}, ${formatValue(total.bytes_out / total.requests, 'B')}` : '–'} />
        <Fact name="Fingerprint" value={profile.id} />
      </dl>
      {profile.plan !== null && <PlanView plan={profile.plan} collection={profile.collection ?? ''} />}
      <div class="shape-charts">
        <Heat id="shape-heat" title="Latency" profile={profile} window={window} />
        <Figure id="shape-latency" title="Latency, percentiles" units="s" at={at} lines={lines.latency} window={window} height={HEIGHT} />
        <Figure id="shape-rate" title="Requests per second" units="/s" at={at} lines={lines.rate} window={window} height={HEIGHT} />
        <Figure id="shape-load" title="Load" units="%" at={at} lines={lines.load} window={window} height={HEIGHT} />
        <Figure id="shape-traffic" title="Traffic" units="B/s" at={at} lines={lines.traffic} window={window} height={HEIGHT} />
        <Figure id="shape-errors" title="Errors per second" units="/s" at={at} lines={lines.errors} window={window} height={HEIGHT} />
      </div>
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function linesOf(profile: Profile): Record<'latency' | 'rate' | 'load' | 'traffic' | 'errors', FigureLine[]> {
  const line = (name: string, slot: number, values: (number | null)[]): FigureLine => ({ name, slot, values });
  return {
    latency: [line('p50', 0, profile.p50), line('p95', 1, profile.p95), line('p99', 3, profile.p99)],
    rate: [line('requests', 0, profile.rate)],
    load: [line('load', 0, profile.load.map((load) => (load === null ? null : load * 100)))],
    traffic: [line('in', 0, profile.bytes_in), line('out', 1, profile.bytes_out)],
    errors: [line('errors', 1, profile.errors)],
  };
}
