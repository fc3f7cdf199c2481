// Network discovery: its rules, how each goes, and what it found.

import { useEffect, useState } from 'preact/hooks';
import { deleteNetAction, deleteNetRule, getNetHosts, getNetStatus, getNetwork, type NetAction, type NetHost, type NetRule, type NetStatus, scanNow } from '../api/network.ts';
import { formatAge, plural } from '../format/number.ts';
import { said, Sure } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Empty, Failure, Refusal } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { serverNow } from '../state/live.ts';
import { me } from '../state/me.ts';
import { route, setParams } from '../state/route.ts';
import { NetActionForm } from './netactionform.tsx';
import { conditionWords, operationWords } from './netactionwords.ts';
import { NetRuleForm } from './networkform.tsx';
import { checkName, stateWords } from './networkwords.ts';

const AGAIN_MS = 5_000;

const ago = (seconds: number): string => formatAge(serverNow() - seconds * 1_000);

export function Network() {
  const { params } = useCell(route);
  const open = params.get('net');
  const administers = useCell(me)?.role === 'administrator';
  const config = useLoad((signal) => getNetwork(signal), []);
  const status = useLoad((signal) => getNetStatus(signal), [open]);
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && status.reload(), AGAIN_MS);
    return () => clearInterval(timer);
  }, [status.reload]);
  if (config.error !== null) return <Failure error={config.error} retry={config.reload} />;
  if (config.data === null) return null;
  const rules = config.data.rules ?? [];
  const actions = config.data.actions ?? [];
  const close = (): void => setParams({ net: '', action: '', fresh: '' });
  const done = (): void => {
    close();
    config.reload();
    status.reload();
  };
  if (params.get('fresh') === 'net') return <NetRuleForm taken={rules.map((rule) => rule.name)} done={done} cancel={close} />;
  const names = rules.map((rule) => rule.name);
  if (params.get('fresh') === 'action') return <NetActionForm rules={names} taken={actions.map((one) => one.name)} done={done} cancel={close} />;
  const action = actions.find((one) => one.name === params.get('action'));
  if (action !== undefined && administers) return <NetActionForm key={action.name} action={action} rules={names} taken={[]} done={done} cancel={close} />;
  const found = rules.find((rule) => rule.name === open);
  const stateOf = (name: string): NetStatus | undefined => (status.data?.rules ?? []).find((one) => one.rule === name);
  if (found !== undefined) return <Opened key={found.name} rule={found} state={stateOf(found.name)} looked={status.reload} done={done} close={close} />;
  return (
    <>
      {status.error !== null && <Failure error={status.error} retry={status.reload} />}
      {open !== null && <p role="status">There is no rule {open}.</p>}
      <RuleList rules={rules} stateOf={stateOf} changed={done} />
      <Actions actions={actions} changed={done} />
    </>
  );
}

function RuleList({ rules, stateOf, changed }: { rules: NetRule[]; stateOf: (name: string) => NetStatus | undefined; changed: () => void }) {
  const administers = useCell(me)?.role === 'administrator';
  const [failure, setFailure] = useState('');
  const columns: Column<NetRule>[] = [
    {
      id: 'name',
      title: 'Rule',
      class: 'anywhere',
      cell: (rule) => (
        <Link to="/configuration/network" query={{ net: rule.name }}>
          {rule.name}
        </Link>
      ),
      sort: (rule) => rule.name.toLowerCase(),
    },
    { id: 'ranges', title: 'Looks at', class: 'anywhere', cell: (rule) => rule.ranges, minor: true },
    { id: 'checks', title: 'By', class: 'anywhere', cell: (rule) => rule.checks.map(checkName).join(', '), minor: true },
    { id: 'up', title: 'Hosts up', cell: (rule) => stateOf(rule.name)?.up ?? '–', sort: (rule) => -(stateOf(rule.name)?.up ?? 0), number: true },
    { id: 'state', title: 'State', class: 'anywhere', cell: (rule) => <State state={stateOf(rule.name)} /> },
  ];
  if (administers) columns.push({ id: 'do', title: '', number: true, cell: (rule) => <Sure label="Delete" again={`Delete ${rule.name}?`} run={() => deleteNetRule(rule.name).then(changed)} failed={setFailure} /> });
  return (
    <section aria-label="Rules of network discovery">
      {administers ? (
        <div>
          <button type="button" onClick={() => setParams({ fresh: 'net' }, false)}>
            New rule
          </button>
        </div>
      ) : (
        <p class="muted">Only an administrator changes the rules, because they say which addresses the server asks.</p>
      )}
      <Refusal text={failure} />
      {rules.length === 0 ? (
        <Empty title="There is no rule of network discovery.">
          <p class="muted">A rule looks for hosts in ranges of addresses, at intervals. Actions say what becomes of what it finds.</p>
        </Empty>
      ) : (
        <Table caption="Rules of network discovery" columns={columns} rows={rules} rowKey={(rule) => rule.name} sort="name" />
      )}
    </section>
  );
}

function State({ state }: { state: NetStatus | undefined }) {
  return (
    <>
      {stateWords(state, ago)}
      {state?.error !== undefined && <span class="problem-text"> {state.error}</span>}
    </>
  );
}

interface OpenedProps {
  rule: NetRule;
  state: NetStatus | undefined;
  looked: () => void;
  done: () => void;
  close: () => void;
}

