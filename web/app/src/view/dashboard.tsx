// One dashboard: looked at, edited, as it was.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, getHost, getHosts, getItems } from '../api/client.ts';
import { type Dashboard, deleteDashboard, getDashboard, type SavedDashboard, saveDashboard, type Widget } from '../api/dashboards.ts';
import type { Host, Item } from '../api/types.ts';
import { Board } from '../chart/board.ts';
import { Choices, useChoices } from '../dashboard/choices.tsx';
import { dashboardOf } from '../dashboard/fromhost.ts';
import { bottomOf, compacted, inOrder, placed } from '../dashboard/grid.ts';
import { Grid } from '../dashboard/grid.tsx';
import { SettingsForm } from '../dashboard/settings.tsx';
import { ItemSource } from '../dashboard/source.ts';
import { tidy } from '../dashboard/tidy.ts';
import { Versions } from '../dashboard/versions.tsx';
import { refreshOf, type Surroundings } from '../dashboard/widget.tsx';
import { SIZES, WidgetForm } from '../dashboard/widgetform.tsx';
import { isCounter } from '../item/reading.ts';
import { said, Sure } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLoad, useTitle } from '../part/load.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { live } from '../state/live.ts';
import { mayEditSome, me } from '../state/me.ts';
import { go, href, route, setParams } from '../state/route.ts';
import { dateTime } from '../time/clock.ts';
import { rangeFromParams } from '../time/range.ts';

const MAX_HOSTS = 10_000;
const MAX_HOST_ITEMS = 10_000;
const NEW: Dashboard = { name: '', widgets: [] };

// Who is no editor makes dashboards of their own.
const mine = (dashboard: Dashboard): Dashboard => (mayEditSome(me.value) ? dashboard : { ...dashboard, private: true });

export function DashboardView({ id }: { id: string }) {
  const { params } = useCell(route);
  const version = params.get('version') ?? '';
  const from = params.get('from-host') ?? '';
  const hosts = useLoad((signal) => getHosts({ limit: MAX_HOSTS }, signal), []);
  const loaded = useLoad<{ saved: SavedDashboard | null; dashboard: Dashboard }>(
    async (signal) => {
      if (id !== 'new') {
        const saved = await getDashboard(id, version, signal);
        return { saved, dashboard: saved.dashboard };
      }
      if (from === '') return { saved: null, dashboard: mine(NEW) };
      const [host, items] = await Promise.all([getHost(from, signal), getItems({ host: from, limit: MAX_HOST_ITEMS }, signal)]);
      return { saved: null, dashboard: mine(dashboardOf(host, items.items)) };
    },
    [id, version, from],
  );
  useTitle(loaded.data?.dashboard.name || 'Dashboard');
  if (loaded.error !== null) return <Failure error={loaded.error} retry={loaded.reload} />;
  if (hosts.error !== null) return <Failure error={hosts.error} retry={hosts.reload} />;
  if (loaded.data === null || hosts.data === null || loaded.loading) return <div class="page loading" />;
  return <Opened key={`${id} ${loaded.data.saved?.version ?? 0}`} id={id} saved={loaded.data.saved} dashboard={loaded.data.dashboard} hosts={hosts.data.hosts} reload={loaded.reload} />;
}

interface OpenedProps {
  id: string;
  saved: SavedDashboard | null;
  dashboard: Dashboard;
  hosts: Host[];
  reload: () => void;
}

