// Below a problem: why it fired, who has seen it, and when it was there before.

import { useEffect, useRef } from 'preact/hooks';
import { getProblem, getValues } from '../api/client.ts';
import type { Item, ProblemDetail, Value } from '../api/types.ts';
import { formatDuration, plural } from '../format/number.ts';
import { readingText } from '../item/reading.ts';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Failure } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { problemsChanged, serverNow } from '../state/live.ts';
import { me } from '../state/me.ts';
import { dateTime } from '../time/clock.ts';
import { mayOperate, ProblemForm } from './problemform.tsx';

const DAY = 86_400_000;
/** What of the charts is shown before and behind the moment. */
const AROUND = 30 * 60_000;
const MAX_ITEMS = 20;

interface Row {
  item: Item;
  then: Value | null;
}

export function ProblemPart({ id, seen }: { id: string; seen: () => void }) {
  const changed = useCell(problemsChanged);
  const loaded = useLoad(
    async (signal) => {
      const detail = await getProblem(id, signal);
      const { at } = detail.problem;
      const rows: Row[] = await Promise.all(
        detail.items.slice(0, MAX_ITEMS).map(async (item) => {
          const { values } = await getValues({ item: item.id, from: Math.floor(at - DAY), to: Math.floor(at) + 1, order: 'desc', limit: 1 }, signal);
          return { item, then: values[0]?.value ?? null };
        }),
      );
      return { detail, rows };
    },
    [id],
    changed,
  );
  const part = useRef<HTMLDivElement>(null);
  const ready = loaded.data !== null;
  useEffect(() => part.current?.scrollIntoView({ block: 'nearest' }), [ready]); // a link may open a problem far down
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (loaded.data === null) return <p class="muted">Reading why it fired…</p>;
  const { detail, rows } = loaded.data;
  const again = (): void => {
    loaded.reload();
    seen();
  };
  return (
    <div class="problem-part" ref={part}>
      <Why detail={detail} rows={rows} />
      <Marks detail={detail} done={again} />
      <Earlier detail={detail} />
    </div>
  );
}

function Why({ detail, rows }: { detail: ProblemDetail; rows: Row[] }) {
  const { problem, expression, recovery_expression: recovery } = detail;
  const around = (moment: number): Record<string, string> => ({ from: new Date(moment - AROUND).toISOString(), to: new Date(Math.min(moment + AROUND, serverNow())).toISOString() });
  return (
    <section aria-label="Why it fired">
      <h3>Why it fired</h3>
      {expression === '' ? (
        <p class="muted">The trigger is not there any more.</p>
      ) : (
        <p>
          At {dateTime(problem.at)} this became true: <code class="anywhere">{expression}</code>
          {recovery !== '' && (
            <>
              . It is over when this is true: <code class="anywhere">{recovery}</code>
            </>
          )}
        </p>
      )}
      {rows.length > 0 && (
        <table class="list figures">
          <caption class="unseen">Values of the expression</caption>
          <thead>
            <tr>
              <th scope="col">Item</th>
              <th scope="col" class="number">
                When it fired
              </th>
              <th scope="col" class="number">
                Now
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ item, then }) => (
              <tr key={item.id}>
                <td class="anywhere">
                  <Link to={`/items/${item.id}`} class="text-link" query={around(problem.at)} title="The chart around the moment when it fired">
                    {item.name}
                  </Link>
                </td>
                <td class="number">{then === null ? '–' : readingText(item.units, then)}</td>
                <td class="number">{item.last === null ? '–' : readingText(item.units, item.last.value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Marks({ detail, done }: { detail: ProblemDetail; done: () => void }) {
  const who = useCell(me);
  return (
    <section aria-label="Who has seen it">
      <h3>{detail.marks.length === 0 ? 'Nobody has seen it yet' : 'What was done'}</h3>
      {detail.marks.length > 0 && (
        <ul class="marks">
          {detail.marks.map((mark) => (
            <li key={`${mark.at} ${mark.author}`}>
              <b>{mark.author || 'somebody'}</b> <span class="muted">{dateTime(mark.at)}</span> {mark.done}
              {mark.message !== '' && <span class="mark-message">{mark.message}</span>}
            </li>
          ))}
        </ul>
      )}
      {mayOperate(who) && <ProblemForm problems={[detail.problem]} done={done} />}
    </section>
  );
}

function Earlier({ detail }: { detail: ProblemDetail }) {
  const { earlier } = detail;
  return (
    <section aria-label="Before">
      <h3>{earlier.length === 0 ? 'The trigger did not fire before' : `Fired before${earlier.length < 10 ? `, ${plural(earlier.length, 'time')}` : ', the last ten times'}`}</h3>
      {earlier.length > 0 && (
        <ul class="marks">
          {earlier.map((one) => (
            <li key={one.event_id}>
              {dateTime(one.at)} <span class="muted">{one.recovered_at === null ? 'still open' : `for ${formatDuration((one.recovered_at - one.at) / 1000)}`}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
