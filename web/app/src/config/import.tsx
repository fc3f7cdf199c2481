// Import of a file: what it would do first, then doing it.

import { useState } from 'preact/hooks';
import { applyImport, planImport, type Report } from '../api/configuration.ts';
import { plural } from '../format/number.ts';
import { said } from '../part/form.tsx';
import { Refusal } from '../part/notice.tsx';

const MAX_BYTES = 64 << 20;
const MAX_LISTED = 200;

export function Import() {
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [plan, setPlan] = useState<Report | null>(null);
  const [done, setDone] = useState<Report | null>(null);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const work = async (run: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setFailure('');
    try {
      await run();
    } catch (error) {
      setFailure(said(error));
    }
    setBusy(false);
  };
  const look = (content: string): Promise<void> =>
    work(async () => {
      setDone(null);
      setPlan(null);
      setPlan((await planImport(content)).report);
    });
  const choose = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    if (file.size > MAX_BYTES) {
      setFailure(`The file is larger than ${MAX_BYTES >> 20} MiB; export in parts.`);
      return;
    }
    const content = await file.text();
    setName(file.name);
    setText(content);
    await look(content);
  };
  const apply = (): Promise<void> =>
    work(async () => {
      setDone(await applyImport(text));
      setPlan(null);
    });
  return (
    <section aria-label="Import" aria-busy={busy}>
      <p class="muted">A file of hosts and templates in Zabbix's export format, YAML or JSON, versions 5.4 to 7.4. Nothing is changed before you have seen what it does. Nothing that is not in the file is deleted.</p>
      <form onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span>File</span>
        <input type="file" accept=".yaml,.yml,.json" onChange={(event) => void choose(event.currentTarget.files?.[0])} />
      </label>
      <details class="pasted">
        <summary>Or paste it</summary>
        <label class="field text-field">
          <span>Text of the file</span>
          <textarea
            rows={10}
            value={text}
            spellcheck={false}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setName('the pasted text');
            }}
          />
        </label>
        <div class="below">
          <button type="button" disabled={busy || text === ''} onClick={() => void look(text)}>
            Show the plan
          </button>
        </div>
      </details>
      </form>
      {busy && <p class="muted">Reading {name}…</p>}
      <Refusal text={failure} />
      {plan !== null && (
        <>
          <h2>What {name} does</h2>
          <ReportTable report={plan} />
          <div>
            <button type="button" class="primary" disabled={busy || !changes(plan)} onClick={() => void apply()}>
              Import
            </button>{' '}
            {!changes(plan) && <span class="muted">Everything in it is here already.</span>}
          </div>
        </>
      )}
      {done !== null && (
        <>
          <h2>Imported</h2>
          <ReportTable report={done} />
        </>
      )}
    </section>
  );
}

const changes = (report: Report): boolean => report.counts.some((count) => count.created + count.updated + (count.deleted ?? 0) > 0);

export function ReportTable({ report }: { report: Report }) {
  const objects = report.objects ?? [];
  return (
    <>
      <table class="list figures">
        <caption class="unseen">Objects by kind</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            {['Created', 'Updated', 'Unchanged', 'Refused'].map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.counts.map((count) => (
            <tr key={count.kind}>
              <td>{count.kind}</td>
              <td class="number">{count.created}</td>
              <td class="number">{count.updated}</td>
              <td class="number">{count.unchanged}</td>
              <td class={count.refused ? 'number problem-text' : 'number'}>{count.refused ?? 0}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {report.remarks.length > 0 && (
        <details open={report.remarks.some((one) => one.refused)}>
          <summary>{plural(report.remarks.length + (report.more_remarks ?? 0), 'remark')}</summary>
          <ul class="remarks">
            {report.remarks.slice(0, MAX_LISTED).map((one, n) => (
              <li key={n} class={one.refused ? 'problem-text' : undefined}>
                <span class="muted">line {one.line}</span> {one.path}: {one.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
      {objects.length > 0 && (
        <details>
          <summary>{plural(objects.length, 'object')} by name</summary>
          <ul class="remarks">
            {objects.slice(0, MAX_LISTED).map((one, n) => (
              <li key={n}>
                {one.what} <span class="muted">{one.kind}</span> {one.owner !== undefined && `${one.owner}: `}
                {one.name}
              </li>
            ))}
          </ul>
          {objects.length > MAX_LISTED && <p class="muted">The first {MAX_LISTED}.</p>}
        </details>
      )}
    </>
  );
}
