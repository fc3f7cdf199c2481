// Titles of charts whose items no rule knows: what the names of the items have in common is the title, what differs are the names of the lines.

/** What a chart and its lines are called; null when the names have nothing in common that says something. */
export interface Titles {
  title: string;
  lines: string[];
}

/** Words that say nothing at the end of a title. */
const SMALL = /\s+(a|an|and|as|at|by|for|from|in|is|of|on|or|per|that|the|to|with)$/i;

/** commonTitle takes apart the names of two items or more: "Busy: poller" and "Busy: trapper" are "Busy" of "poller" and "trapper". */
export function commonTitle(names: string[], section: string): Titles | null {
  const words = names.map((name) => name.trim().split(/\s+/));
  const least = Math.min(...words.map((list) => list.length));
  const [first] = words;
  let head = 0;
  while (head < least && words.every((list) => list[head] === first[head])) head++;
  let tail = 0;
  while (tail < least - head && words.every((list) => list[list.length - 1 - tail] === first[first.length - 1 - tail])) tail++;
  // Every line keeps a word of its own, as far as there are words.
  while (tail > 0 && words.some((list) => list.length === head + tail)) tail--;
  const parts = [first.slice(0, head), first.slice(first.length - tail)].map((part) => trim(part.join(' '))).filter((part) => part !== '');
  const title = tidy(parts.join(', '), section);
  if (title === '') return null;
  return { title, lines: words.map((list) => trim(list.slice(head, list.length - tail).join(' '))) };
}

/** withoutSection leaves out the name of the section that a name begins with: "MongoDB: Connections" is "Connections". */
export function withoutSection(name: string, section: string): string {
  if (!name.toLowerCase().startsWith(section.toLowerCase())) return name;
  const rest = name.slice(section.length);
  if (!/^\s*[:,–-]\s*\S/.test(rest)) return name;
  return capital(trim(rest));
}

function tidy(text: string, section: string): string {
  let title = trim(withoutSection(trim(text), section));
  while (SMALL.test(title)) title = trim(title.replace(SMALL, ''));
  return title.toLowerCase() === section.toLowerCase() || SMALL.test(` ${title}`) ? '' : capital(title);
}

function trim(text: string): string {
  return text.replace(/^[\s:,;–-]+|[\s:,;–-]+$/g, '');
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
