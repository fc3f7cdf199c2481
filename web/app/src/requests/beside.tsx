// The database and its machine beside the requests: what else was the matter at the same time. Only what exists is shown.

import { useEffect, useMemo } from 'preact/hooks';
import { getItems } from '../api/client.ts';
import type { Instance } from '../api/mongo.ts';
import type { Item } from '../api/types.ts';
import { Board } from '../chart/board.ts';
import { Chart } from '../chart/chart.tsx';
import { isCounter } from '../item/reading.ts';
import { type ChartSpec, glanceOf, sectionsOf } from '../item/sections.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { live } from '../state/live.ts';

// A host with MongoDB has thousands of items; these are the few that matter here.
const WANTED = ['mongodb.', 'system.cpu.util[all', 'vm.memory.size[', 'vfs.dev.', 'net.if.'];
const MAX_ITEMS = 500;
const HEIGHT = 96;

export function Beside({ instance }: { instance: Instance }) {
  const loaded = useLoad(
    async (signal) => {
      const answers = await Promise.all(WANTED.map((search) => getItems({ host: instance.host_id, search, limit: MAX_ITEMS }, signal)));
      return [...new Map(answers.flatMap((answer) => answer.items).map((item) => [item.id, item])).values()];
    },
    [instance.host_id],
  );
  if (loaded.data === null) return loaded.error === null ? null : <Failure error={loaded.error} retry={loaded.reload} />;
  return <Charts instance={instance} items={loaded.data} />;
}

function Charts({ instance, items }: { instance: Instance; items: Item[] }) {
  const board = useMemo(() => new Board(), [instance.host_id]);
  const machine = useMemo(() => glanceOf(items), [items]);
  const inside = useMemo(() => insideOf(items), [items]);
  useEffect(() => {
    board.setCounters(new Set(items.filter(isCounter).map((item) => item.id)));
    board.start();
    return () => board.stop();
  }, [board, items]);
  useEffect(() => {
    const shown = [...machine, ...inside].flatMap((spec) => spec.series.flatMap((series) => series.sources.map((source) => source.item)));
    live.want({ items: shown });
  }, [machine, inside]);
  const part = (title: string, specs: ChartSpec[], path: string) =>
    specs.length > 0 && (
      <section class="section" aria-label={title}>
        <h2>
          <Link to={path}>{title}</Link>
        </h2>
        <div class="beside">
          {specs.map((spec) => (
            <Chart key={spec.id} board={board} spec={spec} section={title} height={HEIGHT} />
          ))}
        </div>
      </section>
    );
  return (
    <>
      {part(`Inside MongoDB on ${instance.host_name}`, inside, `/hosts/${instance.host_id}`)}
      {part(`The machine ${instance.host_name}`, machine, `/hosts/${instance.host_id}`)}
    </>
  );
}

// insideOf draws what the database says of itself.
function insideOf(items: Item[]): ChartSpec[] {
  return sectionsOf(items.filter((item) => item.key.startsWith('mongodb.'))).flatMap((section) => section.charts);
}
