// PromQL cut into its tokens, as far as completion and explanation need them. What is wrong is said by the server.

export interface Token {
  kind: 'word' | 'number' | 'text' | 'duration' | 'sign';
  text: string;
  from: number;
  to: number;
}

const PATTERNS: [Token['kind'], RegExp][] = [
  ['text', /^(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?)/],
  ['duration', /^(?:\d+(?:ms|[smhdwy]))+(?![a-zA-Z0-9_])/],
  ['number', /^(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)/],
  ['word', /^[a-zA-Z_][a-zA-Z0-9_:]*/],
  ['sign', /^(?:=~|!~|==|!=|>=|<=|[^\s])/],
];

/** tokensOf cuts a text; comments are left out. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const blank = /^(?:\s+|#[^\n]*)/.exec(rest);
    if (blank !== null) {
      at += blank[0].length;
      continue;
    }
    for (const [kind, pattern] of PATTERNS) {
      const match = pattern.exec(rest);
      if (match === null) continue;
      tokens.push({ kind, text: match[0], from: at, to: at + match[0].length });
      at += match[0].length;
      break;
    }
  }
  return tokens;
}

/** unquoted is what a text token says. */
export function unquoted(text: string): string {
  const inner = text.slice(1, text.length > 1 && text.endsWith(text[0]) ? -1 : undefined);
  return text.startsWith('`') ? inner : inner.replace(/\\(.)/g, '$1');
}
