// What can stand where the cursor is.

import { natural } from '../format/natural.ts';
import { type Token, tokensOf } from './tokens.ts';
import { AGGREGATIONS, FUNCTIONS, KEYWORDS } from './words.ts';

/** Where the cursor is, and which part of the text a choice replaces. */
export interface Place {
  kind: 'name' | 'label' | 'value' | 'duration' | 'none';
  from: number;
  to: number;
  /** What is already typed of it. */
  typed: string;
  /** The label whose value is looked for, and the metric that the braces belong to. */
  label: string;
  metric: string;
}

export interface Choice {
  text: string;
  about: string;
  /** What is put into the text, and where the cursor goes then, counted from its end. */
  insert: string;
  back: number;
}

/** placeOf finds where the cursor is. */
export function placeOf(text: string, cursor: number): Place {
  const tokens = tokensOf(text.slice(0, cursor));
  const last = tokens[tokens.length - 1];
  const place: Place = { kind: 'name', from: cursor, to: cursor, typed: '', label: '', metric: '' };
  const open = openBracket(tokens);
  const touches = last !== undefined && last.to === cursor;
  if (open?.text === '[') {
    const typed = touches && (last.kind === 'number' || last.kind === 'duration' || last.kind === 'word') ? last.text : '';
    return { ...place, kind: 'duration', typed, from: cursor - typed.length };
  }
  if (open?.text === '{') {
    const before = tokens[tokens.indexOf(open) - 1];
    place.metric = before?.kind === 'word' ? before.text : '';
    const [label, sign] = touches && last.kind === 'text' ? tokens.slice(-3) : tokens.slice(-2);
    if (touches && last.kind === 'text' && unfinished(last.text) && label?.kind === 'word' && /^(=|!=|=~|!~)$/.test(sign?.text ?? '')) {
      return { ...place, kind: 'value', label: label.text, typed: last.text.slice(1), from: last.from + 1 };
    }
    if (last.kind === 'sign' && /^(=|!=|=~|!~)$/.test(last.text)) return { ...place, kind: 'value', label: label?.text ?? '', typed: '', from: cursor };
    return labelPlace(place, touches ? last : undefined, cursor);
  }
  if (open?.text === '(' && /^(by|without|on|ignoring|group_left|group_right)$/.test(tokens[tokens.indexOf(open) - 1]?.text ?? '')) return labelPlace(place, touches ? last : undefined, cursor);
  if (touches && last.kind === 'text') return { ...place, kind: 'none' };
  if (touches && last.kind === 'word') return { ...place, typed: last.text, from: last.from };
  return touches && (last.kind === 'number' || last.kind === 'duration' || last.text === ')' || last.text === '}' || last.text === ']') ? { ...place, kind: 'none' } : place;
}

const unfinished = (text: string): boolean => text.length === 1 || !text.endsWith(text[0]);

function labelPlace(place: Place, last: Token | undefined, cursor: number): Place {
  if (last?.kind === 'text') return { ...place, kind: 'none' };
  return last?.kind === 'word' ? { ...place, kind: 'label', typed: last.text, from: last.from } : { ...place, kind: 'label', from: cursor };
}

function openBracket(tokens: Token[]): Token | undefined {
  const open: Token[] = [];
  for (const token of tokens) {
    if (token.kind !== 'sign') continue;
    if ('({['.includes(token.text)) open.push(token);
    else if (')}]'.includes(token.text)) open.pop();
  }
  return open[open.length - 1];
}

const MAX_CHOICES = 40;
const DURATIONS = ['1m', '5m', '15m', '1h', '6h', '1d', '7d'];

/** choicesFor ranks what fits: what begins with the typed letters before what holds them. */
export function choicesFor(place: Place, known: { metrics: string[]; labels: string[]; values: string[] }): Choice[] {
  switch (place.kind) {
    case 'name':
      return ranked(place.typed, [
        ...known.metrics.map((name) => plain(name, 'metric')),
        ...Object.entries(FUNCTIONS).map(([name, about]) => call(name, about)),
        ...Object.entries(AGGREGATIONS).map(([name, about]) => call(name, about)),
        ...(place.typed === '' ? [] : Object.entries(KEYWORDS).map(([name, about]) => plain(name, about))),
      ]);
    case 'label':
      return ranked(place.typed, known.labels.filter((name) => name !== '__name__').map((name) => plain(name, 'label')));
    case 'value':
      return ranked(place.typed, known.values.map((value) => ({ text: value, about: place.label, insert: value.replace(/\\/g, '\\\\').replace(/"/g, '\\"'), back: 0 })));
    case 'duration':
      return DURATIONS.filter((one) => one.startsWith(place.typed) && one !== place.typed).map((one) => plain(one, ''));
    default:
      return [];
  }
}

const plain = (text: string, about: string): Choice => ({ text, about, insert: text, back: 0 });
const call = (text: string, about: string): Choice => ({ text: `${text}()`, about, insert: `${text}()`, back: 1 });

function ranked(typed: string, choices: Choice[]): Choice[] {
  const word = typed.toLowerCase();
  const rank = ({ text }: Choice): number => {
    const lower = text.toLowerCase();
    return lower.startsWith(word) ? 0 : lower.includes(word) ? 1 : 2;
  };
  return choices
    .filter((choice) => rank(choice) < 2 && choice.text !== typed)
    .sort((a, b) => rank(a) - rank(b) || natural(a.text, b.text))
    .slice(0, MAX_CHOICES);
}

/** taken puts a choice into the text; cursor is where it stands then. */
export function taken(text: string, place: Place, choice: Choice): { text: string; cursor: number } {
  const quoted = place.kind === 'value' && text[place.from - 1] !== '"' && text[place.from - 1] !== "'";
  const rest = text.slice(place.to);
  const end = place.kind === 'value' && !/^["']/.test(rest) ? '"' : '';
  const insert = `${quoted ? '"' : ''}${choice.insert}${end}`;
  // A call that stands before its parenthesis already needs no other one.
  const doubled = choice.insert.endsWith('()') && rest.startsWith('(');
  const put = doubled ? insert.slice(0, -2) : insert;
  return { text: text.slice(0, place.from) + put + rest, cursor: place.from + put.length - (doubled ? 0 : choice.back) };
}
