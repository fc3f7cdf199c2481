// Users, user groups and everybody's tokens, for administrators.

import { useState } from 'preact/hooks';
import { deleteUser, deleteUserGroup, endSessions, getTokens, getUserGroups, getUsers, type Grant, putUser, putUserGroup, revokeToken, ROLES, type User, type UserBody, type UserGroup } from '../api/people.ts';
import { Check, Choice, Field, Form, Sure } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { useOpened } from '../part/opened.ts';
import { Empty, Failure } from '../part/notice.tsx';
import { type Column, Table } from '../part/table.tsx';
import type { Role } from '../state/me.ts';
import { revokeColumn, TOKEN_COLUMNS } from './account.tsx';

export function UsersView({ tab }: { tab: string }) {
  return (
    <div class="page">
      <h1>Users</h1>
      <nav class="tabs" aria-label="Users">
        <Link to="/users" current={tab === ''}>
          Users
        </Link>
        <Link to="/users/groups" current={tab === 'groups'}>
          User groups
        </Link>
        <Link to="/users/tokens" current={tab === 'tokens'}>
          Tokens
        </Link>
      </nav>
      {tab === '' && <Users />}
      {tab === 'groups' && <Groups />}
      {tab === 'tokens' && <Tokens />}
    </div>
  );
}

const NEW: User = { id: '', name: '', role: 'viewer', all_hosts: true, groups: [], disabled: false, has_password: false, created_at: 0, sessions: 0 };

function Users() {
  const users = useLoad((signal) => getUsers(signal), []);
  const groups = useLoad((signal) => getUserGroups(signal), []);
  const form = useOpened('user');
  const edited = form.now === null ? undefined : form.now.name === '' ? NEW : users.data?.users.find((user) => user.id === form.now!.name);
  const [failure, setFailure] = useState('');
  const done = (): void => {
    form.close();
    users.reload();
  };
  const columns: Column<User>[] = [
    { id: 'name', title: 'Name', class: 'anywhere', cell: (user) => user.name, sort: (user) => user.name.toLowerCase() },
    { id: 'role', title: 'Role', cell: (user) => user.role, sort: (user) => -ROLES.indexOf(user.role) },
    { id: 'hosts', title: 'Hosts', class: 'anywhere', cell: (user) => (user.all_hosts ? 'all' : user.groups.length === 0 ? 'none' : `by ${user.groups.join(', ')}`), minor: true },
    { id: 'state', title: 'State', cell: (user) => (user.disabled ? 'disabled' : user.sessions > 0 ? 'signed in' : 'enabled') },
    {
      id: 'do',
      title: '',
      number: true,
      cell: (user) => (
        <span class="row-buttons">
          <button type="button" class="small" aria-label={`Edit ${user.name}`} onClick={() => form.open('user', user.id)}>
            Edit
          </button>
          {user.sessions > 0 && <Sure label="Sign out" again={`Sign ${user.name} out?`} run={() => endSessions(user.id).then(users.reload)} failed={setFailure} />}
          <Sure label="Delete" again={`Delete ${user.name}?`} run={() => deleteUser(user.id).then(users.reload)} failed={setFailure} />
        </span>
      ),
    },
  ];
  return (
    <>
      {edited === undefined ? (
        <div>
          <button type="button" onClick={() => form.add('user')}>
            New user
          </button>
        </div>
      ) : (
        <UserForm key={edited.id} user={edited} groups={groups.data?.groups ?? []} done={done} cancel={form.close} />
      )}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {users.error !== null && <Failure error={users.error} retry={users.reload} />}
      {users.data !== null && users.data.users.length === 0 && (
        <Empty title="There are no users yet.">
          <p class="muted">Until there is an administrator everybody on this machine is one. Open the link that the server printed when it started, or make one here.</p>
        </Empty>
      )}
      {users.data !== null && users.data.users.length > 0 && <Table caption="Users" columns={columns} rows={users.data.users} rowKey={(user) => user.id} sort="name" param="sort" />}
    </>
  );
}

function UserForm({ user, groups, done, cancel }: { user: User; groups: UserGroup[]; done: () => void; cancel: () => void }) {
  const [body, setBody] = useState<UserBody>({ name: user.name, role: user.role, all_hosts: user.all_hosts, groups: user.groups, disabled: user.disabled });
  const [password, setPassword] = useState('');
  const change = (part: Partial<UserBody>): void => setBody((old) => ({ ...old, ...part }));
  const run = async (): Promise<void> => {
    await putUser(user.id, password === '' ? body : { ...body, password });
    done();
  };
  const member = (name: string, on: boolean): void => change({ groups: on ? [...body.groups, name] : body.groups.filter((other) => other !== name) });
  return (
    <section aria-label={user.id === '' ? 'New user' : `User ${user.name}`}>
      <h2>{user.id === '' ? 'New user' : user.name}</h2>
      <Form submit={user.id === '' ? 'Make the user' : 'Save'} run={run} cancel={cancel}>
        <Field label="Name" value={body.name} set={(name) => change({ name })} focus />
        <Field
          label={user.id === '' ? 'Password' : 'New password'}
          value={password}
          set={setPassword}
          type="password"
          autocomplete="new-password"
          required={false}
          hint={user.has_password ? 'Empty keeps the one that there is. A new one ends all sessions.' : 'Empty lets the user in by tokens only.'}
        />
        <Choice label="Role" value={body.role} options={ROLES} set={(role) => change({ role })} />
        {body.role !== 'administrator' && <Check label="On all hosts" value={body.all_hosts} set={(all_hosts) => change({ all_hosts })} />}
        {body.role !== 'administrator' && !body.all_hosts && (
          <fieldset>
            <legend>On the hosts that these groups grant</legend>
            {groups.length === 0 && <p class="muted">There are no user groups yet; make one first.</p>}
            {groups.map((group) => (
              <Check key={group.name} label={group.name} value={body.groups.includes(group.name)} set={(on) => member(group.name, on)} />
            ))}
          </fieldset>
        )}
        {user.id !== '' && <Check label="Disabled" value={body.disabled} set={(disabled) => change({ disabled })} />}
      </Form>
    </section>
  );
}

