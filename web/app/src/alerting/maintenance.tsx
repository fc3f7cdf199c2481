// Maintenances: times in which problems of some hosts tell nobody.

import { useState } from 'preact/hooks';
import { type Alerting, deleteAlerting, type Maintenance, type Period, putAlerting } from '../api/alerting.ts';
import { getHosts } from '../api/client.ts';
import { Check, Choice, Field, Form, Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { overview, serverNow } from '../state/live.ts';
import { Pick, Several } from './lines.tsx';
import { localText, onceState, periodWords, whatWords } from './words.ts';

export function Maintenances({ alerting, changed }: { alerting: Alerting; changed: () => void }) {
  const [failure, setFailure] = useState('');
  const offset = useCell(overview)?.utc_offset_seconds ?? 0;
  const list = alerting.maintenances ?? [];
  const now = serverNow() + offset * 1000;
  const columns: Column<Maintenance>[] = [
    { id: 'name', title: 'Maintenance', class: 'anywhere', cell: (one) => one.name, sort: (one) => one.name },
    { id: 'what', title: 'Of', class: 'anywhere', cell: (one) => whatWords(one) },
    { id: 'when', title: 'When', class: 'anywhere', cell: (one) => one.periods.map(periodWords).join('; ') },
    {
      id: 'state',
      title: 'State',
      cell: (one) => {
        const state = onceState(one, now) ?? 'repeats';
        return one.no_data ? `${state}, without data` : state;
      },
    },
    {
      id: 'do',
      title: '',
      number: true,
      cell: (one) => {
        const label = onceState(one, now) === 'in force' ? 'End' : 'Delete';
        return <Sure label={label} again={`${label} ${one.name}?`} run={() => deleteAlerting('maintenance', one.name).then(changed)} failed={setFailure} />;
      },
    },
  ];
  return (
    <>
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {list.length === 0 ? <p class="muted">No maintenance is planned.</p> : <Table caption="Maintenances" columns={columns} rows={list} rowKey={(one) => one.name} sort="name" />}
      <NewMaintenance taken={list.map((one) => one.name)} offset={offset} changed={changed} />
    </>
  );
}

const EVERY = { once: 'once', day: 'every day', week: 'every week', month: 'every month' };
const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];

const LENGTHS: Record<string, string> = { '30 minutes': '30m', '1 hour': '1h', '2 hours': '2h', '4 hours': '4h', '8 hours': '8h', '1 day': '1d', '7 days': '7d' };

/** tagOf reads name:value. */
const tagOf = (text: string): { tag: string; value?: string } => {
  const at = text.indexOf(':');
  return at < 0 ? { tag: text } : { tag: text.slice(0, at), value: text.slice(at + 1) };
};

function NewMaintenance({ taken, offset, changed }: { taken: string[]; offset: number; changed: () => void }) {
  const hosts = useLoad((signal) => getHosts({ limit: 10_000 }, signal), []);
  const groups = [...new Set((hosts.data?.hosts ?? []).flatMap((host) => host.groups))].sort();
  const [name, setName] = useState('');
  const [what, setWhat] = useState('');
  const [start, setStart] = useState('');
  const [length, setLength] = useState('2 hours');
  const [noData, setNoData] = useState(false);
  const [every, setEvery] = useState('once');
  const [days, setDays] = useState<string[]>(['sun']);
  const [day, setDay] = useState('1');
  const [tags, setTags] = useState('');
  const run = async (): Promise<void> => {
    if (taken.includes(name)) throw { detail: `there is a maintenance ${name} already; choose another name` };
    const [kind, ...rest] = what.split(':');
    const target = rest.join(':');
    if (target === '') throw { detail: 'choose the host or the group' };
    const period = every === 'once' ? oncePeriod() : repeated();
    const one: Maintenance = { name, no_data: noData, periods: [period] };
    if (kind === 'group') one.groups = [target];
    else one.hosts = [target];
    const wanted = tags.split(/[\s,]+/).filter(Boolean);
    if (wanted.length > 0) one.tags = wanted.map(tagOf);
    await putAlerting({ maintenances: [one] });
    setName('');
    setStart('');
    changed();
  };
  const oncePeriod = (): Period => {
    const at = start.trim() === '' ? localText(serverNow(), offset) : start.trim().replace(' ', 'T');
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(at)) throw { detail: `${start} is no time, expected ${localText(serverNow(), offset)}` };
    return { every: 'once', start: at, for: LENGTHS[length]! };
  };
  const repeated = (): Period => {
    if (!/^([01]?\d|2[0-3]):[0-5]\d$/.test(start.trim())) throw { detail: `${start || 'the beginning'} is no time of day, expected 22:00` };
    if (every === 'week' && days.length === 0) throw { detail: 'choose a day of the week' };
    const period: Period = { every, at: start.trim(), for: LENGTHS[length]! };
    if (every === 'week') period.days = DAYS.filter((one) => days.includes(one));
    if (every === 'month') {
      if (!/^([1-9]|[12]\d|3[01])$/.test(day)) throw { detail: `${day} is no day of a month` };
      period.day_of_month = Number(day);
    }
    return period;
  };
  return (
    <section aria-labelledby="new-maintenance">
      <h2 id="new-maintenance">New maintenance</h2>
      <Form submit="Begin or plan it" run={run}>
        <Field label="Name of the maintenance" value={name} set={setName} />
        <label class="field">
          <span>Of</span>
          <select value={what} onChange={(event) => setWhat(event.currentTarget.value)}>
            <option value="">choose…</option>
            <optgroup label="Host groups">
              {groups.map((group) => (
                <option key={group} value={`group:${group}`}>
                  {group}
                </option>
              ))}
            </optgroup>
            <optgroup label="Hosts">
              {(hosts.data?.hosts ?? []).map((host) => (
                <option key={host.id} value={`host:${host.host}`}>
                  {host.name}
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        <Field label="Only problems with a tag" value={tags} set={setTags} required={false} hint="scope:backup, several with commas; all of them" />
        <Pick label="Repeats" value={every} options={EVERY} set={setEvery} />
        {every === 'week' && <Several legend="On" all={DAYS} chosen={days} set={setDays} />}
        {every === 'month' && <Field label="Day of the month" value={day} set={setDay} />}
        {every === 'once' ? (
          <Field label="Begins" value={start} set={setStart} required={false} hint={`Like ${localText(serverNow() + 3_600_000, offset)}, in the server's time; empty begins now.`} />
        ) : (
          <Field label="Begins" value={start} set={setStart} hint="Like 22:00, in the server's time" />
        )}
        <Choice label="Lasts" value={length} options={Object.keys(LENGTHS)} set={setLength} />
        <Check label="Collect no values meanwhile" value={noData} set={setNoData} />
      </Form>
    </section>
  );
}
