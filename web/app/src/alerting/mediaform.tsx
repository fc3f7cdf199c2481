// The forms of media types and receivers, and the import of Zabbix's media types.

import { useState } from 'preact/hooks';
import { type Alerting, importMedia, type Media, putAlerting, type Receiver, type Way } from '../api/alerting.ts';
import { SEVERITIES } from '../api/types.ts';
import { Check, Field, Form } from '../part/form.tsx';
import { type Kind, KINDS, kindOf, mediaProblems, newMedia, receiverProblems } from './draft.ts';
import { Area, Lines, Pick, Problems, Several } from './lines.tsx';

interface MediaProps {
  alerting: Alerting;
  media: Media;
  fresh: boolean;
  done: (saved: boolean) => void;
}

export function MediaForm({ alerting, media, fresh, done }: MediaProps) {
  const [draft, setDraft] = useState<Media>(structuredClone(media));
  const [body, setBody] = useState(media.webhook === undefined ? '' : JSON.stringify(media.webhook.body ?? {}, null, 2));
  const kind = kindOf(draft);
  const put = (change: Partial<Media>): void => setDraft({ ...draft, ...change });
  const choose = (next: Kind): void => {
    const made = newMedia(draft.name, next);
    setDraft({ ...made, secrets: draft.secrets });
    setBody(made.webhook === undefined ? '' : JSON.stringify(made.webhook.body, null, 2));
  };
  const problems = mediaProblems(draft, body);
  const [tried, setTried] = useState(!fresh);
  const run = async (): Promise<void> => {
    setTried(true);
    if (problems.length > 0) throw { detail: 'Put right what is named above first.' };
    if (fresh && (alerting.media ?? []).some((one) => one.name === draft.name)) throw { detail: `there is a media type ${draft.name} already; choose another name` };
    const saved = { ...draft };
    if (saved.webhook !== undefined) saved.webhook = { ...saved.webhook, body: body.trim() === '' ? undefined : (JSON.parse(body) as unknown) };
    await putAlerting({ media: [saved] });
    done(true);
  };
  return (
    <section aria-label={fresh ? 'New media type' : `Media type ${media.name}`} class="form-section">
      <h2>{fresh ? 'New media type' : `Media type ${media.name}`}</h2>
      <Form submit="Save media type" tried={() => setTried(true)} run={run} cancel={() => done(false)}>
        {fresh && <Field label="Name of the media type" value={draft.name} set={(name) => put({ name })} />}
        {fresh && <Pick label="Kind" value={kind} options={KINDS} set={(next) => choose(next as Kind)} />}
        {draft.mail !== undefined && <MailFields media={draft} put={put} />}
        {draft.webhook !== undefined && (
          <>
            <Field label="URL" value={draft.webhook.url} set={(url) => put({ webhook: { ...draft.webhook!, url } })} hint="{ALERT.SENDTO} when each receiver has an address of its own" />
            <Pick label="Method" value={draft.webhook.method || 'POST'} options={{ POST: 'POST', PUT: 'PUT', PATCH: 'PATCH', GET: 'GET' }} set={(method) => put({ webhook: { ...draft.webhook!, method } })} />
            <Pairs legend="Header" pairs={draft.webhook.headers} set={(headers) => put({ webhook: { ...draft.webhook!, headers } })} />
            <Area label="Body (JSON)" value={body} set={setBody} rows={8} hint="Macros in its texts are expanded: {ALERT.SUBJECT}, {EVENT.ID}, {SECRET.NAME} …" />
            <Networks value={draft.webhook.allow} set={(allow) => put({ webhook: { ...draft.webhook!, allow } })} />
          </>
        )}
        {draft.zabbix_webhook !== undefined && <ScriptFields media={draft} put={put} />}
        {draft.command !== undefined && (
          <>
            <Field label="Command" value={draft.command.line} set={(line) => put({ command: { line } })} hint="A line for the shell of the problem's host; of macros only {EVENT.ID}, {EVENT.VALUE}, {EVENT.NSEVERITY}, {EVENT.TIMESTAMP}, {ALERT.KIND} and {HOST.ID}" />
            <p class="muted">The agent must allow system.run. Give a receiver this media type with the address host, and name the receiver in the steps of an action. Only administrators add and change commands.</p>
          </>
        )}
        {draft.script !== undefined && (
          <>
            <Field label="Program" value={draft.script.name} set={(name) => put({ script: { ...draft.script!, name } })} hint="A file in the folder alertscripts of the data folder" />
            <Lines<string> legend="Argument" list={draft.script.arguments ?? []} add="Add an argument" fresh={() => '{ALERT.MESSAGE}'} set={(list) => put({ script: { ...draft.script!, arguments: list } })}
              line={(one, set, i) => <Field label={`Argument ${i + 1}`} value={one} set={set} />} />
          </>
        )}
        <Pairs legend="Secret" pairs={draft.secrets} secret set={(secrets) => put({ secrets })} />
        <Check label="Each problem and each recovery by itself (tickets)" value={draft.ticket ?? false} set={(ticket) => put({ ticket })} />
        <Check label="Disabled" value={draft.disabled ?? false} set={(disabled) => put({ disabled })} />
        <details>
          <summary>Times and limits</summary>
          <div class="form-line">
            <Field label="Wait for company" value={draft.group_wait ?? ''} set={(group_wait) => put({ group_wait })} required={false} hint="10s when empty" />
            <Field label="Time between messages" value={draft.group_interval ?? ''} set={(group_interval) => put({ group_interval })} required={false} hint="1m when empty" />
            <Field label="Timeout" value={draft.timeout ?? ''} set={(timeout) => put({ timeout })} required={false} hint="30s when empty" />
            <Count label="Attempts" value={draft.attempts} set={(attempts) => put({ attempts })} hint="10 when empty" />
            <Count label="At the same time" value={draft.sessions} set={(sessions) => put({ sessions })} hint="4 when empty" />
          </div>
        </details>
        {tried && <Problems list={problems} />}
      </Form>
    </section>
  );
}

