// Actions: for which problems, whom they tell, step by step.

import { useState } from 'preact/hooks';
import { type Action, type Alerting, deleteAlerting, putAlerting } from '../api/alerting.ts';
import { said, Sure } from '../part/form.tsx';
import { Empty } from '../part/notice.tsx';
import { useOpened } from '../part/opened.ts';
import { ActionForm } from './actionform.tsx';
import { stepWords, whenWords, whoWords } from './words.ts';

const NEW: Action = { name: '', conditions: [{ type: 'severity', value: 'average' }], operations: [{ receivers: [] }], recovery: null };

export function Actions({ alerting, changed }: { alerting: Alerting; changed: () => void }) {
  const [failure, setFailure] = useState('');
  const form = useOpened('action');
  const actions = alerting.actions ?? [];
  const done = (saved: boolean): void => {
    form.close();
    if (saved) changed();
  };
  const fresh = form.now?.name === '';
  const edited = fresh ? NEW : form.now === null ? undefined : actions.find((action) => action.name === form.now!.name);
  if (edited !== undefined) return <ActionForm alerting={alerting} action={edited} fresh={fresh} done={done} />;
  const turn = async (action: Action): Promise<void> => {
    try {
      await putAlerting({ actions: [{ ...action, disabled: !action.disabled }] });
      setFailure('');
      changed();
    } catch (error) {
      setFailure(said(error));
    }
  };
  return (
    <>
      {failure !== '' && <p role="alert" class="problem-text">{failure}</p>}
      {actions.length === 0 && (
        <Empty title="There is no action, so nobody is told of problems.">
          <p class="muted">{(alerting.receivers ?? []).length === 0 ? 'Make a media type and a receiver first, under “Media and receivers”.' : 'Make one here.'}</p>
        </Empty>
      )}
      {actions.map((action) => (
        <section key={action.name} class="action" aria-label={`Action ${action.name}`}>
          <div class="action-head">
            <h2>
              {action.name} {action.disabled && <span class="muted">disabled</span>}
            </h2>
            <span class="row-buttons">
              <button type="button" class="small" onClick={() => form.open('action', action.name)}>
                Edit
              </button>
              <button type="button" class="small" onClick={() => void turn(action)}>
                {action.disabled ? 'Enable' : 'Disable'}
              </button>
              <Sure label="Delete" again={`Delete ${action.name}?`} run={() => deleteAlerting('action', action.name).then(changed)} failed={setFailure} />
            </span>
          </div>
          <p>For {whenWords(action)}.</p>
          <Steps action={action} />
        </section>
      ))}
      <p>
        <button type="button" onClick={() => form.add('action')}>
          New action
        </button>
      </p>
    </>
  );
}

function Steps({ action }: { action: Action }) {
  const first = action.delay ? `after ${action.delay}` : 'at once';
  return (
    <ol class="steps">
      {(action.operations ?? []).map((operation, i) => (
        <li key={i}>
          <span class="muted">{stepWords(operation)}</span> {whoWords(operation)}
        </li>
      ))}
      <li class="muted">
        The first step comes {first}, the next ones every {action.step_duration || '1h'}
        {action.stop_when_acknowledged ? ', until somebody acknowledges' : ''}.
      </li>
      <li>
        <span class="muted">when it is over</span> {action.recovery === null ? 'all who were told' : action.recovery.map(whoWords).join('; ') || 'nobody'}
      </li>
      {(action.update ?? []).length > 0 && (
        <li>
          <span class="muted">when somebody acknowledges</span> {action.update!.map(whoWords).join('; ')}
        </li>
      )}
    </ol>
  );
}
