// A text cut into paragraphs, headings, lists and code.

export type Block = { kind: 'heading'; level: number; text: string } | { kind: 'list'; ordered: boolean; lines: string[] } | { kind: 'code'; text: string } | { kind: 'paragraph'; text: string };

/** blocksOf cuts a text into blocks. */
export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split('\n');
  for (let n = 0; n < lines.length; n++) {
    const line = lines[n];
    const heading = /^(#{1,3})\s+(.*)$/.exec(line);
    const bullet = /^\s*(?:[-*]|(\d+)[.)])\s+(.*)$/.exec(line);
    const last = blocks[blocks.length - 1];
    if (/^```/.test(line)) {
      const end = lines.findIndex((other, at) => at > n && /^```/.test(other));
      const code = lines.slice(n + 1, end < 0 ? lines.length : end);
      blocks.push({ kind: 'code', text: code.join('\n') });
      n += code.length + 1;
    } else if (heading !== null) blocks.push({ kind: 'heading', level: heading[1].length, text: heading[2] });
    else if (bullet !== null) {
      const ordered = bullet[1] !== undefined;
      if (last?.kind === 'list' && last.ordered === ordered && lines[n - 1].trim() !== '') last.lines.push(bullet[2]);
      else blocks.push({ kind: 'list', ordered, lines: [bullet[2]] });
    } else if (line.trim() === '') continue;
    else if (last?.kind === 'paragraph' && n > 0 && lines[n - 1].trim() !== '') last.text += `\n${line}`;
    else blocks.push({ kind: 'paragraph', text: line });
  }
  return blocks;
}
