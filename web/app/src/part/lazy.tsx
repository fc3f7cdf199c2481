// Views that few people open first are loaded when they are opened, so that the first view is quick.

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Failure } from './notice.tsx';

type Load<P> = () => Promise<ComponentType<P>>;

interface Props<P> {
  load: Load<P>;
  props: P;
}

// What was loaded once is there at once the next time.
const views = new WeakMap<object, unknown>();

/** Lazy shows the view that load gives; load must be the same function each time. */
export function Lazy<P extends object>({ load, props }: Props<P>) {
  const [failed, setFailed] = useState<object | null>(null);
  const [round, setRound] = useState(0);
  const [, loaded] = useState(0);
  const View = views.get(load) as ComponentType<P> | undefined;
  useEffect(() => {
    if (views.has(load)) return;
    let left = false;
    load().then(
      (view) => {
        views.set(load, view);
        if (!left) loaded((n) => n + 1);
      },
      () => !left && setFailed(() => load), // a function by itself would be called
    );
    return () => {
      left = true;
    };
  }, [load, round]);
  if (View !== undefined) return <View {...props} />;
  if (failed !== load) return <div class="page loading" />;
  // After an update of the server the file of this part has another name.
  const error = { what: 'this page', detail: 'the server cannot be reached, or it was updated: then reload the page' };
  return <Failure error={error} retry={() => (setFailed(null), setRound(round + 1))} />;
}
