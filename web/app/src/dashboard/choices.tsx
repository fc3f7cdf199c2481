// The variables above the widgets.

import { useEffect } from 'preact/hooks';
import { getLabelValues, type Variable } from '../api/dashboards.ts';
import type { Host } from '../api/types.ts';
import { natural } from '../format/natural.ts';
import { useLoad } from '../part/load.ts';
import { setParams } from '../state/route.ts';
import { chosenValues, expanded, paramOf, type Values } from './variables.ts';
import { groupNames } from './widgetform.tsx';

const MAX_CHOICES = 1_000;

/** useChoices gives what can be chosen for each variable. Values of a group variable narrow the hosts of others. */
export function useChoices(variables: Variable[], hosts: Host[], params: URLSearchParams): { choices: Record<string, string[]>; values: Values; empty: Values } {
  const labels = variables.filter((one) => one.kind === 'label');
  const loaded = useLoad(
    async (signal) => Object.fromEntries(await Promise.all(labels.map(async (one) => [one.name, (await getLabelValues(one.label ?? '', one.match ?? '', signal)).data.slice(0, MAX_CHOICES)] as const))),
    [JSON.stringify(labels)],
  );
  const choices: Record<string, string[]> = {};
  for (const one of variables.filter((other) => other.kind !== 'host')) {
    choices[one.name] = one.kind === 'group' ? groupNames(hosts) : one.kind === 'list' ? (one.values ?? []) : ((loaded.data ?? {})[one.name] ?? []);
  }
  const outer = chosenValues(variables.filter((one) => one.kind !== 'host'), params, choices);
  for (const one of variables.filter((other) => other.kind === 'host')) {
    const group = one.group === undefined ? undefined : expanded(one.group, outer);
    choices[one.name] = hosts.filter((host) => group === undefined || host.groups.includes(group)).map((host) => host.host).sort(natural);
  }
  const values = chosenValues(variables, params, choices);
  const empty: Values = {};
  for (const one of variables) {
    if (one.kind !== 'host' || one.group === undefined || choices[one.name].length > 0) continue;
    // A host of another group is none of the group that was chosen.
    if (one.group.includes('$')) delete values[one.name];
    if (values[one.name] === undefined) empty[one.name] = `no host in group ${expanded(one.group, outer)}`;
  }
  return { choices, values, empty };
}

interface Props {
  variables: Variable[];
  choices: Record<string, string[]>;
  values: Values;
  /** Of variables that no host fits, why. */
  empty: Values;
  hosts: Host[];
}

export function Choices({ variables, choices, values, empty, hosts }: Props) {
  // What was chosen of a group that no longer has it would show nothing.
  useEffect(() => {
    for (const one of variables) {
      const value = values[one.name];
      if (one.kind === 'host' && one.group?.includes('$') && value !== undefined && choices[one.name].length > 0 && !choices[one.name].includes(value)) setParams({ [paramOf(one.name)]: choices[one.name][0] });
    }
  }, [JSON.stringify(values)]);
  return (
    <div class="filters variables">
      {variables.map((one) => (
        <label key={one.name}>
          <span class="muted">{one.title ?? one.name}</span>
          <select value={values[one.name] ?? ''} onChange={(event) => setParams({ [paramOf(one.name)]: event.currentTarget.value }, false)}>
            {values[one.name] !== undefined && !choices[one.name]?.includes(values[one.name]) && <option value={values[one.name]}>{values[one.name]}</option>}
            {empty[one.name] !== undefined && <option value="">{empty[one.name]}</option>}
            {(choices[one.name] ?? []).map((choice) => (
              <option key={choice} value={choice}>
                {one.kind === 'host' ? (hosts.find((host) => host.host === choice)?.name ?? choice) : choice}
              </option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}
