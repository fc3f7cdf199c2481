// Problems as marks on the time axis of a chart. They are elements, not pixels, so that they can be hovered, focused
// and followed.

import type { Problem } from '../api/types.ts';
import { href } from '../state/route.ts';
import { dateTime } from '../time/clock.ts';
import type { Plot } from './plot.ts';

const AXIS_LEFT = 46;
const AXIS_RIGHT = 6;
const MAX_MARKS = 60;

/** placeMarks puts one mark per problem into place, at the bottom of the plot. */
export function placeMarks(place: HTMLElement, plot: Plot, problems: Problem[], window: { from: number; to: number }, width: number): void {
  const shown = problems.filter((p) => p.at < window.to && (p.recovered_at ?? Infinity) > window.from).slice(0, MAX_MARKS);
  while (place.childElementCount > shown.length) place.lastElementChild!.remove();
  shown.forEach((problem, n) => {
    const mark = (place.children[n] as HTMLAnchorElement | undefined) ?? place.appendChild(document.createElement('a'));
    const left = Math.max(AXIS_LEFT, plot.xOf(problem.at));
    const right = Math.min(width - AXIS_RIGHT, problem.recovered_at === null ? Infinity : plot.xOf(problem.recovered_at));
    mark.className = `mark severity-${problem.severity.replace(' ', '-')}`;
    mark.style.left = `${left}px`;
    mark.style.width = `${Math.max(4, right - left)}px`;
    mark.title = `${problem.severity}: ${problem.name}\nsince ${dateTime(problem.at)}${problem.recovered_at === null ? '' : `, recovered ${dateTime(problem.recovered_at)}`}`;
    mark.setAttribute('aria-label', mark.title);
    mark.href = href(`/hosts/${problem.host_id}/problems`);
    mark.classList.toggle('cut', plot.xOf(problem.at) < AXIS_LEFT);
  });
}