function MailFields({ media, put }: { media: Media; put: (change: Partial<Media>) => void }) {
  const mail = media.mail!;
  const set = (change: Partial<typeof mail>): void => put({ mail: { ...mail, ...change } });
  return (
    <>
      <Field label="Server" value={mail.server} set={(server) => set({ server })} hint="mail.example.com:587" />
      <Pick label="Protection" value={mail.security || 'starttls'} options={{ starttls: 'STARTTLS', tls: 'TLS from the start', none: 'none' }} set={(security) => set({ security })} />
      <Field label="From" value={mail.from} set={(from) => set({ from })} hint="Tidemark <tidemark@example.com>" />
      <Field label="User" value={mail.user ?? ''} set={(user) => set({ user })} required={false} hint="Its password is the secret PASSWORD" />
      <Check label="Messages are HTML" value={mail.html ?? false} set={(html) => set({ html })} />
    </>
  );
}

function ScriptFields({ media, put }: { media: Media; put: (change: Partial<Media>) => void }) {
  const hook = media.zabbix_webhook!;
  const set = (change: Partial<typeof hook>): void => put({ zabbix_webhook: { ...hook, ...change } });
  return (
    <>
      <Pairs legend="Parameter" pairs={hook.parameters} set={(parameters) => set({ parameters })} />
      <Area label="Script" value={hook.script} set={(script) => set({ script })} rows={12} hint="The body of a function of value, the parameters as JSON; it throws when it fails" />
      <Check label="What it returns has tags for the event" value={hook.tags ?? false} set={(tags) => set({ tags })} />
      <Networks value={hook.allow} set={(allow) => set({ allow })} />
    </>
  );
}

function Networks({ value, set }: { value: string[] | undefined; set: (list: string[] | undefined) => void }) {
  const [text, setText] = useState((value ?? []).join(', '));
  const take = (next: string): void => {
    setText(next);
    const list = next.split(/[\s,]+/).filter(Boolean);
    set(list.length === 0 ? undefined : list);
  };
  return <Field label="Networks inside that it may reach" value={text} set={take} required={false} hint="10.0.0.0/8, 192.0.2.7; others must be public" />;
}

function Count({ label, value, set, hint }: { label: string; value: number | undefined; set: (n: number | undefined) => void; hint: string }) {
  return <Field label={label} value={value === undefined ? '' : String(value)} set={(text) => set(/^\d+$/.test(text) ? Number(text) : undefined)} required={false} hint={hint} />;
}

interface PairsProps {
  legend: string;
  pairs: Record<string, string> | undefined;
  secret?: boolean;
  set: (pairs: Record<string, string> | undefined) => void;
}

