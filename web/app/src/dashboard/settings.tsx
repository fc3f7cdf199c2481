// What belongs to a dashboard as a whole: its name, who sees it, its range and its variables.

import { useState } from 'preact/hooks';
import type { Dashboard, Variable, VariableKind } from '../api/dashboards.ts';
import type { Host } from '../api/types.ts';
import { Choice, Field, Form } from '../part/form.tsx';
import { Dialog } from './dialog.tsx';
import { useCell } from '../state/cell.ts';
import { type Me, mayEdit, mayEditSome, me } from '../state/me.ts';
import { tidy } from './tidy.ts';
import { groupNames } from './widgetform.tsx';

const KINDS: VariableKind[] = ['host', 'group', 'label', 'list'];
const MAX_VARIABLES = 10;

interface Props {
  dashboard: Dashboard;
  hosts: Host[];
  done: (dashboard: Dashboard) => void;
  close: () => void;
}

export function SettingsForm({ dashboard: first, hosts, done, close }: Props) {
  const [dashboard, setDashboard] = useState(first);
  const set = (change: Partial<Dashboard>): void => setDashboard((old) => ({ ...old, ...change }));
  const variables = dashboard.variables ?? [];
  const change = (n: number, part: Partial<Variable>): void => set({ variables: variables.map((one, at) => (at === n ? { ...one, ...part } : one)) });
  const run = async (): Promise<void> => {
    const wrong = variables.find((one) => !/^[a-z][a-z0-9_]{0,31}$/.test(one.name));
    if (wrong !== undefined) throw new Error(`“${wrong.name}” is no name for a variable: a small letter, then small letters, digits and _.`);
    done({ ...tidy(dashboard), widgets: dashboard.widgets });
  };
  return (
    <Dialog title="About the dashboard" close={close}>
      <Form submit="Take over" run={run} cancel={close}>
        <Field label="Name" value={dashboard.name} focus set={(name) => set({ name: name.trimStart() })} />
        <Field label="Description" value={dashboard.description ?? ''} required={false} set={(description) => set({ description })} />
        <Field label="Time range" value={dashboard.range ?? ''} required={false} hint="That it opens with, such as 6h; empty for the page's own." set={(range) => set({ range })} />
        <Field label="Ask queries again every … seconds" value={String(dashboard.refresh_seconds ?? '')} required={false} hint="5 to 3,600; empty for 10." set={(text) => set({ refresh_seconds: Number(text) || undefined })} />
        <Sharing dashboard={dashboard} set={set} />
        <fieldset>
          <legend>Variables: $name in a widget stands for what is chosen</legend>
          {variables.map((one, n) => (
            <div class="variable" key={n}>
              <div class="item-line">
                <Field label={`Name of variable ${n + 1}`} value={one.name} set={(name) => change(n, { name })} />
                <Choice label="Chooses" value={one.kind} options={KINDS} set={(kind) => change(n, { kind, group: undefined, label: undefined, match: undefined, values: undefined })} />
                <Field label="Title" value={one.title ?? ''} required={false} set={(title) => change(n, { title })} />
                <button type="button" class="small" aria-label={`Remove variable ${n + 1}`} onClick={() => set({ variables: variables.filter((_one, at) => at !== n) })}>
                  Remove
                </button>
              </div>
              <div class="item-line">
                {one.kind === 'host' && <Field label="Only hosts of the group" value={one.group ?? ''} required={false} hint={groupNames(hosts).slice(0, 4).join(', ')} set={(group) => change(n, { group })} />}
                {one.kind === 'label' && <Field label="Label" value={one.label ?? ''} set={(label) => change(n, { label })} />}
                {one.kind === 'label' && <Field label="Of the series" value={one.match ?? ''} required={false} hint={'{__name__="net_if_in"}'} set={(match) => change(n, { match })} />}
                {one.kind === 'list' && <Field label="Choices, with commas between" value={(one.values ?? []).join(', ')} set={(text) => change(n, { values: text.split(',').map((value) => value.trim()) })} />}
                <Field label="At first" value={one.default ?? ''} required={false} hint="Empty for the first choice." set={(value) => change(n, { default: value })} />
              </div>
            </div>
          ))}
          {variables.length < MAX_VARIABLES && (
            <button type="button" class="small" onClick={() => set({ variables: [...variables, { name: variables.some((one) => one.name === 'host') ? `var${variables.length + 1}` : 'host', kind: 'host' }] })}>
              Add a variable
            </button>
          )}
        </fieldset>
      </Form>
    </Dialog>
  );
}

type Seen = 'private' | 'all hosts' | 'everyone';

const SEEN: Record<Seen, string> = {
  private: 'only its owner and administrators',
  'all hosts': 'people who see all hosts',
  everyone: 'everyone, with the values of the hosts they may see',
};

const seenBy = (dashboard: Dashboard): Seen => (dashboard.private === true ? 'private' : dashboard.everyone === true ? 'everyone' : 'all hosts');

// What somebody may choose: who is no editor keeps it to themselves, who sees only some hosts cannot show it to everyone.
function seenChoices(who: Me | null | undefined, now: Seen): Seen[] {
  const may: Seen[] = mayEdit(who) ? ['private', 'all hosts', 'everyone'] : mayEditSome(who) ? ['private', 'all hosts'] : ['private'];
  return may.includes(now) ? may : [...may, now];
}

function Sharing({ dashboard, set }: { dashboard: Dashboard; set: (change: Partial<Dashboard>) => void }) {
  const who = useCell(me);
  const now = seenBy(dashboard);
  return (
    <fieldset>
      <legend>Who sees it</legend>
      <label class="field">
        <span>Seen by</span>
        <select value={now} onChange={(event) => set({ private: event.currentTarget.value === 'private', everyone: event.currentTarget.value === 'everyone' })}>
          {seenChoices(who, now).map((one) => (
            <option key={one} value={one}>
              {SEEN[one]}
            </option>
          ))}
        </select>
      </label>
      {mayEditSome(who) && (
        <Field
          label="And by members of the user groups"
          value={(dashboard.groups ?? []).join(', ')}
          required={false}
          hint="With commas between; they see the values of the hosts they may see."
          set={(text) => set({ groups: text.split(',').map((name) => name.trimStart()) })}
        />
      )}
      {who?.role === 'administrator' ? (
        <Field label="Owner" value={dashboard.owner ?? ''} required={false} hint="Name of a user." set={(owner) => set({ owner })} />
      ) : (
        dashboard.owner && <p class="muted">Owner: {dashboard.owner}</p>
      )}
    </fieldset>
  );
}

/** seenWords says in lists who may see a dashboard. */
export function seenWords(one: { private: boolean; everyone: boolean; groups: string[] }): string {
  const first = one.private ? (one.groups.length > 0 ? '' : 'owner') : one.everyone ? 'everyone' : 'who sees all hosts';
  return [first, ...one.groups].filter((text) => text !== '').join(', ');
}
