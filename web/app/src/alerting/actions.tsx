// Actions: for which problems, whom they tell, step by step.

import { useState } from 'preact/hooks';
import { type Action, type Alerting, deleteAlerting, putAlerting } from '../api/alerting.ts';
import { said, Sure } from '../part/form.tsx';
import { Empty } from '../part/notice.tsx';
import { ActionForm } from './actionform.tsx';
import { stepWords, whenWords, whoWords } from './words.ts';

export function Actions({ alerting, changed }: { alerting: Alerting; changed: () => void }) {
  const [failure, setFailure] = useState('');
  const [edited, setEdited] = useState<{ action: Action; fresh: boolean } | null>(null);
  const actions = alerting.actions ?? [];
  const done = (saved: boolean): void => {
    setEdited(null);
    if (saved) changed();
  };
  if (edited !== null) return <ActionForm alerting={alerting} action={edited.action} fresh={edited.fresh} done={done} />;
  const start = (): void => setEdited({ action: { name: '', conditions: [{ type: 'severity', value: 'average' }], operations: [{ receivers: [] }], recovery: null }, fresh: true });
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
              <button type="button" class="small" onClick={() => setEdited({ action, fresh: false })}>
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
        <button type="button" onClick={start}>
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
