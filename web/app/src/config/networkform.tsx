// The form of a rule of network discovery.

import { useState } from 'preact/hooks';
import { getProxies, type NetCheck, type NetRule, putNetRule } from '../api/network.ts';
import { Check, Field, Form } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Pick } from './parts.tsx';

const TYPES: [string, string][] = [
  ['icmp', 'Ping'],
  ['agent', 'Agent'],
  ['snmp', 'SNMP'],
  ['tcp', 'TCP port'],
  ...['http', 'https', 'ssh', 'smtp', 'ftp', 'pop', 'imap', 'nntp', 'ldap', 'telnet'].map((one): [string, string] => [one, one.toUpperCase()]),
];
const VERSIONS: [string, string][] = [
  ['SNMPV1', 'SNMPv1'],
  ['SNMPV2', 'SNMPv2c'],
  ['SNMPV3', 'SNMPv3'],
];

interface Props {
  /** Missing for a new one. */
  rule?: NetRule;
  taken: string[];
  done: () => void;
  cancel: () => void;
}

/** filled leaves out what is empty. */
const filled = <T extends object>(one: T): T => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== '' && value !== undefined && value !== false)) as T;

export function NetRuleForm({ rule, taken, done, cancel }: Props) {
  const [draft, setDraft] = useState<NetRule>(rule ?? { name: '', ranges: '', checks: [{ type: 'icmp' }] });
  const put = (change: Partial<NetRule>): void => setDraft({ ...draft, ...change });
  const check = (at: number, next: NetCheck): void => put({ checks: draft.checks.map((one, n) => (n === at ? next : one)) });
  // Only what answers with a value of its own can tell hosts apart or name them.
  const telling = draft.checks.filter((one) => (one.type === 'agent' || one.type === 'snmp') && one.name).map((one): [string, string] => [one.name!, `the value of ${one.name}`]);
  const proxies = useLoad((signal) => getProxies(signal), []);
  const names = [...new Set([...(proxies.data?.proxies ?? []).map((one) => one.name), ...(draft.proxy ? [draft.proxy] : [])])].map((one): [string, string] => [one, `proxy ${one}`]);
  const run = async (): Promise<void> => {
    if (taken.includes(draft.name)) throw { detail: `there is a rule ${draft.name} already; choose another name` };
    await putNetRule(filled({ ...draft, checks: draft.checks.map(filled) }));
    done();
  };
  const title = rule === undefined ? 'New rule of network discovery' : `Rule ${rule.name}`;
  return (
    <section class="object" aria-label={title}>
      <h2>{title}</h2>
      <Form submit="Save the rule" run={run} cancel={cancel}>
        {rule === undefined && <Field label="Name" value={draft.name} set={(name) => put({ name })} focus />}
        <Field label="Addresses" value={draft.ranges} set={(ranges) => put({ ranges })} focus={rule !== undefined} hint="Such as 10.0.0.1-254, 10.0.1.0/24 or 2001:db8::1-ff; at most 65,536." />
        {names.length > 0 && <Pick label="Looked at by" value={draft.proxy ?? ''} options={[['', 'the server'], ...names]} set={(proxy) => put({ proxy })} />}
        <Field label="Interval" value={draft.delay ?? ''} set={(delay) => put({ delay })} required={false} hint="10s to 7d; 1h when empty." />
        {draft.checks.map((one, n) => (
          <NetCheckFields key={n} check={one} number={n + 1} set={(next) => check(n, next)} remove={draft.checks.length > 1 ? () => put({ checks: draft.checks.filter((_, other) => other !== n) }) : undefined} />
        ))}
        <div>
          <button type="button" class="small" onClick={() => put({ checks: [...draft.checks, { type: 'agent', key: 'system.uname' }] })}>
            Add a check
          </button>
        </div>
        <Pick label="Hosts are told apart by" value={draft.unique ?? 'ip'} options={[['ip', 'their address'], ...telling]} set={(unique) => put({ unique })} />
        <Pick label="A host that is made is named by" value={draft.host_name ?? 'ip'} options={[['ip', 'its address'], ['dns', 'its name in DNS'], ...telling]} set={(host_name) => put({ host_name })} />
        <Pick label="And shown as" value={draft.visible_name ?? ''} options={[['', 'the same'], ['ip', 'its address'], ['dns', 'its name in DNS'], ...telling]} set={(visible_name) => put({ visible_name })} />
        <Field label="Remember what is down for" value={draft.forget ?? ''} set={(forget) => put({ forget })} required={false} hint="30d when empty." />
        <Check label="Switched off" value={draft.disabled ?? false} set={(disabled) => put({ disabled })} />
      </Form>
    </section>
  );
}

function NetCheckFields({ check, number, set, remove }: { check: NetCheck; number: number; set: (check: NetCheck) => void; remove?: () => void }) {
  const snmp = check.snmp ?? {};
  const choose = (type: string): void => set({ type, ...(check.name ? { name: check.name } : {}), ...(type === 'snmp' ? { key: '.1.3.6.1.2.1.1.5.0', snmp: { version: 'SNMPV2', community: '{$SNMP_COMMUNITY}' } } : type === 'agent' ? { key: 'system.uname' } : {}) });
  return (
    <fieldset>
      <legend>Check {number}</legend>
      <Pick label="Asks by" value={check.type} options={TYPES} set={choose} />
      {check.type === 'agent' && <Field label="Key" value={check.key ?? ''} set={(key) => set({ ...check, key })} />}
      {check.type === 'snmp' && (
        <>
          <Field label="OID" value={check.key ?? ''} set={(key) => set({ ...check, key })} />
          <Pick label="Version" value={snmp.version ?? 'SNMPV2'} options={VERSIONS} set={(version) => set({ ...check, snmp: { ...snmp, version } })} />
          {snmp.version === 'SNMPV3' ? (
            <Field label="Security name" value={snmp.security_name ?? ''} set={(security_name) => set({ ...check, snmp: { ...snmp, security_name } })} hint="Its pass phrases are set by a file: tidemark discovery apply." />
          ) : (
            <Field label="Community" value={snmp.community ?? ''} set={(community) => set({ ...check, snmp: { ...snmp, community } })} hint="A global macro, or a text; ******** keeps the one that there is." />
          )}
        </>
      )}
      {check.type !== 'icmp' && <Field label="Ports" value={check.ports ?? ''} set={(ports) => set({ ...check, ports })} required={check.type === 'tcp'} hint={check.type === 'tcp' ? 'Such as 8080,9000-9010.' : 'The usual one when empty.'} />}
      {(check.type === 'agent' || check.type === 'snmp') && <Field label="Name of the check" value={check.name ?? ''} set={(name) => set({ ...check, name })} required={false} hint="With one, its value can name hosts and tell them apart." />}
      {remove !== undefined && (
        <button type="button" class="small" aria-label={`Remove check ${number}`} onClick={remove}>
          Remove
        </button>
      )}
    </fieldset>
  );
}
