// Instants in words, in the browser's own time.

const two = (n: number): string => String(n).padStart(2, '0');

/** formatClock writes a Unix time in milliseconds as 2026-11-30 14:05. */
export function formatClock(ms: number): string {
  const t = new Date(ms);
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}`;
}
