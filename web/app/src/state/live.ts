// The one stream of live values. Views say what they want to see; the stream is opened again when that changes, when
// the connection was lost, and when the tab comes back to the front. A hidden tab holds no connection.

import { Cell } from './cell.ts';
import { getOverview } from '../api/client.ts';
import type { LiveValue, Overview } from '../api/types.ts';

export type Contact = 'connecting' | 'open' | 'lost';

/** How the stream is doing; the header shows it. */
export const contact = new Cell<Contact>('connecting');

/** The newest overview, for the rail and the Overview page. */
export const overview = new Cell<Overview | null>(null);

/** Counts up when the server says that problems changed. */
export const problemsChanged = new Cell(0);

/** Counts up when values may have been missed, so that charts must be read again. */
export const missed = new Cell(0);

/** Server time minus browser time, milliseconds. */
let clockOffset = 0;

/** serverNow is the server's clock in Unix milliseconds. */
export function serverNow(): number {
  return Date.now() + clockOffset;
}

type Listener = (values: LiveValue[]) => void;

const MAX_ITEMS = 400;
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

class LiveStream {
  private source: EventSource | null = null;
  private wanted = '';
  private attempt = 0;
  private timer = 0;
  private listeners = new Set<Listener>();
  private started = false;

  start(): void {
    if (this.started) return;
    this.started = true;
    document.addEventListener('visibilitychange', this.onVisibility);
    void this.readOverview();
    this.open();
  }

  /** stop ends the stream, when nobody is signed in any more. */
  stop(): void {
    this.started = false;
    document.removeEventListener('visibilitychange', this.onVisibility);
    this.close();
    overview.set(null);
    contact.set('connecting');
  }

  private readonly onVisibility = (): void => (document.hidden ? this.close() : this.resume());

  /** want sets what is streamed beside the overview: a host, a list of items, or nothing. */
  want(query: { host?: string; items?: string[] }): void {
    const params = new URLSearchParams();
    if (query.host !== undefined) params.set('host', query.host);
    else if (query.items !== undefined && query.items.length > 0) params.set('items', query.items.slice(0, MAX_ITEMS).join(','));
    params.set('overview', '1');
    const wanted = params.toString();
    if (wanted === this.wanted) return;
    this.wanted = wanted;
    if (this.started && !document.hidden) this.open();
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** retry connects at once, for the button beside "no contact". */
  retry(): void {
    this.attempt = 0;
    this.resume();
  }

  private resume(): void {
    missed.set(missed.value + 1);
    void this.readOverview();
    this.open();
  }

  private close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private open(): void {
    this.close();
    const source = new EventSource(`/api/live?${this.wanted || 'overview=1'}`);
    this.source = source;
    source.addEventListener('open', () => {
      if (contact.value === 'lost') {
        missed.set(missed.value + 1);
        void this.readOverview();
      }
      this.attempt = 0;
      contact.set('open');
    });
    source.addEventListener('values', (event) => this.onValues(event as MessageEvent<string>));
    source.addEventListener('problems', () => problemsChanged.set(problemsChanged.value + 1));
    source.addEventListener('overview', (event) => accept(JSON.parse((event as MessageEvent<string>).data) as Overview));
    source.addEventListener('error', () => {
      if (this.source === source) this.lost();
    });
  }

  private onValues(event: MessageEvent<string>): void {
    const { values } = JSON.parse(event.data) as { values: LiveValue[] };
    for (const listener of this.listeners) listener(values);
  }

  private lost(): void {
    this.close();
    contact.set('lost');
    // A stream says no reason; a session that is over does, and stops the stream.
    void this.readOverview();
    if (!this.started) return;
    const wait = RETRY_MS[Math.min(this.attempt, RETRY_MS.length - 1)];
    this.attempt++;
    this.timer = window.setTimeout(() => this.open(), wait);
  }

  private async readOverview(): Promise<void> {
    try {
      accept(await getOverview());
    } catch {
      // The views that need it show their own error; the stream tells when contact is back.
    }
  }
}

function accept(next: Overview): void {
  clockOffset = next.time - Date.now();
  overview.set(next);
}

export const live = new LiveStream();
