// Text of a widget: paragraphs, headings, lists, bold, code and links. It becomes elements, never HTML.

import type { ComponentChildren } from 'preact';
import { Link } from '../part/link.tsx';
import { type Block, blocksOf } from './blocks.ts';

export function Markdown({ text }: { text: string }) {
  return (
    <div class="markdown">
      {blocksOf(text).map((block, n) => (
        <BlockView key={n} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case 'heading':
      return block.level === 1 ? <h3 class="markdown-1">{inline(block.text)}</h3> : <h4>{inline(block.text)}</h4>;
    case 'code':
      return <pre>{block.text}</pre>;
    case 'list': {
      const lines = block.lines.map((line, n) => <li key={n}>{inline(line)}</li>);
      return block.ordered ? <ol>{lines}</ol> : <ul>{lines}</ul>;
    }
    default:
      return <p>{inline(block.text)}</p>;
  }
}

const MARKS = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\[[^\]\n]+\]\([^()\s]+\))/;

function inline(text: string): ComponentChildren {
  return text.split(MARKS).map((part, n) => {
    if (/^`.+`$/.test(part)) return <code key={n}>{part.slice(1, -1)}</code>;
    if (/^\*\*.+\*\*$/.test(part)) return <b key={n}>{part.slice(2, -2)}</b>;
    const link = /^\[(.+)\]\((.+)\)$/.exec(part);
    return link === null ? part : <TextLink key={n} text={link[1]} to={link[2]} />;
  });
}

// Only addresses of the page itself and of the web: others, such as javascript:, stay text.
function TextLink({ text, to }: { text: string; to: string }) {
  if (/^\/(?!\/)/.test(to)) {
    const [path, query = ''] = to.split('?');
    return (
      <Link to={path} query={Object.fromEntries(new URLSearchParams(query))} class="markdown-link">
        {text}
      </Link>
    );
  }
  if (!/^https?:\/\//i.test(to)) return <>{`[${text}](${to})`}</>;
  return (
    <a href={to} class="markdown-link" target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}