function Opened({ id, saved, dashboard, hosts, reload }: OpenedProps) {
  const { params } = useCell(route);
  const [draft, setDraft] = useState<Dashboard | null>(saved === null ? dashboard : null);
  const [failure, setFailure] = useState('');
  const shown = draft ?? dashboard;
  const { choices, values, empty } = useChoices(shown.variables ?? [], hosts, params);
  const around = { ...useSurroundings(shown, hosts, draft !== null), empty };
  const [form, setForm] = useState<number | 'new' | 'settings' | null>(saved === null && dashboard.name === '' ? 'settings' : null);
  useLeaving(draft !== null && draft !== dashboard);
  useEffect(() => {
    if (dashboard.range !== undefined && rangeFromParams(params).kind === 'auto') setParams({ last: dashboard.range });
  }, []);
  const changes = saved === null || saved.editable;
  const kiosk = params.get('kiosk') === '1';
  const old = saved !== null && saved.version !== saved.newest;
  const restore = async (version: number): Promise<void> => {
    try {
      const before = await getDashboard(id, String(version));
      await saveDashboard(id, saved!.newest, `restored version ${version}`, before.dashboard);
      setFailure('');
      if (params.has('version')) setParams({ version: '' });
      else reload();
    } catch (error) {
      setFailure(said(error));
    }
  };
  const setWidgets = (widgets: Widget[]): void => setDraft({ ...shown, widgets });
  const done = (widget: Widget): void => {
    const at = form === 'new' ? shown.widgets.length : (form as number);
    const widgets = form === 'new' ? [...shown.widgets, widget] : shown.widgets.map((one, n) => (n === at ? widget : one));
    setWidgets(placed(widgets, at, widget));
    setForm(null);
  };
  return (
    <div class="page dashboard">
      {!kiosk && (
        <div class="title-line">
          <h1>{shown.name || 'New dashboard'}</h1>
          {shown.description !== undefined && <span class="muted">{shown.description}</span>}
          {draft === null && saved !== null && <Actions id={id} saved={saved} changes={changes && !old} edit={() => setDraft(dashboard)} failed={setFailure} />}
        </div>
      )}
      {old && (
        <p class="notice">
          This is version {saved.version} of {saved.newest}, saved {dateTime(saved.saved_at)} by {saved.saved_by}. <Link to={`/dashboards/${id}`}>Back to the newest</Link>
          {changes && (
            <button type="button" class="small" onClick={() => void restore(saved.version)}>
              Restore this version
            </button>
          )}
        </p>
      )}
      {failure !== '' && (
        <p class="problem-text" role="alert">
          {failure}
        </p>
      )}
      {draft !== null && (
        <EditBar
          id={id}
          saved={saved}
          draft={draft}
          add={() => setForm('new')}
          settings={() => setForm('settings')}
          cancel={() => (saved === null ? go(href('/dashboards')) : (setDraft(null), setFailure('')))}
          reload={reload}
        />
      )}
      {(shown.variables ?? []).length > 0 && <Choices variables={shown.variables!} choices={choices} values={values} empty={empty} hosts={hosts} />}
      {shown.widgets.length === 0 && <NoWidgets edits={draft !== null} changes={changes} />}
      <Grid widgets={draft === null ? compacted(shown.widgets) : draft.widgets} values={values} around={around} edit={draft === null ? undefined : { change: setWidgets, open: setForm }} />
      {params.get('versions') === '1' && saved !== null && draft === null && !kiosk && <Versions id={id} shown={saved.version} newest={saved.newest} restore={changes ? (version) => void restore(version) : undefined} />}
      {(form === 'new' || typeof form === 'number') && (
        <WidgetForm
          widget={form === 'new' ? newWidget(shown) : shown.widgets[form]}
          isNew={form === 'new'}
          hosts={hosts}
          variables={shown.variables ?? []}
          done={done}
          close={() => setForm(null)}
        />
      )}
      {form === 'settings' && <SettingsForm dashboard={shown} hosts={hosts} done={(next) => (setDraft(next), setForm(null))} close={() => setForm(null)} />}
    </div>
  );
}

function newWidget(dashboard: Dashboard): Widget {
  const [w, h] = SIZES.chart;
  const host = (dashboard.variables ?? []).find((one) => one.kind === 'host');
  return { kind: 'chart', x: 0, y: bottomOf(dashboard.widgets), w, h, items: [{ host: host === undefined ? '' : `$${host.name}`, key: '' }] };
}

function NoWidgets({ edits, changes }: { edits: boolean; changes: boolean }) {
  return (
    <Empty title="There is nothing on this dashboard yet.">
      <p class="muted">{edits ? 'Add a widget: a chart, a number, a table, problems, text.' : changes ? 'Edit it and add widgets.' : 'Its owner can add widgets.'}</p>
    </Empty>
  );
}

