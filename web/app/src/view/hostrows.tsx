// A small fleet has room for more than squares: each host is a row with its four most telling charts, live.

import { useEffect, useMemo } from 'preact/hooks';
import { getItems } from '../api/client.ts';
import type { Host } from '../api/types.ts';
import { Board } from '../chart/board.ts';
import { Chart } from '../chart/chart.tsx';
import { plural } from '../format/number.ts';
import { isCounter } from '../item/reading.ts';
import { type ChartSpec, glanceOf } from '../item/sections.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { live } from '../state/live.ts';
import { squareClass } from './hosts.tsx';

/** Up to this many hosts are shown as rows. */
export const MAX_ROWS = 4;
const HEIGHT = 96;
const ONLY_HEIGHT = 148;

export function HostRows({ hosts }: { hosts: Host[] }) {
  const ids = hosts.map((host) => host.id).join(' ');
  const counts = hosts.map((host) => host.items).join(' ');
  const loaded = useLoad((signal) => Promise.all(hosts.map((host) => getItems({ host: host.id, limit: 2_000 }, signal))), [ids, counts]);
  const board = useMemo(() => new Board(), []);
  const rows = useMemo(() => (loaded.data ?? []).map((answer) => glanceOf(answer.items)), [loaded.data]);
  useEffect(() => {
    const items = (loaded.data ?? []).flatMap((answer) => answer.items);
    board.setCounters(new Set(items.filter(isCounter).map((item) => item.id)));
    live.want({ items: rows.flat().flatMap((spec) => spec.series.flatMap((series) => series.sources.map((source) => source.item))) });
  }, [loaded.data, rows]);
  useEffect(() => {
    board.start();
    return () => board.stop();
  }, [board]);
  return (
    <div class="host-rows">
      {hosts.map((host, n) => (
        <HostRow key={host.id} host={host} charts={rows[n] ?? []} board={board} height={hosts.length === 1 ? ONLY_HEIGHT : HEIGHT} />
      ))}
    </div>
  );
}

function HostRow({ host, charts, board, height }: { host: Host; charts: ChartSpec[]; board: Board; height: number }) {
  return (
    <div class="host-row">
      <Link to={`/hosts/${host.id}`} class="host-row-name">
        <i class={squareClass(host)} />
        <span>{host.name}</span>
      </Link>
      {charts.length === 0 ? (
        <span class="muted">{host.items === 0 ? 'waiting for its first values' : plural(host.items, 'item')}</span>
      ) : (
        <div class="glance">
          {charts.map((spec) => (
            <Chart key={spec.id} board={board} spec={spec} section={`overview ${host.id}`} height={height} />
          ))}
        </div>
      )}
    </div>
  );
}
