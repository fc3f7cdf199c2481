// The form for a new host, and what to do on its machine.

import { useEffect, useState } from 'preact/hooks';
import { type Configuration, createDocument, planDocument, type Remark, setPSK } from '../api/configuration.ts';
import { Check, Form, said } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLater } from '../part/load.ts';
import { Command } from '../part/notice.tsx';
import { OnlyHere } from '../part/onlyhere.tsx';
import { useCell } from '../state/cell.ts';
import { mayEdit, me } from '../state/me.ts';
import { route, setParams } from '../state/route.ts';
import { useTrapper } from '../state/trapper.ts';
import { type Doc, type Fields, mistakesOf, names, put, putNames, serious, text } from './document.ts';
import { putAddress } from './general.tsx';
import { Names, Text, Whole } from './parts.tsx';

const FIELDS = ['host', 'name', 'groups', 'templates', 'interfaces'];
const OWN_AGENT = 'Linux by Tidemark agent';
const ZABBIX_AGENT = 'Linux by Zabbix agent';
const PASSIVE_AGENT = 'Linux by Zabbix agent passive';

/** What sends the values of a new host. */
type Sends = 'tidemark' | 'zabbix' | 'asked' | 'snmp' | 'program';

const SENDS: [Sends, string, string][] = [
  ['tidemark', 'Tidemark agent', 'Measures the machine by itself, and MongoDB where there is one.'],
  ['zabbix', 'Zabbix agent, active', 'An agent of Zabbix that sends by itself (ServerActive).'],
  ['asked', 'Zabbix agent, the server asks it', 'A passive agent: the server reaches its port 10050.'],
  ['snmp', 'SNMP device', 'A switch, printer or other device that the server asks by SNMP.'],
  ['program', 'Sender or another program', 'zabbix_sender, a script, or a web service that the server asks: only the items that you add.'],
];
const TEMPLATE_OF: Record<Sends, string> = { tidemark: OWN_AGENT, zabbix: ZABBIX_AGENT, asked: PASSIVE_AGENT, snmp: '', program: '' };

const TEMPLATE_HINT: Record<Sends, string> = {
  tidemark: "What is measured. Tidemark's own agent measures without one; its template has the triggers.",
  zabbix: 'What the agent is told to measure, and the triggers.',
  asked: 'What the server asks the agent for, and the triggers.',
  snmp: 'What the device is asked for: import a template that fits it, or add items after the host is made.',
  program: 'None is needed: add the items that are sent after the host is made.',
};

/** firstGroups is neutral: a group that happens to exist says nothing of a new host, unless it is the only one somebody may choose. */
function firstGroups(known: string[], sends: Sends, all: boolean): Fields[] {
  if (sends !== 'program' && sends !== 'snmp' && known.includes('Linux servers')) return [{ name: 'Linux servers' }];
  if (all) return [{ name: 'Hosts' }];
  return known.length === 1 ? [{ name: known[0] }] : [];
}

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
  const sends = useCell(route).params.get('sends');
  const kind = SENDS.find(([one]) => one === sends)?.[0];
  if (kind !== undefined) return <HostForm key={kind} known={known} sends={kind} />;
  return (
    <section aria-label="Add a host">
      <h2>Add a host</h2>
      <form onSubmit={(event) => event.preventDefault()}>
        <p>What sends its values?</p>
        <ul class="kinds">
          {SENDS.map(([one, title, about]) => (
            <li key={one}>
              <button type="button" onClick={() => setParams({ sends: one }, false)}>
                {title}
              </button>{' '}
              <span class="muted">{about}</span>
            </li>
          ))}
        </ul>
      </form>
    </section>
  );
}