const NEW_GROUP: UserGroup = { name: '', grants: [], users: 0 };

function Groups() {
  const groups = useLoad((signal) => getUserGroups(signal), []);
  const form = useOpened('group');
  const edited = form.now === null ? undefined : form.now.name === '' ? NEW_GROUP : groups.data?.groups.find((group) => group.name === form.now!.name);
  const [failure, setFailure] = useState('');
  const columns: Column<UserGroup>[] = [
    { id: 'name', title: 'User group', class: 'anywhere', cell: (group) => group.name, sort: (group) => group.name },
    { id: 'grants', title: 'Grants', cell: (group) => group.grants.map((grant) => `${grant.role} on ${grant.host_group}`).join(', ') || 'nothing', class: 'anywhere' },
    { id: 'users', title: 'Users', cell: (group) => String(group.users), number: true, minor: true },
    {
      id: 'do',
      title: '',
      number: true,
      cell: (group) => (
        <span class="row-buttons">
          <button type="button" class="small" aria-label={`Edit ${group.name}`} onClick={() => form.open('group', group.name)}>
            Edit
          </button>
          <Sure label="Delete" again={`Delete ${group.name}?`} run={() => deleteUserGroup(group.name).then(groups.reload)} failed={setFailure} />
        </span>
      ),
    },
  ];
  return (
    <>
      {edited === undefined ? (
        <div>
          <button type="button" onClick={() => form.add('group')}>
            New user group
          </button>
        </div>
      ) : (
        <GroupForm
          key={edited.name}
          group={edited}
          cancel={form.close}
          done={() => {
            form.close();
            groups.reload();
          }}
        />
      )}
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {groups.error !== null && <Failure error={groups.error} retry={groups.reload} />}
      {groups.data !== null && groups.data.groups.length === 0 && (
        <Empty title="There are no user groups yet.">
          <p class="muted">A user group gives its users a role on the hosts of host groups. Without one a user's role holds on all hosts.</p>
        </Empty>
      )}
      {groups.data !== null && groups.data.groups.length > 0 && <Table caption="User groups" columns={columns} rows={groups.data.groups} rowKey={(group) => group.name} sort="name" param="sort" />}
    </>
  );
}

const GRANTED: Role[] = ['viewer', 'operator', 'editor'];

function GroupForm({ group, done, cancel }: { group: UserGroup; done: () => void; cancel: () => void }) {
  const [name, setName] = useState(group.name);
  const [grants, setGrants] = useState<Grant[]>(group.grants.length > 0 ? group.grants : [{ host_group: '', role: 'viewer' }]);
  const change = (index: number, part: Partial<Grant>): void => setGrants((old) => old.map((grant, n) => (n === index ? { ...grant, ...part } : grant)));
  const run = async (): Promise<void> => {
    await putUserGroup(name, grants.filter((grant) => grant.host_group !== ''));
    done();
  };
  return (
    <section aria-label={group.name === '' ? 'New user group' : `User group ${group.name}`}>
      <h2>{group.name === '' ? 'New user group' : group.name}</h2>
      <Form submit="Save" run={run} cancel={cancel}>
        {group.name === '' && <Field label="Name" value={name} set={setName} focus />}
        {grants.map((grant, index) => (
          <div class="grant" key={index}>
            <Field label="Host group" value={grant.host_group} set={(host_group) => change(index, { host_group })} required={false} hint={index === 0 ? 'And those below it: Linux is for Linux/Web too.' : undefined} />
            <Choice label="Role there" value={grant.role} options={GRANTED} set={(role) => change(index, { role })} />
          </div>
        ))}
        <div>
          <button type="button" class="small" onClick={() => setGrants([...grants, { host_group: '', role: 'viewer' }])}>
            Another host group
          </button>
        </div>
      </Form>
    </section>
  );
}

function Tokens() {
  const tokens = useLoad((signal) => getTokens(signal), []);
  const [failure, setFailure] = useState('');
  return (
    <>
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {tokens.error !== null && <Failure error={tokens.error} retry={tokens.reload} />}
      {tokens.data !== null && tokens.data.tokens.length === 0 && (
        <Empty title="Nobody has a token.">
          <p class="muted">Users make their own under their name, at the top right; for a user without password use tidemark token create.</p>
        </Empty>
      )}
      {tokens.data !== null && tokens.data.tokens.length > 0 && (
        <Table
          caption="Tokens"
          rows={tokens.data.tokens}
          rowKey={(token) => token.id}
          columns={[
            { id: 'user', title: 'User', class: 'anywhere', cell: (token) => token.user, sort: (token) => token.user },
            ...TOKEN_COLUMNS,
            revokeColumn((token) => revokeToken(token.id).then(tokens.reload), setFailure),
          ]}
        />
      )}
    </>
  );
}
