// The frame around every view: header, rail, and the one column of content.

import { useEffect, useRef, useState } from 'preact/hooks';
import { SEVERITIES } from '../api/types.ts';
import { Icon, Mark, SeverityShape } from '../part/icon.tsx';
import { Lazy } from '../part/lazy.tsx';
import { Link } from '../part/link.tsx';
import { waiting } from '../part/load.ts';
import { Empty, NotYours } from '../part/notice.tsx';
import { RangePicker } from '../part/rangepicker.tsx';
import { Search, SearchButton } from '../part/search.tsx';
import { ShadowNotice } from '../part/shadow.tsx';
import { useCell } from '../state/cell.ts';
import { contact, live, overview } from '../state/live.ts';
import { route, setParams } from '../state/route.ts';
import { me } from '../state/me.ts';
import { setTheme, type Theme, theme } from '../state/theme.ts';
import { currentRange, setLive } from '../state/window.ts';
import { zone } from '../time/zone.ts';
import { DashboardsView } from './dashboards.tsx';
import { HostView } from './host.tsx';
import { HostsView } from './hosts.tsx';
import { ItemView } from './item.tsx';
import { OverviewView } from './overview.tsx';
import { type Page, PAGES, pageOf } from './pages.ts';
import { ProblemsView } from './problems.tsx';
import { SignInView, WelcomeView } from './signin.tsx';
import { UserMenu } from './usermenu.tsx';
import { ValuesView } from './values.tsx';

export function Shell() {
  const { path, params } = useCell(route);
  const signedOut = useCell(me) === null; // there is nothing to look for, and no page to go to
  const clocks = useCell(zone); // all times are written anew when it changes
  const kiosk = params.get('kiosk') === '1' && path.startsWith('/dashboards/');
  useKiosk(kiosk);
  useEffect(() => {
    // A host and an item say their own name once they have it.
    if (/^\/(hosts|items|dashboards)\/(\d+|new)(\/|$)/.test(path)) return;
    document.title = `${pageOf(path)?.title ?? 'Not found'} · Tidemark`;
  }, [path]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="brand" label="Tidemark, overview">
          <Mark />
          <span>Tidemark</span>
        </Link>
        {!signedOut && <SearchButton />}
        <div class="top-right">
          {!signedOut && <RangePicker />}
          {!signedOut && <LiveToggle />}
          <ThemeButton />
          {!signedOut && <UserMenu />}
        </div>
      </header>
      {!signedOut && <Rail path={path} />}
      <main id="content" tabIndex={-1}>
        <Waiting />
        <Notice path={path} />
        <View key={clocks} path={path} />
      </main>
      <Search />
      {kiosk && (
        <button type="button" class="kiosk-leave" onClick={() => setParams({ kiosk: '' }, false)}>
          Leave kiosk (Esc)
        </button>
      )}
    </>
  );
}

// useKiosk shows a dashboard without header and rail; Escape comes back.
function useKiosk(on: boolean): void {
  useEffect(() => {
    document.documentElement.classList.toggle('kiosk', on);
    if (!on) return;
    const leave = (event: KeyboardEvent): void => void (event.key === 'Escape' && setParams({ kiosk: '' }, false));
    addEventListener('keydown', leave);
    return () => removeEventListener('keydown', leave);
  }, [on]);
}

const configurationView = async () => (await import('../config/view.tsx')).ConfigurationView;
const serverView = async () => (await import('./server.tsx')).ServerView;
const dashboardView = async () => (await import('./dashboard.tsx')).DashboardView;
const requestsView = async () => (await import('./requests.tsx')).RequestsView;
const exploreView = async () => (await import('./explore.tsx')).ExploreView;
const alertingView = async () => (await import('./alerting.tsx')).AlertingView;
const storageView = async () => (await import('./storage.tsx')).StorageView;
const accountView = async () => (await import('./account.tsx')).AccountView;
const auditView = async () => (await import('./audit.tsx')).AuditView;
const usersView = async () => (await import('./users.tsx')).UsersView;
const ALERTING_TABS = ['', 'actions', 'media', 'maintenance', 'text'];

// Waiting says that something is on its way; the style sheet lets it appear only when that takes long.
function Waiting() {
  return useCell(waiting) > 0 ? (
    <p class="waiting" aria-live="polite">
      Loading…
    </p>
  ) : null;
}

function Notice({ path }: { path: string }) {
  const who = useCell(me);
  return who ? <ShadowNotice path={path} /> : null;
}

