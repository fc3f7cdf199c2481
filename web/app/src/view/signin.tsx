// Signing in, and the page behind the one-time link that makes the first administrator.

import { useState } from 'preact/hooks';
import { makeFirst, signIn } from '../api/people.ts';
import { Field, Form } from '../part/form.tsx';
import { useTitle } from '../part/load.ts';
import { live } from '../state/live.ts';
import { go } from '../state/route.ts';

export function SignInView() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  useTitle('Sign in');
  return (
    <div class="page narrow">
      <h1>Sign in</h1>
      <Form submit="Sign in" run={() => signIn(name, password)}>
        <Field label="Name" value={name} set={setName} autocomplete="username" focus />
        <Field label="Password" value={password} set={setPassword} type="password" autocomplete="current-password" />
      </Form>
      <p class="muted">
        No account, or the password is lost? An administrator can help; on the server's machine, with the server stopped, <code>tidemark user passwd NAME --data DIR</code> does.
      </p>
    </div>
  );
}

export function WelcomeView() {
  const [key] = useState(location.hash.slice(1));
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  useTitle('Welcome');
  const run = async (): Promise<void> => {
    if (password !== again) throw { detail: 'the two passwords are not the same' };
    // Loopback is nobody from that moment on: the stream that was opened as such would only be refused.
    live.stop();
    try {
      await makeFirst(key, name, password);
    } catch (error) {
      live.start();
      throw error;
    }
    go('/', true);
  };
  return (
    <div class="page narrow">
      <h1>Make the first administrator</h1>
      <p>From then on everybody signs in, on this machine too.</p>
      {key === '' ? (
        <p role="alert">This needs the whole link that the server printed when it started. It is good for 30 minutes; a restart of the server prints a new one.</p>
      ) : (
        <Form submit="Make the administrator" run={run}>
          <Field label="Name" value={name} set={setName} autocomplete="username" focus />
          <Field label="Password" value={password} set={setPassword} type="password" autocomplete="new-password" hint="At least 10 characters." />
          <Field label="Password again" value={again} set={setAgain} type="password" autocomplete="new-password" />
        </Form>
      )}
    </div>
  );
}
