// Item keys in Zabbix's form: name[param,"quoted, param",[a,b]].

export interface Key {
  name: string;
  params: string[];
}

/** parseKey takes a key apart; a text that is no key becomes a name without parameters. */
export function parseKey(text: string): Key {
  const open = text.indexOf('[');
  if (open < 0 || !text.endsWith(']')) return { name: text, params: [] };
  return { name: text.slice(0, open), params: splitParams(text.slice(open + 1, -1)) };
}

function splitParams(text: string): string[] {
  const params: string[] = [];
  let at = 0;
  for (;;) {
    while (text[at] === ' ') at++;
    const [param, next] = text[at] === '"' ? quoted(text, at) : bare(text, at);
    params.push(param);
    if (next >= text.length) return params;
    at = next + 1;
  }
}

function quoted(text: string, start: number): [string, number] {
  let value = '';
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === '\\' && text[at + 1] === '"') at++;
    value += text[at];
    at++;
  }
  const comma = text.indexOf(',', at);
  return [value, comma < 0 ? text.length : comma];
}

function bare(text: string, start: number): [string, number] {
  let depth = 0;
  let at = start;
  for (; at < text.length; at++) {
    if (text[at] === '[') depth++;
    if (text[at] === ']') depth--;
    if (text[at] === ',' && depth <= 0) break;
  }
  return [text.slice(start, at), at];
}
