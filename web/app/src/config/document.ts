// The document of a host or template, as the page edits it: the object of Zabbix's export, with all triggers beside the items, where an import
// takes them as well as inside.

import type { Kind, Remark } from '../api/configuration.ts';

export type Fields = Record<string, unknown>;
export type Doc = { zabbix_export: Fields };

/** text reads a field that is a text; documents have no numbers. */
export const text = (fields: Fields, key: string, missing = ''): string => (typeof fields[key] === 'string' ? (fields[key] as string) : missing);

export const list = (fields: Fields, key: string): Fields[] => (Array.isArray(fields[key]) ? (fields[key] as Fields[]) : []);

/** put changes a field; what is empty or the value that a missing field stands for is left out, as exports do. */
export function put(fields: Fields, key: string, value: unknown, missing = ''): Fields {
  const next = { ...fields };
  if (value === missing || value === undefined || (Array.isArray(value) && value.length === 0)) delete next[key];
  else next[key] = value;
  return next;
}

export const names = (fields: Fields, key: string): string[] => list(fields, key).map((one) => text(one, 'name'));

export const putNames = (fields: Fields, key: string, value: string[]): Fields => put(fields, key, value.map((name) => ({ name })));

/** owner is the host or template of a document. */
export const owner = (doc: Doc, kind: Kind): Fields => list(doc.zabbix_export, `${kind}s`)[0] ?? {};

export const putOwner = (doc: Doc, kind: Kind, fields: Fields): Doc => ({ zabbix_export: { ...doc.zabbix_export, [`${kind}s`]: [fields] } });

export const triggersOf = (doc: Doc): Fields[] => list(doc.zabbix_export, 'triggers');

export const putTriggers = (doc: Doc, triggers: Fields[]): Doc => ({ zabbix_export: put(doc.zabbix_export, 'triggers', triggers) });

/** loosen takes the triggers out of the items, and trigger prototypes out of item prototypes, so that each stand in one list. */
export function loosen(doc: Doc, kind: Kind): Doc {
  const fields = owner(doc, kind);
  const own = outOf(fields, 'items', 'triggers');
  let next = own.fields;
  const rules = list(next, 'discovery_rules');
  const loose = rules.map((rule) => {
    const prototypes = outOf(rule, 'item_prototypes', 'trigger_prototypes');
    return prototypes.taken.length === 0 ? rule : put(prototypes.fields, 'trigger_prototypes', [...prototypes.taken, ...list(rule, 'trigger_prototypes')]);
  });
  if (loose.some((rule, n) => rule !== rules[n])) next = put(next, 'discovery_rules', loose);
  if (next === fields) return doc;
  return putTriggers(putOwner(doc, kind, next), [...own.taken, ...triggersOf(doc)]);
}

/** outOf takes the lists called inner out of the objects of a list; nothing to take gives the same fields. */
function outOf(fields: Fields, of: string, inner: string): { fields: Fields; taken: Fields[] } {
  const taken = list(fields, of).flatMap((one) => list(one, inner));
  return taken.length === 0 ? { fields, taken } : { fields: put(fields, of, list(fields, of).map((one) => put(one, inner, []))), taken };
}

/** same compares documents as they would be sent. */
export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const identity = (trigger: Fields): string => [text(trigger, 'name'), text(trigger, 'expression'), text(trigger, 'recovery_expression')].join('\0');

/** changeTrigger puts a trigger in the place of another, and lets those that depend on it follow its new name and expression. */
export function changeTrigger(triggers: Fields[], at: number, next: Fields): Fields[] {
  const before = triggers[at];
  const changed = triggers.map((trigger, n) => (n === at ? next : trigger));
  if (before === undefined || identity(before) === identity(next)) return changed;
  return changed.map((trigger) => {
    const depends = list(trigger, 'dependencies');
    if (!depends.some((one) => identity(one) === identity(before))) return trigger;
    return put(trigger, 'dependencies', depends.map((one) => (identity(one) === identity(before) ? asDependency(next) : one)));
  });
}

