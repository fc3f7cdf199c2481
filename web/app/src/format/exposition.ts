// Reads the Prometheus text form, as far as the Server page needs it.

export interface Figure {
  /** Name and labels as they stand in the text. */
  id: string;
  name: string;
  value: number;
  counter: boolean;
}

const MAX_FIGURES = 2_000;

/** figuresOf takes the samples out of an exposition; histogram buckets are left out. */
export function figuresOf(text: string): Figure[] {
  const figures: Figure[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([a-zA-Z_:][\w:]*)(\{.*\})?\s+(\S+)/.exec(line);
    if (match === null) continue;
    const [, name, labels = '', number] = match;
    const value = Number(number.replace(/^([+-]?)Inf$/, '$1Infinity'));
    if (/_bucket$/.test(name) || Number.isNaN(value)) continue;
    figures.push({ id: name + labels, name, value, counter: /_(total|count|sum)$/.test(name) });
    if (figures.length >= MAX_FIGURES) break;
  }
  return figures;
}

/** packageOf is the part of the server that a figure belongs to: tidemark_histcache_used_bytes → histcache. */
export function packageOf(name: string): string {
  const words = name.split('_');
  return words[0] === 'tidemark' && words.length > 1 ? words[1] : words[0];
}
