// Testing an item: its value now, and what each step makes of it. Nothing is stored.

import { useEffect, useState } from 'preact/hooks';
import { getHosts } from '../api/client.ts';
import { type Kind, testItem, type Tested } from '../api/configuration.ts';
import { said } from '../part/form.tsx';
import { useLater, useLoad } from '../part/load.ts';
import { type Doc, type Fields, list, text } from './document.ts';
import { canBeAsked } from './fields.ts';
import { Text } from './parts.tsx';
import { Refusal } from '../part/notice.tsx';

/** HostChoice is the field for the host on which something of a template is tried. */
export function HostChoice({ value, set }: { value: string; set: (value: string) => void }) {
  const search = useLater(value, 200);
  const hosts = useLoad((signal) => getHosts({ search, limit: 20 }, signal), [search]);
  return <Text label="On the host" value={value} set={set} known={hosts.data?.hosts.map((host) => host.host) ?? []} hint="The technical name of a host that the template is linked to." />;
}

export function TryItem({ kind, doc, technical, item }: { kind: Kind; doc: Doc; technical: string; item: Fields }) {
  const [host, setHost] = useState(kind === 'host' ? technical : '');
  const [value, setValue] = useState('');
  const [previous, setPrevious] = useState('');
  const [result, setResult] = useState<Tested | null>(null);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const key = text(item, 'key');
  // What a test said is of the item as it was.
  useEffect(() => {
    setResult(null);
    setFailure('');
  }, [JSON.stringify(item), host]);
  const looksBack = list(item, 'preprocessing').some((step) => /CHANGE|DISCARD/.test(text(step, 'type')));
  const run = async (now: boolean): Promise<void> => {
    setBusy(true);
    setFailure('');
    try {
      const got = await testItem({ document: doc, host: host === '' ? undefined : host, key, value: now ? undefined : value, previous: previous === '' ? undefined : previous });
      setResult(got);
      if (now && got.collected !== undefined) setValue(got.collected);
    } catch (error) {
      setResult(null);
      setFailure(said(error));
    }
    setBusy(false);
  };
  return (
    <fieldset class="try" aria-busy={busy}>
      <legend>Test it</legend>
      {kind === 'template' && <HostChoice value={host} set={setHost} />}
      {canBeAsked(text(item, 'type', 'ZABBIX_PASSIVE')) ? (
        <div>
          <button type="button" disabled={busy} onClick={() => void run(true)}>
            Get the value now
          </button>
        </div>
      ) : (
        <p class="muted">Its values come by themselves. Give one to see what the steps make of it.</p>
      )}
      <Text label="Value" value={value} set={setValue} lines={3} mono />
      {looksBack && <Text label="Value before it" value={previous} set={setPrevious} lines={2} mono hint="One interval earlier, for steps that look back." />}
      <div>
        <button type="button" disabled={busy} onClick={() => void run(false)}>
          Test the steps
        </button>
      </div>
      <Refusal text={failure} />
      {result !== null && <Result result={result} />}
    </fieldset>
  );
}

function Result({ result }: { result: Tested }) {
  return (
    <div role="status" class="tested">
      {result.collect_error !== undefined && <p class="problem-text">No value came: {result.collect_error}</p>}
      {result.collected !== undefined && <p class="muted">The value came in {Math.round(result.milliseconds ?? 0)} ms.</p>}
      {result.steps.length > 0 && (
        <table class="list">
          <caption class="unseen">What each step made of the value</caption>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Result</th>
            </tr>
          </thead>
          <tbody>
            {result.steps.map((step, n) => (
              <tr key={n}>
                <td>
                  {step.number}. {step.name}
                </td>
                <td class="text-value">
                  {step.error !== undefined && <span class="problem-text">{step.error} </span>}
                  {step.discarded ? <i>discarded</i> : step.value}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="outcome">
        {result.error !== undefined ? (
          <span class="problem-text">Not supported: {result.error}</span>
        ) : result.discarded ? (
          'Nothing would be stored.'
        ) : (
          <>
            Would be stored as {result.value_type}: <code class="text-value">{result.value}</code>
          </>
        )}
      </p>
    </div>
  );
}
