// Calls about people: signing in, one's own account, users, groups, tokens, and the audit log.

import { me, type Me, type Role } from '../state/me.ts';
import { ApiError, get, send } from './client.ts';

export const ROLES: Role[] = ['viewer', 'operator', 'editor', 'administrator'];

export interface User {
  id: string;
  name: string;
  role: Role;
  all_hosts: boolean;
  groups: string[];
  disabled: boolean;
  has_password: boolean;
  created_at: number;
  sessions: number;
}

export interface UserBody {
  name: string;
  role: Role;
  all_hosts: boolean;
  groups: string[];
  disabled: boolean;
  password?: string;
}

export interface Grant {
  host_group: string;
  role: Role;
}

export interface UserGroup {
  name: string;
  grants: Grant[];
  users: number;
}

export interface Token {
  id: string;
  name: string;
  user: string;
  role: Role;
  created_at: number;
  expires_at: number | null;
  used_at: number | null;
}

export interface AuditEntry {
  id: string;
  at: number;
  actor: string;
  via: string;
  address: string;
  action: string;
  object: string;
  before: unknown;
  after: unknown;
}

/** askMe finds out who uses the page. When the server cannot be reached the views say so. */
export async function askMe(): Promise<void> {
  try {
    me.set(await get<Me>('who you are', '/api/me'));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.set(null);
    else me.set({ id: '', name: '', role: 'viewer', all_hosts: true, via: '', first: false });
  }
}

export const signIn = async (name: string, password: string): Promise<void> => me.set(await send<Me>('sign in', 'POST', '/api/login', { name, password }));

export const makeFirst = async (key: string, name: string, password: string): Promise<void> =>
  me.set(await send<Me>('make the first administrator', 'POST', '/api/first', { key, name, password }));

export async function signOut(): Promise<void> {
  await send('sign out', 'POST', '/api/logout');
  me.set(null);
}

export const changePassword = (old: string, next: string): Promise<unknown> => send('change the password', 'PUT', '/api/me/password', { old, new: next });

export const getOwnTokens = (signal?: AbortSignal): Promise<{ tokens: Token[] }> => get('your tokens', '/api/me/tokens', {}, signal);

export const makeOwnToken = (name: string, role: Role, expires: number): Promise<Token & { text: string }> =>
  send('make the token', 'POST', '/api/me/tokens', { name, role, expires_at: expires });

export const revokeOwnToken = (id: string): Promise<unknown> => send('revoke the token', 'DELETE', `/api/me/tokens/${id}`);

export const getUsers = (signal?: AbortSignal): Promise<{ users: User[] }> => get('the users', '/api/users', {}, signal);

export const putUser = (id: string, body: UserBody): Promise<User> =>
  id === '' ? send('make the user', 'POST', '/api/users', body) : send('change the user', 'PUT', `/api/users/${id}`, body);

export const deleteUser = (id: string): Promise<unknown> => send('delete the user', 'DELETE', `/api/users/${id}`);

export const endSessions = (id: string): Promise<unknown> => send('sign the user out', 'DELETE', `/api/users/${id}/sessions`);

export const getUserGroups = (signal?: AbortSignal): Promise<{ groups: UserGroup[] }> => get('the user groups', '/api/user_groups', {}, signal);

export const putUserGroup = (name: string, grants: Grant[]): Promise<unknown> => send('store the user group', 'PUT', `/api/user_groups/${encodeURIComponent(name)}`, { grants });

export const deleteUserGroup = (name: string): Promise<unknown> => send('delete the user group', 'DELETE', `/api/user_groups/${encodeURIComponent(name)}`);

export const getTokens = (signal?: AbortSignal): Promise<{ tokens: Token[] }> => get('the tokens', '/api/tokens', {}, signal);

export const revokeToken = (id: string): Promise<unknown> => send('revoke the token', 'DELETE', `/api/tokens/${id}`);

export const getAudit = (query: Record<string, string | number>, signal?: AbortSignal): Promise<{ entries: AuditEntry[]; next?: string }> =>
  get('the audit log', '/api/audit', query, signal);
