// Items that are read rather than drawn: texts, versions, totals. Their values follow the live stream.

import { useEffect, useState } from 'preact/hooks';
import type { Item, Reading } from '../api/types.ts';
import { formatAge } from '../format/number.ts';
import { shownValue } from '../item/reading.ts';
import { chartUnits } from '../item/sections.ts';
import { Link } from '../part/link.tsx';
import { useSecond } from '../part/load.ts';
import { live, serverNow } from '../state/live.ts';

export function Facts({ items }: { items: Item[] }) {
  const shown = useLiveReadings(items);
  useSecond();
  return (
    <dl class="facts">
      {shown.map((item) => {
        const value = shownValue(item, chartUnits(item));
        return (
          <div key={item.id}>
            <dt>
              <Link to={`/items/${item.id}`}>{item.name}</Link>
            </dt>
            <dd title={value.exact}>{item.state === 'unsupported' ? <span class="problem-text">{item.error || 'not supported'}</span> : value.text}</dd>
            <dd class="muted">{item.last === null ? '' : formatAge(serverNow() - item.last.at)}</dd>
          </div>
        );
      })}
    </dl>
  );
}

/** useLiveReadings keeps the last and previous values of items up to date from the live stream. */
export function useLiveReadings(items: Item[]): Item[] {
  const [news, setNews] = useState<Map<string, { last: Reading; previous: Reading | null }>>(new Map());
  useEffect(() => {
    const known = new Map(items.map((item) => [item.id, item]));
    setNews(new Map());
    return live.listen((values) => {
      const mine = values.filter(([id]) => known.has(id));
      if (mine.length === 0) return;
      setNews((old) => {
        const next = new Map(old);
        for (const [id, at, v] of mine) {
          const item = known.get(id)!;
          const before = next.get(id)?.last ?? item.last;
          const t = (item.last?.value.t ?? (item.value_type as Reading['value']['t'])) || 'float';
          // The stream has no texts of value maps; what a value was called before it is called again.
          const mapped = [before, item.last, item.previous].find((known) => known?.value.v === v)?.value.mapped;
          next.set(id, { last: { at, at_ns: `${at}000000`, value: { t, v, ...(mapped === undefined ? {} : { mapped }) } }, previous: before });
        }
        return next;
      });
    });
  }, [items]);
  return items.map((item) => ({ ...item, ...news.get(item.id) }));
}