// useSurroundings keeps the board of the charts and what is streamed to them.
function useSurroundings(dashboard: Dashboard, hosts: Host[], editing: boolean): Omit<Surroundings, 'empty'> {
  const board = useMemo(() => new Board(), []);
  const source = useMemo(() => new ItemSource(), []);
  const watched = useRef(new Map<string, Item[]>());
  useEffect(() => {
    board.start();
    return () => board.stop();
  }, [board]);
  const timer = useRef(0);
  const watch = useMemo(
    () => (id: string, items: Item[]) => {
      watched.current.set(id, items);
      clearTimeout(timer.current);
      // Widgets find their items one after the other; one stream is opened for all.
      timer.current = window.setTimeout(() => {
        const all = [...watched.current.values()].flat();
        board.setCounters(new Set(all.filter(isCounter).map((item) => item.id)));
        live.want({ items: [...new Set(all.map((item) => item.id))].sort() });
      }, 200);
    },
    [board],
  );
  useEffect(() => {
    live.want({});
    return () => clearTimeout(timer.current);
  }, []);
  const refreshMs = refreshOf(dashboard);
  return useMemo(() => ({ board, source, hosts, refreshMs, editing, watch }), [hosts, refreshMs, editing]);
}

// useLeaving asks before a draft is lost with its window.
function useLeaving(changed: boolean): void {
  useEffect(() => {
    if (!changed) return;
    const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [changed]);
}

interface ActionsProps {
  id: string;
  saved: SavedDashboard;
  changes: boolean;
  edit: () => void;
  failed: (text: string) => void;
}

function Actions({ id, saved, changes, edit, failed }: ActionsProps) {
  const { params } = useCell(route);
  const open = params.get('versions') === '1';
  return (
    <span class="title-end actions">
      {changes && (
        <button type="button" class="small" onClick={edit}>
          Edit
        </button>
      )}
      <button type="button" class="small" aria-pressed={open} onClick={() => setParams({ versions: open ? '' : '1' })}>
        Version {saved.version}
      </button>
      <a class="button small" href={`/api/dashboard-file?name=${encodeURIComponent(saved.name)}`} download={`${saved.name}.yaml`}>
        Export
      </a>
      <button type="button" class="small" title="Only the widgets; Escape comes back" onClick={() => setParams({ kiosk: '1' }, false)}>
        Kiosk
      </button>
      {changes && (
        <Sure
          label="Delete"
          again="Really delete it"
          failed={failed}
          run={async () => {
            await deleteDashboard(id);
            go(href('/dashboards'));
          }}
        />
      )}
    </span>
  );
}

interface BarProps {
  id: string;
  saved: SavedDashboard | null;
  draft: Dashboard;
  add: () => void;
  settings: () => void;
  cancel: () => void;
  reload: () => void;
}

function EditBar({ id, saved, draft, add, settings, cancel, reload }: BarProps) {
  const [note, setNote] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  const [conflict, setConflict] = useState<number | null>(null);
  const save = async (base: number): Promise<void> => {
    setBusy(true);
    setFailure('');
    try {
      const order = inOrder(draft.widgets);
      const head = await saveDashboard(saved === null ? '' : id, base, note, tidy({ ...draft, widgets: order.map((n) => draft.widgets[n]) }));
      setConflict(null);
      if (saved === null) go(href(`/dashboards/${head.id}`));
      else reload();
    } catch (error) {
      setFailure(said(error));
      if (error instanceof ApiError && error.status === 409) setConflict((await getDashboard(id, '').catch(() => null))?.newest ?? null);
    }
    setBusy(false);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    void save(saved?.version ?? 0);
  };
  return (
    <form class="filters edit-bar" onSubmit={submit}>
      <button type="button" onClick={add}>
        Add a widget
      </button>
      <button type="button" onClick={settings}>
        Name and variables
      </button>
      {saved !== null && <input value={note} maxLength={200} placeholder="What did you change?" aria-label="Note for this version" onInput={(event) => setNote(event.currentTarget.value)} />}
      <button type="submit" disabled={busy || draft.name.trim() === ''} title={draft.name.trim() === '' ? 'Give it a name first' : ''}>
        Save
      </button>
      <button type="button" onClick={cancel}>
        Cancel
      </button>
      <span class="muted edit-hint">Drag a widget by its bar and by its corner, or focus it: arrows move, with Shift they resize.</span>
      {failure !== '' && (
        <p class="problem-text edit-failure" role="alert">
          {failure}
        </p>
      )}
      {conflict !== null && (
        <p class="edit-failure">
          <a class="button small" href={href(`/dashboards/${id}`)} target="_blank" rel="noopener">
            Look at version {conflict}
          </a>{' '}
          <button type="button" class="small danger" disabled={busy} onClick={() => void save(conflict)}>
            Save mine over it
          </button>
        </p>
      )}
    </form>
  );
}
