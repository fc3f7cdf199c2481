// Global regular expressions: list, edit, and what they make of a text.

import { useState } from 'preact/hooks';
import { deleteRegexp, type GlobalExpression, type GlobalRegexp, getRegexps, putRegexp, testRegexp } from '../api/configuration.ts';
import { Check, Field, Form, said, Sure } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { useLoad } from '../part/load.ts';
import { Empty, Failure, Refusal } from '../part/notice.tsx';
import { Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';
import { Pick } from './parts.tsx';

const KINDS: [string, string][] = [
  ['included', 'contains'],
  ['any_included', 'contains any of'],
  ['not_included', 'does not contain'],
  ['result_true', 'matches'],
  ['result_false', 'does not match'],
];
const DELIMITERS: [string, string][] = [
  [',', 'comma'],
  ['.', 'dot'],
  ['/', 'slash'],
];
const BLANK: GlobalExpression = { expression: '', expression_type: 'result_true', case_sensitive: true };

const kindOf = (type: string): string => KINDS.find(([one]) => one === type)?.[1] ?? type;

export function GlobalRegexps() {
  const regexps = useLoad((signal) => getRegexps(signal), []);
  const { params } = useCell(route);
  const [failure, setFailure] = useState('');
  const close = (): void => setParams({ regexp: '', fresh: '' });
  if (regexps.error !== null) return <Failure error={regexps.error} retry={regexps.reload} />;
  if (regexps.data === null) return null;
  const rows = regexps.data.regexps;
  const open = params.get('regexp');
  const found = rows.find((row) => row.name === open);
  const done = (): void => {
    close();
    regexps.reload();
  };
  if (params.get('fresh') === 'regexp') return <RegexpForm key="new" taken={rows.map((row) => row.name)} done={done} cancel={close} />;
  if (found !== undefined) return <RegexpForm key={found.name} regexp={found} taken={[]} done={done} cancel={close} />;
  return (
    <section aria-label="Global regular expressions">
      <div>
        <button type="button" onClick={() => setParams({ fresh: 'regexp' }, false)}>
          New regular expression
        </button>
      </div>
      <Refusal text={failure} />
      {open !== null && <p role="status">There is no regular expression {open}.</p>}
      {rows.length === 0 ? (
        <Empty title="There are no global regular expressions.">
          <p class="muted">Filters of discovery rules and functions of triggers name one with @ before its name.</p>
        </Empty>
      ) : (
        <Table
          caption="Global regular expressions"
          rows={rows}
          rowKey={(row) => row.name}
          columns={[
            {
              id: 'name',
              title: 'Name',
              class: 'anywhere roomy',
              cell: (row) => (
                <Link to="/configuration/macros" query={{ regexp: row.name }}>
                  <code>@{row.name}</code>
                </Link>
              ),
              sort: (row) => row.name,
            },
            { id: 'expressions', title: 'Is true when the text', class: 'anywhere', cell: (row) => <Words expressions={row.expressions} /> },
            {
              id: 'from',
              title: '',
              number: true,
              cell: (row) => (row.default ? <span class="muted">built in</span> : <Sure label="Delete" again={`Delete ${row.name}?`} run={() => deleteRegexp(row.name).then(regexps.reload)} failed={setFailure} />),
            },
          ]}
          sort="name"
        />
      )}
    </section>
  );
}

const Words = ({ expressions }: { expressions: GlobalExpression[] }) => (
  <>
    {expressions.map((one, n) => (
      <span key={n}>
        {n > 0 && ' and '}
        {kindOf(one.expression_type)} <code>{one.expression}</code>
      </span>
    ))}
  </>
);

interface FormProps {
  /** Missing for a new one. */
  regexp?: GlobalRegexp;
  taken: string[];
  done: () => void;
  cancel: () => void;
}

function RegexpForm({ regexp, taken, done, cancel }: FormProps) {
  const [name, setName] = useState(regexp?.name ?? '');
  const [expressions, setExpressions] = useState<GlobalExpression[]>(regexp?.expressions ?? [BLANK]);
  const [text, setText] = useState(regexp?.test_string ?? '');
  const change = (at: number, next: Partial<GlobalExpression>): void => setExpressions(expressions.map((one, n) => (n === at ? { ...one, ...next } : one)));
  const body: GlobalRegexp = { name, expressions, ...(text === '' ? {} : { test_string: text }) };
  const run = async (): Promise<void> => {
    if (taken.includes(name)) throw { detail: `there is a regular expression ${name} already; choose another name` };
    await putRegexp(body);
    done();
  };
  const title = regexp === undefined ? 'New regular expression' : `Regular expression ${regexp.name}`;
  return (
    <section class="object" aria-label={title}>
      <h2>{title}</h2>
      {regexp?.default === true && <p class="muted">It comes with the product. What you save goes in its place; deleting that brings it back.</p>}
      <Form submit="Save" run={run} cancel={cancel}>
        {regexp === undefined && <Field label="Name" value={name} set={setName} focus hint="Filters and triggers name it as @ with this name." />}
        <p class="muted">It is true when all of these are.</p>
        {expressions.map((one, n) => (
          <fieldset key={n}>
            <legend>Expression {n + 1}</legend>
            <Pick label="The text" value={one.expression_type} options={KINDS} set={(type) => change(n, { expression_type: type, exp_delimiter: type === 'any_included' ? (one.exp_delimiter ?? ',') : undefined })} />
            <Field label={one.expression_type.startsWith('result') ? 'Regular expression' : one.expression_type === 'any_included' ? 'Texts' : 'Text'} value={one.expression} set={(expression) => change(n, { expression })} focus={regexp !== undefined && n === 0} />
            {one.expression_type === 'any_included' && <Pick label="Between the texts" value={one.exp_delimiter ?? ','} options={DELIMITERS} set={(exp_delimiter) => change(n, { exp_delimiter })} />}
            <Check label="Upper and lower case differ" value={one.case_sensitive ?? false} set={(case_sensitive) => change(n, { case_sensitive })} />
            {expressions.length > 1 && (
              <button type="button" class="small" aria-label={`Remove expression ${n + 1}`} onClick={() => setExpressions(expressions.filter((_, other) => other !== n))}>
                Remove
              </button>
            )}
          </fieldset>
        ))}
        <div>
          <button type="button" class="small" onClick={() => setExpressions([...expressions, BLANK])}>
            Add an expression
          </button>
        </div>
        <Try text={text} set={setText} body={body} />
      </Form>
    </section>
  );
}

/** Try asks the server what the expressions make of a text; nothing is stored. */
function Try({ text, set, body }: { text: string; set: (text: string) => void; body: GlobalRegexp }) {
  const [outcome, setOutcome] = useState<{ of: string; words: string; each: boolean[] } | null>(null);
  const asked = JSON.stringify(body);
  const run = async (): Promise<void> => {
    try {
      const { matches, each } = await testRegexp(body, text);
      setOutcome({ of: asked, words: matches ? 'True for this text.' : 'Not true for this text.', each });
    } catch (error) {
      setOutcome({ of: asked, words: said(error), each: [] });
    }
  };
  const wrong = (outcome?.each ?? []).flatMap((ok, n) => (ok ? [] : [n + 1]));
  return (
    <fieldset>
      <legend>Try it</legend>
      <Field label="Text to try it with" value={text} set={set} required={false} />
      <button type="button" class="small" onClick={() => void run()}>
        Try
      </button>
      <p role="status">
        {outcome !== null && outcome.of === asked && (
          <>
            <b>{outcome.words}</b> {wrong.length > 0 && <span class="muted">Not fulfilled: expression {wrong.join(', ')}.</span>}
          </>
        )}
      </p>
    </fieldset>
  );
}