function Pairs({ legend, pairs, secret = false, set }: PairsProps) {
  const [list, setList] = useState(Object.entries(pairs ?? {}).sort(([a], [b]) => a.localeCompare(b)));
  const take = (next: [string, string][]): void => {
    setList(next);
    const named = next.filter(([name]) => name.trim() !== '');
    set(named.length === 0 ? undefined : Object.fromEntries(named));
  };
  return (
    <Lines<[string, string]> legend={legend} list={list} add={`Add a ${legend.toLowerCase()}`} fresh={() => ['', '']} set={take}
      line={([name, value], put, i) => (
        <>
          <Field label={`${legend} ${i + 1}`} value={name} set={(next) => put([next, value])} />
          <Field label="Value" value={value} type={secret ? 'password' : 'text'} set={(next) => put([name, next])} required={false} {...(secret ? { hint: '******** keeps it' } : {})} />
        </>
      )} />
  );
}

interface ReceiverProps {
  alerting: Alerting;
  receiver: Receiver;
  fresh: boolean;
  done: (saved: boolean) => void;
}

export function ReceiverForm({ alerting, receiver, fresh, done }: ReceiverProps) {
  const [draft, setDraft] = useState<Receiver>(structuredClone(receiver));
  const media = (alerting.media ?? []).map((one) => one.name);
  const problems = receiverProblems(draft);
  const [tried, setTried] = useState(!fresh);
  const run = async (): Promise<void> => {
    setTried(true);
    if (problems.length > 0) throw { detail: 'Put right what is named above first.' };
    if (fresh && (alerting.receivers ?? []).some((one) => one.name === draft.name)) throw { detail: `there is a receiver ${draft.name} already; choose another name` };
    await putAlerting({ receivers: [draft] });
    done(true);
  };
  return (
    <section aria-label={fresh ? 'New receiver' : `Receiver ${receiver.name}`} class="form-section">
      <h2>{fresh ? 'New receiver' : `Receiver ${receiver.name}`}</h2>
      <Form submit="Save receiver" tried={() => setTried(true)} run={run} cancel={() => done(false)}>
        {fresh && <Field label="Name of the receiver" value={draft.name} set={(name) => setDraft({ ...draft, name })} />}
        <Lines<Way> legend="Way" list={draft.media} add="Add a way" fresh={() => ({ media: media[0] ?? '', to: '' })} set={(list) => setDraft({ ...draft, media: list })}
          line={(one, put) => (
            <>
              <Pick label="Over" value={one.media} options={Object.fromEntries(media.map((name) => [name, name]))} set={(name) => put({ ...one, media: name })} />
              <Field label="Address" value={one.to} set={(to) => put({ ...one, to })} />
              <Field label="Only at" value={one.when ?? ''} set={(when) => put({ ...one, when: when === '' ? undefined : when })} required={false} hint="1-5,08:00-20:00" />
              <Several legend="Only" all={SEVERITIES} chosen={one.severities ?? []} set={(list) => put({ ...one, severities: list as Way['severities'] })} />
              <Check label="Off" value={one.disabled ?? false} set={(disabled) => put({ ...one, disabled })} />
            </>
          )} />
        {tried && <Problems list={problems} />}
      </Form>
    </section>
  );
}

/** ImportMedia takes media types from a file of Zabbix. */
export function ImportMedia({ done }: { done: () => void }) {
  const [text, setText] = useState('');
  const [remarks, setRemarks] = useState<string[] | null>(null);
  const read = (event: Event): void => {
    const file = (event.currentTarget as HTMLInputElement).files?.[0];
    if (file !== undefined) void file.text().then(setText);
  };
  const run = async (): Promise<void> => {
    setRemarks((await importMedia(text)).remarks ?? []);
    done();
  };
  return (
    <section aria-labelledby="import-title">
      <h2 id="import-title">Import from Zabbix</h2>
      <Form submit="Import media types" run={run}>
        <label class="field">
          <span>File</span>
          <input type="file" accept=".yaml,.yml,.json" onChange={read} />
        </label>
        <Area label="Export of media types (YAML or JSON)" value={text} set={setText} rows={5} />
      </Form>
      {remarks !== null && (
        <div role="status">
          <p>Imported.</p>
          <ul>{remarks.map((one) => <li key={one}>{one}</li>)}</ul>
        </div>
      )}
    </section>
  );
}
