// The form for a new host, and what to do on its machine.

import { useEffect, useState } from 'preact/hooks';
import { type Configuration, createDocument, planDocument, type Remark, setPSK } from '../api/configuration.ts';
import { Check, Form, said } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLater } from '../part/load.ts';
import { Command } from '../part/notice.tsx';
import { useCell } from '../state/cell.ts';
import { me } from '../state/me.ts';
import { type Doc, type Fields, mistakesOf, names, put, putNames, serious, text } from './document.ts';
import { putAddress } from './general.tsx';
import { Names, Text, Whole } from './parts.tsx';

const FIELDS = ['host', 'name', 'groups', 'templates', 'interfaces'];
const OWN_AGENT = 'Linux by Tidemark agent';
const AGENT_PORT = '10051';

const docOf = (fields: Fields): Doc => ({ zabbix_export: { version: '7.0', hosts: [fields] } });

/** newKey is a pre-shared key of 32 random bytes. */
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(32))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

interface Made {
  id: string;
  name: string;
  psk: string;
}

export function AddHost({ known }: { known: Configuration }) {
  const who = useCell(me);
  const fitting = known.templates.find((one) => one.template === OWN_AGENT);
  const [fields, setFields] = useState<Fields>(() => ({ host: '', groups: [{ name: known.host_groups.includes('Linux servers') ? 'Linux servers' : (known.host_groups[0] ?? 'Hosts') }], templates: fitting === undefined ? [] : [{ name: OWN_AGENT }] }));
  const [asked, setAsked] = useState('');
  const [encrypt, setEncrypt] = useState(false);
  const [remarks, setRemarks] = useState<Remark[]>([]);
  const [made, setMade] = useState<Made | null>(null);
  const [keyFailure, setKeyFailure] = useState('');
  const name = text(fields, 'host');
  const whole = asked === '' ? fields : put(fields, 'interfaces', [putAddress({ interface_ref: 'if1' }, asked)]);
  const settled = useLater(JSON.stringify(whole), 300);
  useEffect(() => {
    if (name === '') {
      setRemarks([]);
      return;
    }
    const abort = new AbortController();
    planDocument('host', '', docOf(JSON.parse(settled) as Fields), true, abort.signal)
      .then((answer) => setRemarks(answer.report.remarks))
      .catch(() => undefined); // Saving says what is wrong.
    return () => abort.abort();
  }, [settled]);
  const mistakes = mistakesOf(remarks, 'hosts[0]', FIELDS);
  const run = async (): Promise<void> => {
    const answer = await createDocument('host', docOf(whole));
    if (answer.refused !== undefined) {
      setRemarks(answer.report.remarks);
      throw { detail: serious(answer.report.remarks)[0]?.reason.replace(/; not taken$/, '') ?? answer.refused };
    }
    const psk = encrypt ? newKey() : '';
    if (psk !== '') {
      try {
        await setPSK(answer.id!, name, psk);
      } catch (error) {
        setKeyFailure(said(error));
        setMade({ id: answer.id!, name, psk: '' });
        return;
      }
    }
    setMade({ id: answer.id!, name, psk });
  };
  if (made !== null) return <NextSteps made={made} failure={keyFailure} asked={asked !== ''} />;
  return (
    <section aria-label="Add a host">
      <h2>Add a host</h2>
      <Form submit="Add the host" run={run}>
        <Whole mistakes={mistakes} />
        <Text label="Host name" value={name} set={(value) => setFields({ ...fields, host: value })} mistakes={mistakes.host} focus required hint="The technical name, which the agent sends. Letters, digits, spaces, '.', '_' and '-'." />
        <Text label="Visible name" value={text(fields, 'name')} set={(value) => setFields(put(fields, 'name', value))} mistakes={mistakes.name} hint="Empty for the same." />
        <Names label="Host groups" value={names(fields, 'groups')} set={(value) => setFields(putNames(fields, 'groups', value))} known={known.host_groups} mistakes={mistakes.groups} />
        <Names label="Templates" value={names(fields, 'templates')} set={(value) => setFields(putNames(fields, 'templates', value))} known={known.templates.map((one) => one.template)} mistakes={mistakes.templates} hint="What is measured. Tidemark's own agent measures without one; its template has the triggers." />
        <Text label="Address" value={asked} set={setAsked} hint="Only where the server shall ask an agent: an IP address or a name. Port 10050; other interfaces after it is made." />
        {who?.role === 'administrator' && <Check label="Encrypt with a new pre-shared key" value={encrypt} set={setEncrypt} />}
      </Form>
    </section>
  );
}

function NextSteps({ made, failure, asked }: { made: Made; failure: string; asked: boolean }) {
  const server = `${location.hostname}:${AGENT_PORT}`;
  const quoted = /^[\w.-]+$/.test(made.name) ? made.name : `'${made.name}'`;
  const file = `${made.name.replaceAll(' ', '-')}.psk`;
  const tls = made.psk === '' ? '' : ` --tls-connect psk --tls-psk-identity ${quoted} --tls-psk-file ${file}`;
  return (
    <section aria-label="The host is added" class="next">
      <h2>{made.name} is added</h2>
      {failure !== '' && (
        <p class="problem-text" role="alert">
          Its pre-shared key could not be set: {failure}
        </p>
      )}
      {made.psk !== '' && (
        <>
          <p>Put the key on its machine. It is not shown again.</p>
          <Command text={`(umask 077; echo ${made.psk} > ${file})`} />
        </>
      )}
      <p>Start the agent there; its charts appear within seconds:</p>
      <Command text={`tidemark agent --server ${server} --host ${quoted}${tls}`} />
      <p class="muted">A Zabbix agent takes these lines in its configuration instead:</p>
      <Command text={[asked ? `Server=${location.hostname}` : '', `ServerActive=${server}`, `Hostname=${made.name}`, ...(made.psk === '' ? [] : ['TLSConnect=psk', 'TLSAccept=psk', `TLSPSKIdentity=${made.name}`, `TLSPSKFile=/etc/zabbix/${file}`])].filter(Boolean).join('\n')} />
      <p class="row-links">
        <Link to={`/hosts/${made.id}`}>See its values</Link>
        <Link to={`/configuration/hosts/${encodeURIComponent(made.name)}`}>Edit it</Link>
        <Link to="/configuration">All hosts</Link>
      </p>
    </section>
  );
}

