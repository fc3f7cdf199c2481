// On the overview: the MongoDB servers by load, and the requests that cost most on the most loaded one. Nothing where none is watched.

import { useEffect } from 'preact/hooks';
import { getInstances, getRanking } from '../api/mongo.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Sparkline } from '../part/sparkline.tsx';
import { serverNow } from '../state/live.ts';
import { latencyText, loadText, rateText, RowName } from './text.tsx';

const HOUR = 3_600_000;
const REFRESH_MS = 30_000;
const MAX_INSTANCES = 4;
const MAX_SHAPES = 5;

export function RequestCard() {
  const loaded = useLoad(async (signal) => {
    const to = serverNow();
    const span = { from: to - HOUR, to };
    const { instances } = await getInstances(span, signal);
    if (instances.length === 0) return null;
    const ranking = await getRanking({ instance: instances[0].id, group_by: 'shape', search: '' }, 'load', span, MAX_SHAPES, signal);
    return { instances: instances.slice(0, MAX_INSTANCES), ranking, more: instances.length - MAX_INSTANCES };
  }, []);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && loaded.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  if (loaded.data === null) return null;
  const { instances, ranking, more } = loaded.data;
  return (
    <section class="request-card" aria-labelledby="request-card-title">
      <h2 id="request-card-title">
        <Link to="/requests">MongoDB</Link> <span class="muted">dearest requests of the last hour on {ranking.instance.host_name}</span>
      </h2>
      <div class="request-card-parts">
        <ul>
          {instances.map((one) => (
            <li key={one.id}>
              <Link to="/requests" query={{ instance: one.id }} class="card-instance" title={one.address}>
                <b>{one.host_name}</b>
                <Sparkline values={one.loads} width={96} height={20} label={`Load of ${one.host_name}`} />
                <span class="number">{loadText(one.total.load)}</span>
              </Link>
            </li>
          ))}
          {more > 0 && <li class="muted">and {more} more</li>}
        </ul>
        <ol>
          {ranking.rows.map((row) => (
            <li key={row.id}>
              <Link to="/requests" query={{ instance: ranking.instance.id, shape: row.id }} class="card-shape">
                <span class="number">{loadText(row.sums.load)}</span>
                <span class="number muted">{rateText(row.sums.rate)}</span>
                <span class="number muted card-p95">{latencyText(row.sums.p95)}</span>
                <RowName row={row} />
              </Link>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}
