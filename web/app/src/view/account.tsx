// One's own account: password and tokens.

import { useState } from 'preact/hooks';
import { changePassword, getOwnTokens, makeOwnToken, revokeOwnToken, ROLES, type Token } from '../api/people.ts';
import { formatClock } from '../format/when.ts';
import { Choice, Field, Form, Sure } from '../part/form.tsx';
import { useLoad } from '../part/load.ts';
import { Command, Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { me, type Role } from '../state/me.ts';

export function AccountView() {
  const who = useCell(me);
  if (who === null || who === undefined || who.via !== 'session') {
    return (
      <div class="page">
        <h1>Account</h1>
        <Empty title="You came in without an account.">
          <p class="muted">Passwords and tokens belong to users; administrators make them on the page Users.</p>
        </Empty>
      </div>
    );
  }
  return (
    <div class="page">
      <h1>{who.name}</h1>
      <h2>Password</h2>
      <Password />
      <h2>Tokens</h2>
      <p class="muted">A token lets a program in as you: Grafana, scripts, the command line. It is sent as “Authorization: Bearer TOKEN” or in TIDEMARK_TOKEN.</p>
      <OwnTokens most={who.role} />
    </div>
  );
}

function Password() {
  const [old, setOld] = useState('');
  const [next, setNext] = useState('');
  const [again, setAgain] = useState('');
  const [done, setDone] = useState(false);
  const run = async (): Promise<void> => {
    setDone(false);
    if (next !== again) throw { detail: 'the two new passwords are not the same' };
    await changePassword(old, next);
    setOld('');
    setNext('');
    setAgain('');
    setDone(true);
  };
  return (
    <>
      <Form submit="Change the password" run={run}>
        <Field label="Old password" value={old} set={setOld} type="password" autocomplete="current-password" />
        <Field label="New password" value={next} set={setNext} type="password" autocomplete="new-password" hint="At least 10 characters. Your other sessions end." />
        <Field label="New password again" value={again} set={setAgain} type="password" autocomplete="new-password" />
      </Form>
      {done && <p role="status">The password is changed.</p>}
    </>
  );
}

const DAY_MS = 86_400_000;
const AGES: Record<string, number> = { '30 days': 30 * DAY_MS, '90 days': 90 * DAY_MS, '1 year': 365 * DAY_MS, never: 0 };

function OwnTokens({ most }: { most: Role }) {
  const tokens = useLoad((signal) => getOwnTokens(signal), []);
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [age, setAge] = useState('90 days');
  const [text, setText] = useState('');
  const [failure, setFailure] = useState('');
  const run = async (): Promise<void> => {
    const made = await makeOwnToken(name, role, AGES[age] === 0 ? 0 : Date.now() + AGES[age]!);
    setText(made.text);
    setName('');
    tokens.reload();
  };
  return (
    <>
      <Form submit="Make a token" run={run}>
        <Field label="Token name" value={name} set={setName} hint="What it is for." />
        <Choice label="May do at most" value={role} options={ROLES.slice(0, ROLES.indexOf(most) + 1)} set={setRole} />
        <Choice label="Ends after" value={age} options={Object.keys(AGES)} set={setAge} />
      </Form>
      {text !== '' && (
        <div role="status">
          <p>Copy the token now; it cannot be shown again.</p>
          <Command text={text} />
        </div>
      )}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {tokens.error !== null && <Failure error={tokens.error} retry={tokens.reload} />}
      {tokens.data !== null && tokens.data.tokens.length > 0 && (
        <Table
          caption="Your tokens"
          rows={tokens.data.tokens}
          rowKey={(token) => token.id}
          columns={[...TOKEN_COLUMNS, revokeColumn((token) => revokeOwnToken(token.id).then(tokens.reload), setFailure)]}
        />
      )}
    </>
  );
}

export const TOKEN_COLUMNS: Column<Token>[] = [
  { id: 'name', title: 'Token', class: 'anywhere', cell: (token) => token.name, sort: (token) => token.name },
  { id: 'role', title: 'May do at most', cell: (token) => token.role, sort: (token) => token.role, minor: true },
  { id: 'expires', title: 'Ends', cell: (token) => (token.expires_at === null ? 'never' : formatClock(token.expires_at)), sort: (token) => token.expires_at ?? Infinity },
  { id: 'used', title: 'Last used', cell: (token) => (token.used_at === null ? 'not yet' : formatClock(token.used_at)), sort: (token) => -(token.used_at ?? 0), minor: true },
];

export function revokeColumn(run: (token: Token) => Promise<unknown>, failed: (text: string) => void): Column<Token> {
  return {
    id: 'revoke',
    title: '',
    cell: (token) => <Sure label="Revoke" again={`Revoke ${token.name}?`} run={() => run(token)} failed={failed} />,
    number: true,
  };
}
