// Keys that work everywhere: search, moving and scaling the time range.

import { searchOpen } from '../part/search.tsx';
import { moveWindow, scaleWindow, zoomBack } from './window.ts';

export function watchKeys(): void {
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      searchOpen.set(!searchOpen.value);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || searchOpen.value) return;
    if (event.key === '/') {
      event.preventDefault();
      searchOpen.set(true);
    } else if (event.key === '[') moveWindow(-0.5);
    else if (event.key === ']') moveWindow(0.5);
    else if (event.key === '+' || event.key === '=') scaleWindow(0.5);
    else if (event.key === '-') scaleWindow(2);
    else if (event.key === 'Backspace') zoomBack();
  });
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