/** removeTrigger takes a trigger out, and the dependencies on it. */
export function removeTrigger(triggers: Fields[], at: number): Fields[] {
  const gone = identity(triggers[at]);
  return triggers
    .filter((_, n) => n !== at)
    .map((trigger) => put(trigger, 'dependencies', list(trigger, 'dependencies').filter((one) => identity(one) !== gone)));
}

/** asDependency names a trigger as a dependency does. */
export const asDependency = (trigger: Fields): Fields =>
  put({ name: text(trigger, 'name'), expression: text(trigger, 'expression') }, 'recovery_expression', text(trigger, 'recovery_expression'));

export const dependsOn = (trigger: Fields, other: Fields): boolean => list(trigger, 'dependencies').some((one) => identity(one) === identity(other));

/** renameKey puts a new key in the expressions of triggers that name the item of this host or template. */
export function renameKey(triggers: Fields[], technical: string, from: string, to: string): Fields[] {
  const old = `/${technical}/${from}`;
  const swap = (expression: string): string => {
    let out = '';
    for (let at = 0; ; ) {
      const found = expression.indexOf(old, at);
      if (found < 0) return out + expression.slice(at);
      const end = found + old.length;
      // The key ends here only when what follows ends a key.
      out += expression.slice(at, found) + (/^[,)\s]/.test(expression.slice(end)) || end === expression.length ? `/${technical}/${to}` : old);
      at = end;
    }
  };
  return triggers.map((trigger) => {
    let next = trigger;
    for (const key of ['expression', 'recovery_expression']) if (text(trigger, key) !== '') next = put(next, key, swap(text(trigger, key)));
    const depends = list(trigger, 'dependencies').map((one) => put({ ...one, expression: swap(text(one, 'expression')) }, 'recovery_expression', swap(text(one, 'recovery_expression'))));
    return put(next, 'dependencies', depends);
  });
}

/** Mistakes of one object: by field, and "" for those of the whole. */
export type Mistakes = Record<string, string[]>;

/** mistakesOf picks the remarks below a path. Some name their field only in their words. */
export function mistakesOf(remarks: Remark[], base: string, fields: string[] = []): Mistakes {
  const found: Mistakes = {};
  for (const remark of remarks) {
    const at = remark.at ?? '';
    if (at !== base && !at.startsWith(`${base}.`) && !at.startsWith(`${base}[`)) continue;
    let field = at.slice(base.length).replace(/^\./, '');
    if (field === '') {
      const first = /^[a-z_]+/.exec(remark.reason)?.[0] ?? '';
      field = fields.includes(first) ? first : (fields.find((one) => new RegExp(`\\b${one}\\b`).test(remark.reason)) ?? '');
    }
    const top = field.replace(/[.[].*$/, '');
    const name = fields.includes(field) || top === 'preprocessing' ? field : top;
    const words = plain(remark.reason, name === '' ? '' : top === '' ? name : top);
    const list = (found[name] ??= []);
    if (!list.includes(words)) list.push(words);
  }
  return found;
}

/** plain leaves out what an import says of the object and a form shows by itself. */
export function plain(reason: string, field = ''): string {
  const words = reason.replace(/; not taken$/, '');
  return field !== '' && words.startsWith(`${field}: `) ? words.slice(field.length + 2) : words;
}

/** serious tells mistakes for which a document is not taken from warnings. */
export const serious = (remarks: Remark[]): Remark[] => remarks.filter((remark) => remark.refused === true);

/** isFresh reports whether the server does not have the object yet; by names what kept has of each that it has. New ones stand at the end. */
export function isFresh(objects: Fields[], at: number, kept: string[], by = 'key'): boolean {
  return at >= kept.length || (objects.length <= kept.length && !kept.includes(text(objects[at], by)) && text(objects[at], 'name') === '');
}

/** untouched are the paths of objects that were only just added: what is still empty in them is no mistake before saving is tried. */
export function untouched(path: string, objects: Fields[], kept: string[], by = 'key'): string[] {
  return objects.flatMap((one, n) => (text(one, 'name') === '' && (by === 'name' || text(one, by) === '') && isFresh(objects, n, kept, by) ? [`${path}[${n}]`] : []));
}