function HostForm({ known, sends }: { known: Configuration; sends: Sends }) {
  const who = useCell(me);
  const fitting = known.templates.find((one) => one.template === TEMPLATE_OF[sends]);
  const [fields, setFields] = useState<Fields>(() => ({ host: '', groups: firstGroups(known.host_groups, sends, mayEdit(who)), templates: fitting === undefined ? [] : [{ name: TEMPLATE_OF[sends] }] }));
  const [asked, setAsked] = useState('');
  const [community, setCommunity] = useState('public');
  const isAsked = sends === 'asked' || sends === 'snmp';
  const [encrypt, setEncrypt] = useState(false);
  const [remarks, setRemarks] = useState<Remark[]>([]);
  const [made, setMade] = useState<Made | null>(null);
  const [keyFailure, setKeyFailure] = useState('');
  const name = text(fields, 'host');
  const whole = asked === '' ? fields : put(fields, 'interfaces', [putAddress(sends === 'snmp' ? { interface_ref: 'if1', type: 'SNMP', port: '161', details: { community } } : { interface_ref: 'if1' }, asked)]);
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
    if (names(fields, 'groups').length === 0) throw { detail: 'The host is in no group yet: choose at least one host group.' };
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
  if (made !== null) return <NextSteps made={made} sends={sends} failure={keyFailure} asked={asked !== ''} />;
  return (
    <section aria-label="Add a host">
      <h2>Add a host</h2>
      <p>
        {SENDS.find(([one]) => one === sends)![1]}{' '}
        <button type="button" class="as-link text-link" onClick={() => setParams({ sends: '' }, false)}>
          ← another kind
        </button>
      </p>
      <Form submit="Add the host" run={run}>
        <Whole mistakes={mistakes} />
        <Text label="Host name" value={name} set={(value) => setFields({ ...fields, host: value })} mistakes={mistakes.host} focus required hint="The technical name, which is sent with the values. Letters, digits, spaces, '.', '_' and '-'." />
        <Text label="Visible name" value={text(fields, 'name')} set={(value) => setFields(put(fields, 'name', value))} mistakes={mistakes.name} hint="Empty for the same." />
        <Names label="Host groups" value={names(fields, 'groups')} set={(value) => setFields(putNames(fields, 'groups', value))} known={known.host_groups} mistakes={mistakes.groups} hint="At least one; a group that is not there yet is made with the host." />
        <Names label="Templates" value={names(fields, 'templates')} set={(value) => setFields(putNames(fields, 'templates', value))} known={known.templates.map((one) => one.template)} mistakes={mistakes.templates} hint={TEMPLATE_HINT[sends]} />
        <Text label="Address" value={asked} set={setAsked} required={isAsked} hint={`${isAsked ? 'Where the server asks it' : 'Only where the server shall ask an agent'}: an IP address or a name. Port ${sends === 'snmp' ? '161' : '10050'}; another port and other interfaces after it is made.`} />
        {sends === 'snmp' && <Text label="Community" value={community} set={setCommunity} required hint="SNMPv2; other versions as text after it is made." />}
        {sends !== 'snmp' && who?.role === 'administrator' && <Check label="Encrypt with a new pre-shared key" value={encrypt} set={setEncrypt} />}
      </Form>
    </section>
  );
}

function NextSteps({ made, sends, failure, asked }: { made: Made; sends: Sends; failure: string; asked: boolean }) {
  const { address: server, host, port } = useTrapper();
  const edit = `/configuration/hosts/${encodeURIComponent(made.name)}`;
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
      {sends === 'tidemark' && (
        <>
          <p>Start the agent there; its charts appear within seconds:</p>
          <Command text={`tidemark agent --server ${server} --host ${quoted}${tls}`} />
        </>
      )}
      {sends === 'zabbix' && (
        <>
          <p>Put these lines into the agent's configuration and start it again:</p>
          <Command text={[asked ? `Server=${host}` : '', `ServerActive=${server}`, `Hostname=${made.name}`, ...(made.psk === '' ? [] : ['TLSConnect=psk', 'TLSAccept=psk', `TLSPSKIdentity=${made.name}`, `TLSPSKFile=/etc/zabbix/${file}`])].filter(Boolean).join('\n')} />
        </>
      )}
      {sends === 'asked' && (
        <>
          <p>Put this into the agent's configuration and start it again; Server is the address that this server asks from, as the agent sees it:</p>
          <Command text={[`Server=${host.replace(/^\[|\]$/g, '')}`, ...(made.psk === '' ? [] : ['TLSAccept=psk', `TLSPSKIdentity=${made.name}`, `TLSPSKFile=/etc/zabbix/${file}`])].join('\n')} />
        </>
      )}
      {sends === 'snmp' && (
        <p>
          Allow this server to ask the device by SNMP. Values come as soon as the host has a template that fits it, or an <Link to={`${edit}/items`}>item of the type SNMP agent</Link>.
        </p>
      )}
      {sends === 'program' && (
        <>
          <p>
            Add an <Link to={`${edit}/items`}>item of the type Trapper</Link> for each key, then send its values:
          </p>
          <Command text={`zabbix_sender -z ${host.replace(/^\[|\]$/g, '')} -p ${port} -s ${quoted} -k KEY -o VALUE${tls}`} />
        </>
      )}
      {sends !== 'asked' && sends !== 'snmp' && <OnlyHere />}
      <p class="row-links">
        <Link to={`/hosts/${made.id}`}>See its values</Link>
        <Link to={edit}>Edit it</Link>
        <Link to="/configuration">All hosts</Link>
      </p>
    </section>
  );
}