function View({ path }: { path: string }) {
  const who = useCell(me);
  const [, first, id, tab] = path.split('/');
  if (path === '/welcome') return <WelcomeView />;
  if (who === undefined) return null;
  if (who === null) return <SignInView />;
  if (path === '/') return <OverviewView />;
  if (path === '/problems') return <ProblemsView />;
  if (path === '/hosts') return <HostsView />;
  if (path === '/hosts/values') return <ValuesView />;
  if (first === 'hosts' && /^\d+$/.test(id ?? '')) return <HostView key={id} id={id} tab={tab ?? ''} />;
  if (first === 'items' && /^\d+$/.test(id ?? '')) return <ItemView key={id} id={id} />;
  if (path === '/requests') return <Lazy load={requestsView} props={{}} />;
  if (path === '/explore') return <Lazy load={exploreView} props={{}} />;
  if (path === '/dashboards') return <DashboardsView />;
  if (first === 'dashboards' && /^(\d+|new)$/.test(id ?? '') && tab === undefined) return <Lazy key={id} load={dashboardView} props={{ id: id! }} />;
  if (path === '/server') return <Lazy load={serverView} props={{}} />;
  if (first === 'alerting' && ALERTING_TABS.includes(id ?? '') && tab === undefined) return <Lazy key={`alerting ${id}`} load={alertingView} props={{ tab: id ?? '' }} />;
  if (first === 'configuration') return <Lazy load={configurationView} props={{ path }} />;
  const needed = pageOf(path)?.role;
  if (needed !== undefined && needed !== who.role) return <div class="page"><h1>{pageOf(path)!.title}</h1><NotYours role={needed} /></div>;
  if (path === '/storage') return <Lazy load={storageView} props={{}} />;
  if (path === '/account') return <Lazy load={accountView} props={{}} />;
  if (path === '/audit') return <Lazy load={auditView} props={{}} />;
  if (first === 'users' && ['', 'groups', 'tokens'].includes(id ?? '') && tab === undefined) return <Lazy key={`users ${id}`} load={usersView} props={{ tab: id ?? '' }} />;
  return (
    <Empty title="There is no such page.">
      <p>
        <Link to="/">Go to the overview</Link>
      </p>
    </Empty>
  );
}

// So many pages have a place of their own in the bar of a phone; the others are behind "More".
const IN_BAR = 4;

function Rail({ path }: { path: string }) {
  const who = useCell(me);
  const here = pageOf(path);
  const [open, setOpen] = useState(false);
  const place = useRef<HTMLElement>(null);
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event): void => void (place.current?.contains(event.target as Node) || setOpen(false));
    addEventListener('pointerdown', away);
    return () => removeEventListener('pointerdown', away);
  }, [open]);
  const close = (): void => {
    setOpen(false);
    place.current?.querySelector<HTMLElement>('.rail-more')?.focus();
  };
  const pages = PAGES.filter((page) => page.role === undefined || page.role === who?.role);
  const rest = pages.slice(IN_BAR);
  return (
    <nav class="rail" aria-label="Pages" ref={place} onKeyDown={(event) => open && event.key === 'Escape' && close()}>
      {pages.slice(0, IN_BAR).map((page) => (
        <RailLink key={page.path} page={page} here={here} />
      ))}
      <div class={open ? 'rail-rest open' : 'rail-rest'} id="rail-rest">
        {rest.map((page) => (
          <RailLink key={page.path} page={page} here={here} />
        ))}
      </div>
      <button type="button" class={here !== undefined && rest.includes(here) ? 'rail-link rail-more current' : 'rail-link rail-more'} aria-expanded={open} aria-controls="rail-rest" onClick={() => setOpen(!open)}>
        <Icon name="more" />
        <span class="rail-title">More</span>
      </button>
    </nav>
  );
}

function RailLink({ page, here }: { page: Page; here: Page | undefined }) {
  const state = useCell(overview);
  const open = state === null ? 0 : SEVERITIES.reduce((sum, severity) => sum + (state.problems[severity] ?? 0), 0);
  const worst = SEVERITIES.find((severity) => (state?.problems[severity] ?? 0) > 0);
  return (
    <Link to={page.path} class={page.second ? 'rail-link second' : 'rail-link'} current={page === here} title={page.title}>
      <Icon name={page.icon} />
      <span class="rail-title">{page.title}</span>
      {page.path === '/problems' && open > 0 && (
        <b class="rail-count" title={`${open} open, worst is ${worst}`}>
          <SeverityShape severity={worst!} />
          {open}
        </b>
      )}
    </Link>
  );
}

function LiveToggle() {
  useCell(route);
  const state = useCell(contact);
  const on = currentRange().kind !== 'span';
  if (state === 'lost') {
    return (
      <button type="button" class="quiet live lost" title="The server cannot be reached; trying again" onClick={() => live.retry()}>
        <i class="dot" />
        <span>no contact</span>
      </button>
    );
  }
  return (
    <button type="button" class={on ? 'quiet live on' : 'quiet live'} aria-pressed={on} title={on ? 'Hold the picture' : 'Follow the present'} onClick={() => setLive(!on)}>
      <i class="dot" />
      <span>{on ? 'live' : 'paused'}</span>
    </button>
  );
}

const NEXT_THEME: Record<Theme, Theme> = { auto: 'light', light: 'dark', dark: 'auto' };

function ThemeButton() {
  const now = useCell(theme);
  return (
    <button type="button" class="quiet theme" title={`Theme: ${now}`} aria-label={`Theme: ${now}. Change to ${NEXT_THEME[now]}`} onClick={() => setTheme(NEXT_THEME[now])}>
      <Icon name={now} />
    </button>
  );
}
