// Who uses the page. Undefined until the server has said it; null while nobody is signed in.

import { Cell } from './cell.ts';

export type Role = 'viewer' | 'operator' | 'editor' | 'administrator';

export interface Me {
  id: string;
  name: string;
  role: Role;
  all_hosts: boolean;
  via: string;
  /** There is no administrator yet, so whoever is on this machine is one. */
  first: boolean;
  /** Where the server listens for agents and senders; missing when it does not. */
  trapper?: string;
}

export const me = new Cell<Me | null | undefined>(undefined);

/** mayEditSome tells whether somebody may change hosts, all or those of some host groups. */
export function mayEditSome(who: Me | null | undefined): boolean {
  return who !== null && who !== undefined && (who.role === 'editor' || who.role === 'administrator');
}

/** mayEdit tells whether somebody may change what concerns all hosts. */
export function mayEdit(who: Me | null | undefined): boolean {
  return mayEditSome(who) && who!.all_hosts;
}
