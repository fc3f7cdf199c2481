// Light, dark, or as the system says. theme.js sets it before the first paint; this changes it later on.

import { Cell } from './cell.ts';

export type Theme = 'auto' | 'light' | 'dark';

export const theme = new Cell<Theme>((document.documentElement.dataset.theme as Theme | undefined) ?? 'auto');

/** Counts up when the colours that are in force change; charts read them again then. */
export const paletteVersion = new Cell(0);

export function setTheme(next: Theme): void {
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem('tidemark.theme', next);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  theme.set(next);
  paletteVersion.set(paletteVersion.value + 1);
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  if (theme.value === 'auto') paletteVersion.set(paletteVersion.value + 1);
});

export interface Palette {
  text: string;
  muted: string;
  hair: string;
  ground: string;
  accent: string;
  rest: string;
  series: string[];
}

/** readPalette takes the colours from the style sheet, for what is drawn on a canvas. */
export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return {
    text: read('--text'),
    muted: read('--muted'),
    hair: read('--hair'),
    ground: read('--ground'),
    accent: read('--accent'),
    rest: read('--series-rest'),
    series: Array.from({ length: 8 }, (_, n) => read(`--series-${n}`)),
  };
}

/** veil is a #rrggbb colour with an opacity of 0…1. */
export function veil(colour: string, opacity: number): string {
  const part = (at: number): number => parseInt(colour.slice(at, at + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},${opacity})`;
}
