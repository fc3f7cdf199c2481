// Lines of a log: newest first, by text and level, following what comes.

import { useEffect, useState } from 'preact/hooks';
import { getValues } from '../api/client.ts';
import type { Level, Reading } from '../api/types.ts';
import { useCell } from '../state/cell.ts';
import { missed } from '../state/live.ts';
import { windowKey, windowNow } from '../state/window.ts';
import { clockTime, dateText } from '../time/clock.ts';
import { useLater, useLoad } from './load.ts';
import { Empty, Failure } from './notice.tsx';

const LIMIT = 200;
const FOLLOW_MS = 2_000;
const MAX_PAGES = 20;
const LEVELS: Level[] = ['debug', 'information', 'warning', 'error'];
const WORDS: Record<Level, string> = { debug: 'debug', information: '', warning: 'warning', error: 'error' };

interface Props {
  item: string;
  /** Less of it, for a widget. */
  small?: boolean;
  search?: string;
  level?: string;
  onFilter?: (search: string, level: string) => void;
}

export function LogView({ item, small = false, search: first = '', level: firstLevel = '', onFilter }: Props) {
  const [search, setSearch] = useState(first);
  const [level, setLevel] = useState(firstLevel);
  const [follow, setFollow] = useState(true);
  const [older, setOlder] = useState<Reading[]>([]);
  const [next, setNext] = useState<string | undefined>(undefined);
  const [failure, setFailure] = useState<Error | null>(null);
  const later = useLater(search.trim());
  const key = useCell(windowKey);
  const lost = useCell(missed);
  const asked = { item, order: 'desc', search: later, level, limit: LIMIT };
  const loaded = useLoad(
    (signal) => {
      const { from, to } = windowNow();
      return getValues({ ...asked, from: Math.floor(from), to: Math.ceil(to) }, signal);
    },
    [item, later, level, key, lost],
  );
  useEffect(() => {
    setOlder([]);
    setNext(undefined);
  }, [item, later, level, key]);
  useEffect(() => onFilter?.(later, level), [later, level]);
  useEffect(() => {
    if (!follow) return;
    const timer = setInterval(() => !document.hidden && windowNow().live && older.length === 0 && loaded.reload(), FOLLOW_MS);
    return () => clearInterval(timer);
  }, [follow, older.length, item]);

  const lines = [...(loaded.data?.values ?? []), ...older];
  const cursor = older.length > 0 ? next : loaded.data?.next;
  const more = async (): Promise<void> => {
    setFollow(false);
    let at = cursor;
    let found: Reading[] = [];
    try {
      // With a filter a page may hold nothing though there is more.
      for (let page = 0; at !== undefined && found.length < LIMIT && page < MAX_PAGES; page++) {
        const answer = await getValues({ ...asked, from: Math.floor(windowNow().from), to: Math.ceil(windowNow().to), cursor: at });
        found = [...found, ...answer.values];
        at = answer.next;
      }
      setOlder((old) => [...old, ...found]);
      setNext(at);
      setFailure(null);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  return (
    <section class={small ? 'log small' : 'log'} aria-label="Lines of the log">
      <div class="filters">
        <input type="search" value={search} placeholder="Text in the line" aria-label="Text in the line" onInput={(event) => setSearch(event.currentTarget.value)} />
        <select aria-label="Level" value={level} onChange={(event) => setLevel(event.currentTarget.value)}>
          <option value="">all levels</option>
          <option value="information">information and worse</option>
          <option value="warning">warnings and errors</option>
          <option value="error">errors</option>
        </select>
        <button type="button" aria-pressed={follow} title="Show new lines as they come" onClick={() => setFollow(!follow)}>
          {follow ? 'Following' : 'Follow'}
        </button>
      </div>
      {loaded.error !== null && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data !== null && lines.length === 0 && (
        <Empty title={later === '' && level === '' ? 'No line in this range.' : 'No line fits.'}>{cursor !== undefined && <p class="muted">Not all of the range was looked at yet.</p>}</Empty>
      )}
      {lines.length > 0 && <Lines lines={lines} />}
      {failure !== null && <Failure error={failure} />}
      {cursor !== undefined && (
        <button type="button" class="more" onClick={() => void more()}>
          Look further back
        </button>
      )}
    </section>
  );
}

function Lines({ lines }: { lines: Reading[] }) {
  return (
    <table class="list log-lines">
      <caption class="unseen">Lines, newest first</caption>
      <thead class="unseen">
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Level</th>
          <th scope="col">Line</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <tr key={line.at_ns} class={`level-${levelOf(line)}`}>
            <td class="log-at" title={`${dateText(atOf(line))} ${clockTime(atOf(line), true)}`}>
              {dateText(atOf(line)) === dateText(Date.now()) ? '' : `${dateText(atOf(line))} `}
              {clockTime(atOf(line), true)}
            </td>
            <td class="log-level">{WORDS[levelOf(line)]}</td>
            <td class="wide text-value">
              {line.value.encoding === 'base64' ? <span class="muted">bytes that are no text</span> : line.value.v}
              {line.value.log !== undefined && line.value.log.source !== '' && <span class="muted"> {line.value.log.source}</span>}
              {line.value.log !== undefined && line.value.log.event_id !== 0 && <span class="muted"> event {line.value.log.event_id}</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const atOf = (line: Reading): number => Number(BigInt(line.at_ns) / 1_000_000n);
const levelOf = (line: Reading): Level => (LEVELS.includes(line.value.level ?? 'information') ? (line.value.level ?? 'information') : 'information');
