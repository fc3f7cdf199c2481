// Storage: what is kept, how much room it takes, and how long it will last.

import { useEffect } from 'preact/hooks';
import { getStore, type Store, type Tier } from '../api/storage.ts';
import { digits, formatAge, formatValue } from '../format/number.ts';
import { useLoad } from '../part/load.ts';
import { Failure, NotWhole } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { live, serverNow } from '../state/live.ts';
import { me } from '../state/me.ts';
import { Classes } from '../storage/classes.tsx';
import { HostShares } from '../storage/hosts.tsx';
import { HousekeepingView } from '../storage/housekeeping.tsx';
import { Servers } from '../storage/lease.tsx';
import { bytesPerValue, closedBytesPerValue, ENOUGH_VALUES, outlookOf, PLAIN_BYTES } from '../storage/outlook.ts';
import { Recompress } from '../storage/recompress.tsx';
import { RetentionSection } from '../storage/retention.tsx';
import { Snapshots } from '../storage/snapshots.tsx';
import { Standby } from '../storage/standby.tsx';
import { TimeLine } from '../storage/timeline.tsx';
import { LastTrial } from '../storage/trial.tsx';
import { dateText } from '../time/clock.ts';

const LOOK_MS = 10_000;

export function StorageView() {
  const who = useCell(me);
  const store = useLoad((signal) => getStore(signal), []);
  useEffect(() => {
    live.want({});
    const timer = setInterval(() => !document.hidden && store.reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const changes = who?.role === 'administrator';
  const whole = who?.all_hosts === true;
  return (
    <div class="page store">
      <h1>Storage</h1>
      {store.error !== null && <Failure error={store.error} retry={store.reload} />}
      {store.data !== null && (
        <>
          <Figures store={store.data} />
          {store.data.engine === 'dbengine' ? (
            <>
              <section aria-labelledby="pairs-title">
                <h2 id="pairs-title">File pairs on the line of time</h2>
                <TimeLine store={store.data} now={serverNow()} />
                <Table caption="Tiers" columns={tierColumns(store.data)} rows={store.data.tiers} rowKey={(tier) => tier.tier} />
              </section>
              <Classes />
              <HostShares />
              {whole && <RetentionSection changes={changes} store={store.data} now={serverNow()} />}
              <LastTrial />
              {whole && (
                <>
                  <Recompress changes={changes} />
                  <Snapshots changes={changes} />
                  <Standby changes={changes} />
                </>
              )}
            </>
          ) : (
            whole && <>
              <Servers changes={changes} />
              <RetentionSection changes={changes} store={store.data} now={serverNow()} />
              <HousekeepingView />
            </>
          )}
          {!whole && <NotWhole>Retention, re-compression, snapshots and standbys are about all hosts.</NotWhole>}
        </>
      )}
    </div>
  );
}

function Figures({ store }: { store: Store }) {
  const now = serverNow();
  const outlook = outlookOf(store, now, dateText);
  const each = closedBytesPerValue(store, 'values');
  const share = store.quota_bytes > 0 ? store.used_bytes / store.quota_bytes : 0;
  return (
    <>
      <section class="numbers" aria-label="The store now">
        <div>
          <h3>Will reach back</h3>
          <b class="big" data-number="lasts">
            {outlook.short}
          </b>
        </div>
        <div>
          <h3>Used</h3>
          <b class="big">{formatValue(store.used_bytes, 'B')}</b>
          {store.quota_bytes > 0 && (
            <>
              <span class="meter" role="img" aria-label={`The store is ${digits(share * 100, 3)} % full`}>
                <i style={{ width: `${Math.min(100, share * 100)}%` }} />
              </span>
              <span class="muted big-note">
                {digits(share * 100, 3)} % of {formatValue(store.quota_bytes, 'B')}
                {store.log_bytes > 0 && `, ${formatValue(store.log_bytes, 'B')} of it the log`}
              </span>
            </>
          )}
        </div>
        <div>
          <h3>Oldest value</h3>
          <b class="big">{store.from === 0 ? '–' : formatAge(now - store.from)}</b>
          <span class="muted big-note">{store.values > 0 && `${formatValue(store.values, '!values')} stored`}</span>
        </div>
        {store.engine === 'dbengine' && (
          <div>
            <h3>A value takes</h3>
            <b class="big">{each === null ? '–' : `${digits(each, 3)} B`}</b>
            {each === null && <span class="muted big-note">not known before {ENOUGH_VALUES.toLocaleString('en-US')} values are in closed file pairs</span>}
            {each !== null && each > 0 && <span class="muted big-note">{digits(PLAIN_BYTES / each, 3)} times smaller than {PLAIN_BYTES} bytes of time and number</span>}
          </div>
        )}
      </section>
      <p class="outlook">{outlook.long}</p>
      {store.disk.total_bytes > 0 && <Disk store={store} />}
    </>
  );
}

function Disk({ store }: { store: Store }) {
  const { disk } = store;
  const full = store.disk_full_days === null ? '' : ` At its present rate it is full in ${digits(store.disk_full_days, 2)} days.`;
  return (
    <div class="outlook">
      <p class={disk.level === 'ok' ? '' : 'problem-text'}>
        The disk ({disk.file_system}) is {digits(disk.used_percent, 2)} % full, {formatValue(disk.free_bytes, 'B')} of {formatValue(disk.total_bytes, 'B')} are free.{full}
      </p>
      {store.hold?.held && <p class="problem-text">{holdText(store.hold)}</p>}
      {store.direct_io !== undefined && <p class="muted">{directText(store.direct_io)}</p>}
      {store.advice.map((line) => (
        <p class="muted" key={line}>
          {line}
        </p>
      ))}
    </div>
  );
}

function directText(direct: NonNullable<Store['direct_io']>): string {
  if (direct.active) return `Past the system's cache (direct I/O): ${formatValue(direct.written_bytes, 'B')} written and ${formatValue(direct.read_bytes, 'B')} read since the start.`;
  if (direct.setting === 'off') return "File pairs are written through the system's cache: storage.direct_io is off.";
  return "File pairs are written through the system's cache: the file system has no direct I/O for them.";
}

function holdText(hold: NonNullable<Store['hold']>): string {
  const size = formatValue(hold.ceiling_bytes, 'B');
  const gone = hold.deleted_pairs === 0 ? '' : ` ${hold.deleted_pairs.toLocaleString('en-US')} file pairs went since the start.`;
  if (hold.blocked) return `The disk is past ${hold.at_percent} %, and the store does not become smaller: ${hold.blocked}.${gone}`;
  if (hold.shrink) return `The disk is past ${hold.at_percent} %, and the store becomes smaller: its oldest file pairs are deleted one by one.${gone}`;
  return `The disk is past ${hold.at_percent} %: the store stays at ${size}, and its oldest file pair makes room for each new one.${gone}`;
}

const KINDS: Record<Tier['tier'], string> = { values: 'Values, each exactly', minutes: 'Summaries of one minute', hours: 'Summaries of one hour' };

const tierColumns = (store: Store): Column<Tier>[] => [
  { id: 'tier', title: 'Tier', cell: (tier) => KINDS[tier.tier] },
  { id: 'from', title: 'Reaches back', cell: (tier) => (tier.from === 0 ? '–' : formatAge(serverNow() - tier.from)), number: true },
  { id: 'bytes', title: 'Size', cell: (tier) => formatValue(tier.bytes, 'B'), number: true },
  { id: 'limit', title: 'At most', cell: (tier) => (tier.tier === 'values' ? 'what is left' : formatValue(tier.limit_bytes, 'B')), number: true },
  { id: 'pairs', title: 'File pairs', cell: (tier) => tier.pairs.toLocaleString('en-US'), number: true, minor: true },
  { id: 'values', title: 'Values', cell: (tier) => (tier.values === 0 ? '–' : tier.values.toLocaleString('en-US')), number: true, minor: true },
  {
    id: 'each',
    title: 'Bytes per value',
    cell: (tier) => {
      const each = store.engine === 'dbengine' ? closedBytesPerValue(store, tier.tier) : bytesPerValue(tier);
      return each === null ? '–' : digits(each, 3);
    },
    number: true,
    minor: true,
  },
];
