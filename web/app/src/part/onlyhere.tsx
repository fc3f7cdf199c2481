// What to say beside a command for another machine when the server listens on loopback only.

import { useTrapper } from '../state/trapper.ts';

export function OnlyHere() {
  const { loopback, address, port } = useTrapper();
  if (!loopback) return null;
  return (
    <p class="muted">
      The server listens for agents on {address}, so only the server's own machine reaches it. For other machines start it with <code>--trapper :{port}</code>, or set <code>trapper.listen</code> in its settings.
    </p>
  );
}
