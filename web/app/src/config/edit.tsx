// One host or template: its tabs, what is changed and not saved yet, and saving.

import { useEffect, useRef, useState } from 'preact/hooks';
import { type Applied, type Configuration, getConfiguration, getDocument, getYaml, type Kind, planDocument, putDocument, type Remark } from '../api/configuration.ts';
import { plural } from '../format/number.ts';
import { Form, said } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLater, useLoad, useTitle } from '../part/load.ts';
import { Failure, Refusal } from '../part/notice.tsx';
import { Scenarios } from '../part/scenarios.tsx';
import { useCell } from '../state/cell.ts';
import { mayEdit, me } from '../state/me.ts';
import { go, href } from '../state/route.ts';
import { type Doc, type Fields, list, loosen, names, owner, put, putOwner, putTriggers, renameKey, same, serious, text, triggersOf, untouched } from './document.ts';
import { General, Macros } from './general.tsx';
import { Items } from './items.tsx';
import { Rules } from './rules.tsx';
import { Triggers } from './triggers.tsx';

export const EDIT_TABS: Record<string, string> = { '': 'General', items: 'Items', triggers: 'Triggers', rules: 'Discovery', web: 'Web', macros: 'Macros', text: 'As text' };

/** kept holds what was changed and not saved, while other pages are looked at. */
const kept = new Map<string, { draft: Doc; base: Doc; revision: string }>();

interface Props {
  kind: Kind;
  name: string;
  tab: string;
}

export function EditView({ kind, name, tab }: Props) {
  const all = mayEdit(useCell(me));
  const known = useLoad((signal) => getConfiguration(signal), []);
  const loaded = useLoad(async (signal) => {
    const answer = await getDocument(kind, name, signal);
    return { ...answer, document: loosen(answer.document, kind) };
  }, [kind, name]);
  useTitle(`${name}, configuration`);
  const place = `/configuration/${kind}s/${encodeURIComponent(name)}`;
  return (
    <div class="page config">
      <div class="title-line">
        <h1>{name}</h1>
        <span class="muted">{kind}</span>
        {loaded.data?.id !== undefined && <Link to={`/hosts/${loaded.data.id}`} class="text-link">see its values</Link>}
        <Link to={kind === 'host' ? '/configuration' : '/configuration/templates'} class="title-end text-link">
          all {kind}s
        </Link>
      </div>
      <nav class="tabs" aria-label={`Configuration of ${name}`}>
        {Object.entries(EDIT_TABS).filter(([path]) => kind === 'host' || path !== 'web').map(([path, title]) => (
          <Link key={path} to={path === '' ? place : `${place}/${path}`} current={tab === path}>
            {title}
          </Link>
        ))}
      </nav>
      {loaded.error !== null && <Failure error={loaded.error} retry={loaded.reload} />}
      {loaded.data !== null && known.data !== null && <Editor key={loaded.data.revision} kind={kind} name={name} tab={tab} base={loaded.data.document} revision={loaded.data.revision} known={known.data} reload={loaded.reload} />}
      {tab === 'web' && kind === 'host' && loaded.data?.id !== undefined && <Scenarios key={loaded.data.revision} host={loaded.data.id} edit={all ? `${place}/text` : undefined} />}
      {known.error !== null && <Failure error={known.error} retry={known.reload} />}
    </div>
  );
}

interface EditorProps extends Props {
  base: Doc;
  revision: string;
  known: Configuration;
  reload: () => void;
}

