// Global macros: list, make, change and delete them. Values of secret ones are never shown.

import { useState } from 'preact/hooks';
import { deleteGlobalMacro, type GlobalMacro, putGlobalMacro } from '../api/configuration.ts';
import { Check, Field, Form, Sure } from '../part/form.tsx';
import { Link } from '../part/link.tsx';
import { Empty, Refusal } from '../part/notice.tsx';
import { Table } from '../part/table.tsx';
import { useCell } from '../state/cell.ts';
import { route, setParams } from '../state/route.ts';

interface Props {
  macros: GlobalMacro[];
  /** Called when they changed. */
  changed: () => void;
}

export function GlobalMacros({ macros, changed }: Props) {
  const { params } = useCell(route);
  const [failure, setFailure] = useState('');
  const open = params.get('macro');
  const found = macros.find((row) => row.macro === open);
  const close = (): void => setParams({ macro: '', fresh: '' });
  const done = (): void => {
    close();
    changed();
  };
  if (params.get('fresh') === 'macro') return <MacroForm key="new" taken={macros.map((row) => row.macro)} done={done} cancel={close} />;
  if (found !== undefined) return <MacroForm key={found.macro} macro={found} taken={[]} done={done} cancel={close} />;
  return (
    <section aria-label="Global macros">
      <h2>Global macros</h2>
      <p class="muted">They hold for all hosts, unless the host or a template of it has a macro of the same name.</p>
      <div>
        <button type="button" onClick={() => setParams({ fresh: 'macro' }, false)}>
          New macro
        </button>
      </div>
      <Refusal text={failure} />
      {open !== null && <p role="status">There is no macro {open}.</p>}
      {macros.length === 0 ? (
        <Empty title="There are no global macros.">
          <p class="muted">Make one for what many hosts share, such as a threshold or a password; an import from a Zabbix database brings its own.</p>
        </Empty>
      ) : (
        <Table
          caption="Global macros"
          rows={macros}
          rowKey={(row) => row.macro}
          columns={[
            {
              id: 'macro',
              title: 'Macro',
              class: 'anywhere roomy',
              cell: (row) => (
                <Link to="/configuration/macros" query={{ macro: row.macro }}>
                  <code>{row.macro}</code>
                </Link>
              ),
              sort: (row) => row.macro,
            },
            { id: 'value', title: 'Value', class: 'anywhere', cell: (row) => (row.secret ? <span class="muted">secret</span> : row.value) },
            { id: 'end', title: '', number: true, cell: (row) => <Sure label="Delete" again={`Delete ${row.macro}?`} run={() => deleteGlobalMacro(row.macro).then(changed)} failed={setFailure} /> },
          ]}
          sort="macro"
        />
      )}
    </section>
  );
}

interface FormProps {
  /** Missing for a new one. */
  macro?: GlobalMacro;
  taken: string[];
  done: () => void;
  cancel: () => void;
}

function MacroForm({ macro, taken, done, cancel }: FormProps) {
  const [name, setName] = useState(macro?.macro ?? '');
  const [value, setValue] = useState(macro?.value ?? '');
  const [secret, setSecret] = useState(macro?.secret ?? false);
  const keeps = macro?.secret === true && secret;
  const run = async (): Promise<void> => {
    if (taken.includes(name)) throw { detail: `there is a macro ${name} already; choose another name` };
    await putGlobalMacro(name, keeps && value === '' ? { secret } : { value, secret });
    done();
  };
  const title = macro === undefined ? 'New global macro' : `Global macro ${macro.macro}`;
  return (
    <section class="object" aria-label={title}>
      <h2>{title}</h2>
      <Form submit="Save" run={run} cancel={cancel}>
        {macro === undefined && <Field label="Name" value={name} set={setName} focus hint="{$NAME}, or {$NAME:context} for one case of it. The name stays." />}
        <Field
          label="Value"
          value={value}
          set={setValue}
          type={secret ? 'password' : 'text'}
          autocomplete={secret ? 'new-password' : 'off'}
          required={false}
          focus={macro !== undefined}
          hint={keeps ? 'Left empty, it keeps the value that it has.' : macro?.secret === true ? 'What was secret is not shown; give the value again.' : undefined}
        />
        <Check label="Secret: it is never shown again" value={secret} set={setSecret} />
      </Form>
    </section>
  );
}
