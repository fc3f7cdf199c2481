// How the server answers a shape: the index it uses or the collection it reads, what it examines, and which index is missing.

import type { Plan } from '../api/mongo.ts';
import { digits } from '../format/number.ts';
import { formatClock } from '../format/when.ts';
import { Command } from '../part/notice.tsx';

/** planText says a plan's summary in words a person who does not know the server's names understands. */
export function planText({ summary, scans, sorts }: Pick<Plan, 'summary' | 'scans' | 'sorts'>): string {
  if (summary === '') return 'not told';
  const reading = scans ? `${summary}: reads the whole collection` : summary;
  return sorts ? `${reading}, sorts in memory` : reading;
}

/** indexCommand is what to type into the database's shell. A collection's name may have any sign. */
export const indexCommand = (collection: string, key: string): string => `db.getCollection(${JSON.stringify(collection)}).createIndex(${quoted(key)})`;

// In the shell a name with a dot or another sign stands in quotes.
const quoted = (key: string): string => key.replace(/([{,] ?)([^\s{},:"]+):/g, (_, before: string, name: string) => `${before}${/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}:`);

export function PlanView({ plan, collection }: { plan: Plan; collection: string }) {
  const each = plan.trial?.examined_per_returned ?? null;
  return (
    <section class="shape-plan" aria-label="Plan">
      <p>
        <b class={plan.scans ? 'plan-scan' : ''}>Plan: {planText(plan)}</b> <span class="muted">asked at {formatClock(plan.at)}</span>
      </p>
      {plan.changed_at !== undefined && (
        <p>
          Changed at {formatClock(plan.changed_at)}; before it was {plan.before === '' ? 'not told' : plan.before}.
        </p>
      )}
      {plan.stages.length > 1 && <p class="muted">{plan.stages.join(' ← ')}</p>}
      {plan.trial !== null && (
        <p>
          When the server chose this plan it examined {plan.trial.documents.toLocaleString('en-US')} documents and {plan.trial.keys.toLocaleString('en-US')} index keys for{' '}
          {plan.trial.returned.toLocaleString('en-US')} that it returned{each === null ? '' : `: ${digits(each, 3)} documents each`}.
        </p>
      )}
      {plan.hints.map((hint) => (
        <div key={hint.key}>
          <p>
            No index serves this request. <code>{hint.key}</code> would: {hint.why}.
          </p>
          <Command text={indexCommand(collection, hint.key)} />
        </div>
      ))}
      {plan.indexes_known && plan.hints.length === 0 && plan.scans && <p>No index is to be named for it: it has no conditions that an index helps with.</p>}
      {plan.indexes.length > 0 && (
        <details>
          <summary>{plan.indexes.length === 1 ? 'One index' : `${plan.indexes.length} indexes`} of the collection</summary>
          <ul>
            {plan.indexes.map((index) => (
              <li key={index.name}>
                {index.name} <code>{index.key}</code>{' '}
                <span class="muted">
                  {plan.used.includes(index.name) ? 'used here' : ''}
                  {index.uses === undefined ? '' : ` ${index.uses.toLocaleString('en-US')} uses since the server's start`}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {plan.notes.map((note) => (
        <p class="muted" key={note}>
          {note}
        </p>
      ))}
    </section>
  );
}
