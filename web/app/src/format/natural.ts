// One collator for the whole page: making one for each comparison is what makes sorting slow.
const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** natural compares texts so that "core 2" stands before "core 10". */
export function natural(a: string, b: string): number {
  return collator.compare(a, b);
}
