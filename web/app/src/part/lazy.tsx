// Views that few people open first are loaded when they are opened, so that the first view is quick.

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Failure } from './notice.tsx';

interface Props<P> {
  load: () => Promise<ComponentType<P>>;
  props: P;
}

export function Lazy<P extends object>({ load, props }: Props<P>) {
  const [View, setView] = useState<ComponentType<P> | null>(null);
  const [failure, setFailure] = useState<Error | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    load().then(
      (view) => setView(() => view),
      // After an update of the server the file of this part has another name.
      () => setFailure(new Error('reload the page: the server may have been updated')),
    );
  }, [round]);
  if (View !== null) return <View {...props} />;
  return failure === null ? <div class="page loading" /> : <Failure error={failure} retry={() => (setFailure(null), setRound(round + 1))} />;
}