function Editor({ kind, name, tab, base, revision, known, reload }: EditorProps) {
  const key = `${kind}/${name}`;
  const [draft, setDraft] = useState<Doc>(() => {
    const before = kept.get(key);
    return before !== undefined && before.revision === revision ? before.draft : base;
  });
  const [remarks, setRemarks] = useState<Remark[]>([]);
  const [plan, setPlan] = useState<Applied | null>(null);
  const [message, setMessage] = useState('');
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const changed = !same(draft, base);
  const settled = useLater(draft, 300);
  const newest = useRef(draft);
  newest.current = draft;

  useEffect(() => {
    if (changed) kept.set(key, { draft, base, revision });
    else kept.delete(key);
    if (!changed) return;
    const warn = (event: Event): void => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [draft]);

  useEffect(() => {
    const abort = new AbortController();
    planDocument(kind, name, settled, false, abort.signal)
      .then((answer) => {
        setPlan(answer);
        setRemarks(answer.report.remarks);
      })
      .catch((error: unknown) => !abort.signal.aborted && setFailure(said(error)));
    return () => abort.abort();
  }, [settled]);

  const change = (doc: Doc): void => {
    setDraft(doc);
    setMessage('');
    setFailure('');
  };
  const save = async (): Promise<void> => {
    setBusy(true);
    setTried(true);
    setFailure('');
    try {
      const answer = await putDocument(kind, name, JSON.stringify(draft), revision);
      if (answer.refused !== undefined) {
        setRemarks(answer.report.remarks);
        setFailure(answer.refused);
      } else {
        kept.delete(key);
        saved.set(key, summary(answer) || 'Saved.');
        reload();
      }
    } catch (error) {
      setFailure(said(error));
    }
    setBusy(false);
  };
  useEffect(() => {
    const text = saved.get(key);
    saved.delete(key);
    if (text !== undefined) setMessage(text);
  }, []);

  const fields = owner(draft, kind);
  const technical = text(fields, kind, name);
  const setFields = (next: typeof fields): void => change(putOwner(draft, kind, next));
  const keys = list(fields, 'items').map((item) => text(item, 'key'));
  // An item and the triggers that name it change together.
  const setItems = (items: typeof fields[]): void => change(putOwner(newest.current, kind, put(fields, 'items', items)));
  const renamed = (items: typeof fields[], from: string, to: string): void =>
    change(putTriggers(putOwner(draft, kind, put(fields, 'items', items)), from === '' || to === '' ? triggersOf(draft) : renameKey(triggersOf(draft), technical, from, to)));
  let nextItems: typeof fields[] = [];
  const keptKeys = list(owner(base, kind), 'items').map((item) => text(item, 'key'));
  const keptRules = list(owner(base, kind), 'discovery_rules');
  const keptTriggers = triggersOf(base).map((one) => text(one, 'name'));
  const rules = list(fields, 'discovery_rules');
  const blank = [
    ...untouched(`${kind}s[0].items`, list(fields, 'items'), keptKeys),
    ...untouched(`${kind}s[0].discovery_rules`, rules, keptRules.map((one) => text(one, 'key'))),
    ...untouched('triggers', triggersOf(draft), keptTriggers, 'name'),
    ...rules.flatMap((rule, n) => untouchedPrototypes(`${kind}s[0].discovery_rules[${n}]`, rule, keptRules)),
  ];
  const shown = tried ? remarks : remarks.filter((remark) => !blank.some((at) => (remark.at ?? '').startsWith(at)));
  return (
    <>
      {tab === '' && <General kind={kind} fields={fields} set={setFields} remarks={remarks} known={known} failed={setFailure} />}
      {tab === 'items' && (
        <Items
          path={`${kind}s[0].items`}
          items={list(fields, 'items')}
          set={(items) => {
            nextItems = items;
            setItems(items);
          }}
          renamed={(from, to) => renamed(nextItems, from, to)}
          remarks={remarks}
          param="item"
          what="item"
          kept={keptKeys}
          tried={tried}
          tested={{ kind, doc: draft, technical }}
        />
      )}
      {tab === 'triggers' && (
        <Triggers path="triggers" triggers={triggersOf(draft)} set={(triggers) => change(putTriggers(draft, triggers))} remarks={remarks} param="trigger" what="trigger" technical={technical} example={keys[0]} kept={keptTriggers} tried={tried} tested={{ kind, doc: draft }} />
      )}
      {['items', 'triggers', 'rules'].includes(tab) && <Inherited kind={kind} fields={fields} what={tab === 'rules' ? 'discovery rules' : tab} />}
      {tab === 'rules' && <Rules path={`${kind}s[0].discovery_rules`} rules={list(fields, 'discovery_rules')} set={(rules) => setFields(put(fields, 'discovery_rules', rules))} remarks={remarks} technical={technical} keys={keys} kept={keptRules} tried={tried} />}
      {tab === 'macros' && <Macros fields={fields} set={setFields} remarks={remarks} path={`${kind}s[0]`} />}
      {tab === 'text' && <AsText kind={kind} name={name} revision={revision} changed={changed} reload={reload} />}
      <Refusal text={failure} />
      {message !== '' && !changed && <p role="status">{message}</p>}
      {changed && tab !== 'text' && (
        <div class="save-bar" role="region" aria-label="Changes that are not saved">
          <span>
            {serious(shown).length > 0 ? (
              <b class="problem-text">{plural(serious(shown).length, 'mistake')} to put right: {firstMistake(shown)}</b>
            ) : (
              (plan !== null && summary(plan)) || 'Changed.'
            )}
          </span>
          <span class="row-buttons">
            <button type="button" onClick={() => change(base)}>
              Discard
            </button>
            <button type="button" class="primary" disabled={busy} onClick={() => void save()}>
              Save
            </button>
          </span>
        </div>
      )}
    </>
  );
}

function untouchedPrototypes(path: string, rule: Fields, keptRules: Fields[]): string[] {
  const kept = keptRules.find((one) => text(one, 'key') === text(rule, 'key')) ?? {};
  return [
    ...untouched(`${path}.item_prototypes`, list(rule, 'item_prototypes'), list(kept, 'item_prototypes').map((one) => text(one, 'key'))),
    ...untouched(`${path}.trigger_prototypes`, list(rule, 'trigger_prototypes'), list(kept, 'trigger_prototypes').map((one) => text(one, 'name')), 'name'),
  ];
}

/** Inherited says where a host or template has more from. */
function Inherited({ kind, fields, what }: { kind: Kind; fields: Fields; what: string }) {
  const all = mayEdit(useCell(me));
  const templates = names(fields, 'templates');
  if (templates.length === 0) return null;
  return (
    <p class="muted">
      The {kind} also has the {what} of its templates, {all ? 'which are changed there' : 'which only people may change who may change all hosts'}:{' '}
      {templates.map((name, n) => (
        <span key={name}>
          {n > 0 && ', '}
          {all ? <Link to={`/configuration/templates/${encodeURIComponent(name)}/${what === 'discovery rules' ? 'rules' : what}`}>{name}</Link> : name}
        </span>
      ))}
      .
    </p>
  );
}

/** saved is what to say after the document was loaded again. */
const saved = new Map<string, string>();

const firstMistake = (remarks: Remark[]): string => {
  const first = serious(remarks)[0];
  return first === undefined ? '' : `${first.path}: ${first.reason.replace(/; not taken$/, '')}`;
};

/** summary says what a change does, in words. */
export function summary(answer: Applied): string {
  const counts = new Map<string, number>();
  for (const { what, kind } of answer.report.objects ?? []) counts.set(`${kind} ${what}`, (counts.get(`${kind} ${what}`) ?? 0) + 1);
  return [...counts].map(([words, n]) => (n === 1 ? `1 ${words.replace(/^(.*?)s? (created|updated|deleted)$/, '$1 $2')}` : `${n} ${words}`)).join(', ');
}

function AsText({ kind, name, revision, changed, reload }: { kind: Kind; name: string; revision: string; changed: boolean; reload: () => void }) {
  const yaml = useLoad((signal) => getYaml(kind, name, signal), [revision]);
  const [edited, setEdited] = useState<string | null>(null);
  const all = mayEdit(useCell(me));
  if (yaml.error !== null) return <Failure error={yaml.error} retry={yaml.reload} />;
  if (yaml.data === null) return null;
  if (!all) {
    return (
      <>
        <p class="muted">To read and to copy. Saving it as text needs the role editor on all hosts; the other tabs save what you may change.</p>
        <form class="form" onSubmit={(event) => event.preventDefault()}>
          <label class="field text-field">
            <span>{`${kind} ${name} as YAML`}</span>
            <textarea value={yaml.data} rows={30} spellcheck={false} readOnly />
          </label>
        </form>
      </>
    );
  }
  const run = async (): Promise<void> => {
    const answer = await putDocument(kind, name, edited ?? yaml.data!, revision, true);
    if (answer.refused !== undefined) {
      throw { detail: `Nothing was changed. ${serious(answer.report.remarks).map((one) => `Line ${one.line}: ${one.path}: ${one.reason}`).join(' · ') || answer.refused}` };
    }
    saved.set(`${kind}/${name}`, summary(answer) || 'Saved; nothing was different.');
    go(href(`/configuration/${kind}s/${encodeURIComponent(name)}`));
    reload();
  };
  return (
    <>
      <p class="muted">
        The same as the file that tidemark export and import use. What is taken out here is deleted.
        {changed && ' Changes in the forms that are not saved are not in it.'}
      </p>
      <Form submit="Save" run={run}>
        <label class="field text-field">
          <span>{`${kind} ${name} as YAML`}</span>
          <textarea value={edited ?? yaml.data} rows={30} spellcheck={false} onInput={(event) => setEdited(event.currentTarget.value)} />
        </label>
      </Form>
    </>
  );
}