function Opened({ rule, state, looked, done, close }: OpenedProps) {
  const [failure, setFailure] = useState('');
  const [editing, setEditing] = useState(false);
  const administers = useCell(me)?.role === 'administrator';
  const look = async (): Promise<void> => {
    try {
      await scanNow(rule.name);
      setFailure('');
      looked();
    } catch (error) {
      setFailure(said(error));
    }
  };
  if (editing) return <NetRuleForm rule={rule} taken={[]} done={done} cancel={() => setEditing(false)} />;
  return (
    <section class="object" aria-label={`Rule ${rule.name}`}>
      <div class="object-head">
        <h2>{rule.name}</h2>
        <span class="row-buttons">
          <button type="button" class="small" onClick={close}>
            Back to the list
          </button>
          {administers && (
            <button type="button" class="small" onClick={() => setEditing(true)}>
              Edit
            </button>
          )}
          {!rule.proxy && (
            <button type="button" class="small" disabled={rule.disabled || state?.running} onClick={() => void look()}>
              Look now
            </button>
          )}
        </span>
      </div>
      <Refusal text={failure} />
      <p class="muted anywhere">
        {rule.ranges}, every {rule.delay ?? '1h'}, by {rule.checks.map(checkName).join(', ')}
        {rule.proxy ? `, from proxy ${rule.proxy}` : ''}
      </p>
      <p role="status">
        <State state={state} />
      </p>
      <Found rule={rule.name} round={`${state?.last_at ?? 0} ${state?.hosts ?? 0}`} />
    </section>
  );
}

const FOUND: Column<NetHost>[] = [
  { id: 'ident', title: 'Found', class: 'anywhere', cell: (host) => host.ident, sort: (host) => host.ident },
  { id: 'state', title: 'State', cell: (host) => `${host.up ? 'up' : 'down'} for ${ago(host.changed_at)}`, sort: (host) => (host.up ? 1 : 0) },
  {
    id: 'services',
    title: 'Answers',
    class: 'anywhere',
    cell: (host) =>
      (host.services ?? []).map((one, n) => (
        <div key={n}>
          {one.ip} {one.check}
          {one.port ? `:${one.port}` : ''} <span class="muted">{one.up ? one.value ?? '' : `down for ${ago(one.changed_at)}`}</span>
        </div>
      )),
    minor: true,
  },
  { id: 'host', title: 'Host', class: 'anywhere', cell: (host) => (host.host_id ? <Link to={`/hosts/${host.host_id}`}>{host.host}</Link> : <span class="muted">none</span>), sort: (host) => host.host ?? '' },
];

function Found({ rule, round }: { rule: string; round: string }) {
  const found = useLoad((signal) => getNetHosts(rule, signal), [rule, round]);
  return (
    <>
      <h2>What it found</h2>
      {found.error !== null && <Failure error={found.error} retry={found.reload} />}
      {found.data !== null && found.data.hosts.length === 0 && (
        <Empty title="It has found nothing yet.">
          <p class="muted">Addresses that never answered are not listed.</p>
        </Empty>
      )}
      {found.data !== null && found.data.hosts.length > 0 && <Table caption="What the rule found" columns={FOUND} rows={found.data.hosts} rowKey={(host) => host.ident} sort="ident" dimmed={found.loading} />}
      {(found.data?.more ?? 0) > 0 && <p class="muted">{plural(found.data!.more!, 'other')} more.</p>}
    </>
  );
}

/** Actions lists what becomes of finds. */
function Actions({ actions, changed }: { actions: NetAction[]; changed: () => void }) {
  const administers = useCell(me)?.role === 'administrator';
  const [failure, setFailure] = useState('');
  const columns: Column<NetAction>[] = [
    {
      id: 'name',
      title: 'Action',
      class: 'anywhere',
      cell: (one) =>
        administers ? (
          <Link to="/configuration/network" query={{ action: one.name }}>
            {one.name}
          </Link>
        ) : (
          one.name
        ),
      sort: (one) => one.name.toLowerCase(),
    },
    { id: 'event', title: 'On', cell: (one) => (one.event === 'discovery' ? 'finds' : 'registration'), minor: true },
    { id: 'when', title: 'When', class: 'anywhere', cell: (one) => (one.conditions ?? []).map(conditionWords).join('; ') || 'always', minor: true },
    { id: 'does', title: 'Does', class: 'anywhere', cell: (one) => (one.operations ?? []).map(operationWords).join(', ') },
    { id: 'state', title: 'State', cell: (one) => (one.disabled ? 'off' : 'on') },
  ];
  if (administers) columns.push({ id: 'do', title: '', number: true, cell: (one) => <Sure label="Delete" again={`Delete ${one.name}?`} run={() => deleteNetAction(one.name).then(changed)} failed={setFailure} /> });
  return (
    <section aria-label="Actions on what is found">
      <h2>Actions on what is found</h2>
      {administers && (
        <div>
          <button type="button" onClick={() => setParams({ fresh: 'action' }, false)}>
            New action
          </button>
        </div>
      )}
      <Refusal text={failure} />
      {actions.length === 0 ? (
        <p class="muted">There are none: what is found becomes no host.</p>
      ) : (
        <Table caption="Actions on what is found" rows={actions} rowKey={(one) => one.name} columns={columns} sort="name" />
      )}
    </section>
  );
}
