// The widgets on their grid; while it is edited they can be moved and resized with the mouse and with the keyboard.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Widget } from '../api/dashboards.ts';
import { Icon } from '../part/icon.tsx';
import { COLUMNS, fitted, inOrder, movedDown, placed, ROW_PX, stepped } from './grid.ts';
import { type Surroundings, WidgetView } from './widget.tsx';
import { expandedWidget, type Values } from './variables.ts';
import { KIND_WORDS } from './widgetform.tsx';

interface Props {
  widgets: Widget[];
  values: Values;
  around: Surroundings;
  /** Undefined while it is only looked at. */
  edit?: {
    change: (widgets: Widget[]) => void;
    open: (n: number) => void;
  };
}

export function Grid({ widgets, values, around, edit }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [said, setSaid] = useState('');
  // While it is edited the order of elements must not change under the pointer.
  const order = edit === undefined ? inOrder(widgets) : widgets.map((_widget, n) => n);
  return (
    <>
      <div class={edit === undefined ? 'grid' : 'grid editing'} ref={place}>
        {order.map((n) => {
          const widget = widgets[n];
          return (
            <Cell key={n} n={n} widgets={widgets} name={nameOf(widget)} place={place} edit={edit} say={setSaid}>
              <WidgetView id={`widget-${n}`} widget={expandedWidget(widget, values)} around={around} />
            </Cell>
          );
        })}
      </div>
      <p class="unseen" aria-live="polite">
        {said}
      </p>
    </>
  );
}

const nameOf = (widget: Widget): string => widget.title || KIND_WORDS[widget.kind];

interface CellProps {
  n: number;
  widgets: Widget[];
  name: string;
  place: { current: HTMLDivElement | null };
  edit: Props['edit'];
  say: (text: string) => void;
  children: preact.ComponentChildren;
}

function Cell({ n, widgets, name, place, edit, say, children }: CellProps) {
  const { x, y, w, h } = widgets[n];
  const style = { '--x': x, '--y': y, '--w': w, '--h': h };
  if (edit === undefined) {
    return (
      <section class="cell" style={style} aria-label={name}>
        {children}
      </section>
    );
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    const rect = event.key === 'ArrowDown' && !event.shiftKey ? movedDown(widgets, n) : stepped(widgets[n], event.key, event.shiftKey);
    if (rect !== null) {
      const next = placed(widgets, n, rect);
      edit.change(next);
      say(`${name}: column ${next[n].x + 1}, row ${next[n].y + 1}, ${next[n].w} wide, ${next[n].h} high`);
    } else if (event.key === 'Enter') edit.open(n);
    else if (event.key === 'Delete') {
      edit.change(placedWithout(widgets, n));
      say(`${name} is removed`);
    } else return;
    event.preventDefault();
  };
  return (
    <section class="cell" style={style} aria-label={`${name}. Arrows move it, with Shift they resize it, Enter changes it, Delete removes it.`} tabIndex={0} onKeyDown={onKeyDown}>
      <div class="cell-bar">
        <Drag class="cell-move" title="Move" widgets={widgets} n={n} place={place} change={edit.change} of={(rect, dx, dy) => ({ ...rect, x: rect.x + dx, y: rect.y + dy })}>
          {name}
        </Drag>
        <button type="button" class="small" onClick={() => edit.open(n)} aria-label={`Change ${name}`}>
          Change
        </button>
        <button type="button" class="small" onClick={() => edit.change(placedWithout(widgets, n))} aria-label={`Remove ${name}`}>
          <Icon name="close" />
        </button>
      </div>
      {/* What is below must not be clicked while the widget is moved about. */}
      <div class="cell-still" inert>
        {children}
      </div>
      <Drag class="cell-size" title="Resize" widgets={widgets} n={n} place={place} change={edit.change} of={(rect, dx, dy) => ({ ...rect, w: Math.max(1, Math.min(COLUMNS - rect.x, rect.w + dx)), h: rect.h + dy })} />
    </section>
  );
}

function placedWithout(widgets: Widget[], n: number): Widget[] {
  const rest = widgets.filter((_widget, at) => at !== n);
  return rest.length === 0 ? rest : placed(rest, inOrder(rest)[0], rest[inOrder(rest)[0]]);
}

interface DragProps {
  class: string;
  title: string;
  widgets: Widget[];
  n: number;
  place: { current: HTMLDivElement | null };
  change: (widgets: Widget[]) => void;
  of: (rect: { x: number; y: number; w: number; h: number }, dx: number, dy: number) => { x: number; y: number; w: number; h: number };
  children?: preact.ComponentChildren;
}

// Every step is reckoned from where the pointer went down, so that what was pushed away comes back when the pointer does.
function Drag({ class: name, title, widgets, n, place, change, of, children }: DragProps) {
  const begin = useRef<{ x: number; y: number; widgets: Widget[]; column: number } | null>(null);
  const latest = useRef(change);
  latest.current = change;
  useEffect(() => () => void (begin.current = null), []);
  const move = (event: PointerEvent): void => {
    const from = begin.current;
    if (from === null) return;
    const dx = Math.round((event.clientX - from.x) / from.column);
    const dy = Math.round((event.clientY + scrollY - from.y) / ROW_PX);
    latest.current(placed(from.widgets, n, fitted(of(from.widgets[n], dx, dy))));
  };
  return (
    <div
      class={name}
      title={title}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.preventDefault();
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        begin.current = { x: event.clientX, y: event.clientY + scrollY, widgets, column: (place.current!.clientWidth + 8) / COLUMNS };
      }}
      onPointerMove={move}
      onPointerUp={() => (begin.current = null)}
      onPointerCancel={() => (begin.current = null)}
    >
      {children}
    </div>
  );
}
