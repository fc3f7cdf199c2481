// Calls about the configuration of hosts and templates. A document is what an export holds of one of them.

import type { Doc } from '../config/document.ts';
import { ApiError, get, send } from './client.ts';

export type Kind = 'host' | 'template';

export interface TemplateRow {
  id: string;
  template: string;
  name: string;
  items: number;
  triggers: number;
  hosts: number;
}

export interface Configuration {
  templates: TemplateRow[];
  host_groups: string[];
  proxies: string[];
  global_macros: GlobalMacro[];
}

/** A macro that holds for all hosts; a secret one has no value. */
export interface GlobalMacro {
  macro: string;
  value?: string;
  secret?: boolean;
}

/** A remark is about one place: at is a path such as hosts[0].items[3].delay. Without refused the object is taken all the same. */
export interface Remark {
  path: string;
  line: number;
  reason: string;
  at?: string;
  refused?: boolean;
}

export interface Report {
  counts: { kind: string; created: number; updated: number; unchanged: number; deleted?: number; refused?: number }[];
  remarks: Remark[];
  objects?: { what: 'created' | 'updated' | 'deleted'; kind: string; owner?: string; name: string }[];
  more_remarks?: number;
}

export interface Applied {
  report: Report;
  revision?: string;
  id?: string;
  /** Why nothing was changed; the report has the mistakes. */
  refused?: string;
}

export const getConfiguration = (signal?: AbortSignal): Promise<Configuration> => get('the templates', '/api/configuration', {}, signal);

const place = (kind: Kind, name?: string): string => `/api/configuration/${kind}s${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;

export const getDocument = (kind: Kind, name: string, signal?: AbortSignal): Promise<{ document: Doc; revision: string; id?: string }> =>
  get(`the ${kind} ${name}`, place(kind, name), {}, signal);

export const deleteDocument = (kind: Kind, name: string): Promise<unknown> => send(`delete the ${kind}`, 'DELETE', place(kind, name));

/** The server may have to bring a change to thousands of hosts. */
const CHANGE_MS = 300_000;

async function change(what: string, method: string, path: string, body: string, yaml: boolean, signal?: AbortSignal): Promise<Applied> {
  const timeout = AbortSignal.timeout(CHANGE_MS);
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      body,
      headers: { accept: 'application/json', 'content-type': yaml ? 'application/yaml' : 'application/json' },
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(what, 'the server cannot be reached', 0);
  }
  const answer = (await response.json().catch(() => ({}))) as Applied & { error?: { message?: string } };
  if (response.status === 422 && answer.report !== undefined) return { ...answer, refused: answer.error?.message ?? 'refused' };
  if (!response.ok) throw new ApiError(what, answer.error?.message ?? `the server answered ${response.status}`, response.status);
  return answer;
}

export const createDocument = (kind: Kind, doc: Doc): Promise<Applied> => change(`make the ${kind}`, 'POST', place(kind), JSON.stringify(doc), false);

export const putDocument = (kind: Kind, name: string, text: string, revision: string, yaml = false): Promise<Applied> =>
  change(`save the ${kind}`, 'PUT', `${place(kind, name)}?revision=${encodeURIComponent(revision)}`, text, yaml);

/** planDocument says what saving a document would do. */
export const planDocument = (kind: Kind, name: string, doc: Doc, create: boolean, signal?: AbortSignal): Promise<Applied> =>
  change('check the changes', 'POST', `/api/configuration/plan?exact=true&kind=${kind}&name=${encodeURIComponent(name)}&create=${create}`, JSON.stringify(doc), false, signal);

const yamlText = (text: string): boolean => !text.trimStart().startsWith('{');

/** planImport and applyImport take a file of hosts and templates. */
export const planImport = (text: string): Promise<Applied> => change('read the file', 'POST', '/api/configuration/plan', text, yamlText(text));

export const applyImport = async (text: string): Promise<Report> =>
  (await change('import the file', 'POST', '/api/import', text, yamlText(text))) as unknown as Report;

export async function getYaml(kind: Kind, name: string, signal?: AbortSignal): Promise<string> {
  const response = await fetch(exportAddress(kind, name), { signal });
  if (!response.ok) throw new ApiError(`the ${kind} ${name}`, `the server answered ${response.status}`, response.status);
  return response.text();
}

export const exportAddress = (kind: Kind, name: string): string => `/api/export?${kind}=${encodeURIComponent(name)}`;

export interface TestedStep {
  number: number;
  name: string;
  value: string;
  discarded?: boolean;
  error?: string;
}

export interface Tested {
  collected?: string;
  collect_error?: string;
  milliseconds?: number;
  steps: TestedStep[];
  value: string;
  value_type: string;
  discarded?: boolean;
  error?: string;
}

export const testItem = (body: { document: Doc; host?: string; key: string; value?: string; previous?: string; seconds_before?: number }): Promise<Tested> =>
  send('test the item', 'POST', '/api/configuration/test-item', body);

export interface Preview {
  from: number;
  to: number;
  expression: string;
  fired: number;
  problems: { from: number; to?: number }[];
  unknown?: string;
  items: { id: string; host: string; key: string; values_from?: number }[];
  values: number;
}

export const previewTrigger = (body: { document: Doc; host: string; trigger: string; expression: string; from?: number; to?: number }): Promise<Preview> =>
  send('try the trigger', 'POST', '/api/configuration/preview-trigger', body);

export interface Purge {
  items: number;
  token?: string;
  confirm?: string;
  expires_at?: number;
  purged: boolean;
}

export const purge = (body: { host: string; key?: string; token?: string; confirm?: string }): Promise<Purge> => send('delete the history', 'POST', '/api/purge', body);

export interface GlobalExpression {
  expression: string;
  expression_type: string;
  exp_delimiter?: string;
  case_sensitive?: boolean;
}

/** putGlobalMacro makes a macro or gives it another value; without a value a secret one keeps its own. */
export const putGlobalMacro = (name: string, body: { value?: string; secret: boolean }): Promise<GlobalMacro> => send('save the macro', 'PUT', `/api/global-macros/${encodeURIComponent(name)}`, body);

export const deleteGlobalMacro = (name: string): Promise<unknown> => send('delete the macro', 'DELETE', `/api/global-macros/${encodeURIComponent(name)}`);

export interface GlobalRegexp {
  name: string;
  test_string?: string;
  expressions: GlobalExpression[];
  /** It comes with the product. */
  default?: boolean;
}

export const getRegexps = (signal?: AbortSignal): Promise<{ regexps: GlobalRegexp[] }> => get('the global regular expressions', '/api/regexps', {}, signal);

/** stored is what the server takes of a regular expression. */
const stored = ({ name, test_string, expressions }: GlobalRegexp): GlobalRegexp => ({ name, expressions, ...(test_string === undefined ? {} : { test_string }) });

export const putRegexp = (one: GlobalRegexp): Promise<unknown> => send('save the regular expression', 'PUT', `/api/regexps/${encodeURIComponent(one.name)}`, stored(one));

export const deleteRegexp = (name: string): Promise<unknown> => send('delete the regular expression', 'DELETE', `/api/regexps/${encodeURIComponent(name)}`);

export const testRegexp = (one: GlobalRegexp, text: string): Promise<{ matches: boolean; each: boolean[] }> => send('try the regular expression', 'POST', '/api/regexp-test', { ...stored(one), text });

export const setPSK = (id: string, identity: string, psk: string): Promise<unknown> =>
  send('set the pre-shared key', 'PUT', `/api/hosts/${id}/tls`, { connect: 'psk', accept: ['psk'], psk_identity: identity, psk });
