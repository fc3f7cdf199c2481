// An expression in words, from the inside outwards: what is taken, and what is made of it.

import { type Token, tokensOf, unquoted } from './tokens.ts';
import { AGGREGATIONS, FUNCTIONS, KEYWORDS, OPERATORS } from './words.ts';

export interface Line {
  /** The part of the expression. */
  code: string;
  text: string;
}

const MATCHES: Record<string, string> = { '=': 'is', '!=': 'is not', '=~': 'matches', '!~': 'does not match' };
const MAX_LINES = 40;

/** explained walks through the tokens; a function is told of when its parenthesis closes. */
export function explained(expression: string): Line[] {
  const tokens = tokensOf(expression);
  const lines: Line[] = [];
  const calls: { name: string; grouping: string }[] = [];
  let n = 0;
  const text = (from: number, to: number): string => expression.slice(tokens[from].from, tokens[Math.min(to, tokens.length - 1)].to);
  while (n < tokens.length && lines.length < MAX_LINES) {
    const token = tokens[n];
    const next = tokens[n + 1];
    if (token.kind === 'word' && next?.text === '(' && /^(by|without|on|ignoring|group_left|group_right)$/.test(token.text)) {
      const end = closing(tokens, n + 1, ')');
      const labels = tokens.slice(n + 2, end).filter((one) => one.kind === 'word').map((one) => one.text).join(', ');
      grouping(token.text, labels, calls, lines, text(n, end));
      n = end + 1;
    } else if (token.kind === 'word' && token.text in AGGREGATIONS && (next?.text === '(' || next?.text === 'by' || next?.text === 'without')) {
      // "sum by (host) (x)": the labels come before what is added up.
      calls.push({ name: token.text, grouping: '' });
      n++;
      if (next.text === '(') n++;
      else {
        const end = closing(tokens, n + 1, ')');
        calls[calls.length - 1].grouping = groupText(next.text, tokens.slice(n + 2, end));
        n = tokens[end + 1]?.text === '(' ? end + 2 : end + 1;
      }
    } else if (token.kind === 'word' && next?.text === '(') {
      calls.push({ name: token.text, grouping: '' });
      n += 2;
    } else if (token.text === '(') {
      calls.push({ name: '', grouping: '' });
      n++;
    } else if (token.text === ')') {
      const call = calls.pop();
      // "sum(x) by (host)": the labels come behind.
      const after = tokens[n + 1]?.text;
      if (call !== undefined && (after === 'by' || after === 'without') && call.name in AGGREGATIONS) {
        const end = closing(tokens, n + 2, ')');
        call.grouping = groupText(after, tokens.slice(n + 3, end));
        n = end;
      }
      if (call !== undefined && call.name !== '') lines.push(callLine(call));
      n++;
    } else if (token.text === '{' || (token.kind === 'word' && !(token.text in KEYWORDS) && !(token.text in OPERATORS))) {
      const end = tokens[token.text === '{' ? n : n + 1]?.text === '{' ? closing(tokens, token.text === '{' ? n : n + 1, '}') : n;
      lines.push({ code: text(n, end), text: selector(token, tokens.slice(n, end + 1)) });
      n = end + 1;
    } else if (token.text === '[') {
      const end = closing(tokens, n, ']');
      lines.push({ code: text(n, end), text: rangeText(tokens.slice(n + 1, end)) });
      n = end + 1;
    } else n = operator(tokens, n, lines, text);
  }
  return lines;
}

function operator(tokens: Token[], n: number, lines: Line[], text: (from: number, to: number) => string): number {
  const token = tokens[n];
  const next = tokens[n + 1];
  if (token.text === 'offset' && next !== undefined) {
    lines.push({ code: text(n, n + 1), text: `as it was ${next.text} before` });
    return n + 2;
  }
  if (token.text === 'bool') {
    lines.push({ code: 'bool', text: KEYWORDS.bool });
    return n + 1;
  }
  const word = OPERATORS[token.text];
  if (word === undefined) return n + 1;
  if (next?.kind === 'number') {
    lines.push({ code: text(n, n + 1), text: `${word} ${next.text}` });
    return n + 2;
  }
  lines.push({ code: token.text, text: `${word} …` });
  return n + 1;
}

function grouping(word: string, labels: string, calls: { name: string; grouping: string }[], lines: Line[], code: string): void {
  if (word === 'by' || word === 'without') {
    const call = calls[calls.length - 1];
    if (call !== undefined) call.grouping = word === 'by' ? labels : `all labels but ${labels}`;
    return;
  }
  lines.push({ code, text: `${KEYWORDS[word]}: ${labels}` });
}

function groupText(word: string, tokens: Token[]): string {
  const labels = tokens.filter((one) => one.kind === 'word').map((one) => one.text).join(', ');
  return word === 'by' ? labels : `all labels but ${labels}`;
}

function callLine({ name, grouping: by }: { name: string; grouping: string }): Line {
  const about = AGGREGATIONS[name];
  if (about === undefined) return { code: `${name}(…)`, text: FUNCTIONS[name] ?? 'a function that is not described here' };
  if (by === '') return { code: `${name}(…)`, text: `${about}, all series together` };
  return { code: by.startsWith('all labels') ? `${name} without (…)` : `${name} by (${by})`, text: `${about}, one result for each ${by.startsWith('all labels') ? `combination of ${by}` : by}` };
}

function closing(tokens: Token[], open: number, sign: string): number {
  const end = tokens.findIndex((token, at) => at > open && token.text === sign);
  return end < 0 ? tokens.length - 1 : end;
}

function selector(token: Token, inside: Token[]): string {
  const name = token.kind === 'word' ? `all series of ${token.text}` : 'all series';
  const conditions: string[] = [];
  inside.forEach((one, n) => {
    const sign = inside[n + 1];
    const value = inside[n + 2];
    if (one.kind === 'word' && sign !== undefined && sign.text in MATCHES && value?.kind === 'text') conditions.push(`${one.text} ${MATCHES[sign.text]} ${unquoted(value.text) || 'empty'}`);
  });
  return conditions.length === 0 ? name : `${name} where ${conditions.join(' and ')}`;
}

function rangeText(inside: Token[]): string {
  const [length, colon, step] = inside;
  if (length === undefined) return 'their values of a range; say how long, such as 5m';
  if (colon?.text === ':') return `worked out again for each ${step?.text ?? 'step'} of the last ${length.text}`;
  return `their values of the last ${length.text}, at each step`;
}
