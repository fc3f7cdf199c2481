// People on the real server: the first administrator, signing in and out, tokens, users, the audit log; mostly by keyboard. And 200
// hostile names on every page.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, openPage, settled } from './browser.mjs';

const BIN = process.env.TIDEMARK_BIN ?? '../../bin/tidemark';
const PASSWORD = 'correct horse battery';

let browser;
let server;
let base;
let link;
const folder = mkdtempSync(join(tmpdir(), 'tidemark-people-'));

/** Starts the server on an address, and gives what pattern finds in what it prints. */
function start(address, pattern) {
  server = spawn(BIN, ['up', '--data', join(folder, 'data'), '--http', address, '--trapper', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  server.stderr.on('data', (text) => (said += text));
  return new Promise((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    let out = '';
    server.stdout.on('data', (text) => {
      out += text;
      const found = pattern.exec(out)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
}

async function stop(signal) {
  server.removeAllListeners('exit');
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill(signal);
  await ended;
}

before(async () => {
  browser = await launch();
  link = await start('127.0.0.1:0', /(http:\/\/\S+\/welcome#\S+)/);
  base = new URL(link).origin;
});

after(async () => {
  await browser?.close();
  if (server !== undefined) await stop('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

/** What the browser itself says of an answer that is no success; being refused is part of the stories. */
const refusals = (faults) => faults.filter((fault) => !/Failed to load resource: the server responded with a status of 40[13]/.test(fault));

async function signIn(page, name, password = PASSWORD) {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.keyboard.press('Enter');
}

const hostile = (n) => [`<img src=x onerror="window.__hostile=${n}">`, `"><svg onload=window.__hostile=${n}>`, `javascript:window.__hostile=${n}`, `</script><script>window.__hostile=${n}</script>`, `\${window.__hostile=${n}}{{7*7}}'"\``][n % 5] + ` ${n}`;

test('200 hostile names on every page run no script', async () => {
  const uuid = (n) => n.toString(16).padStart(12, '0') + '4abc8def0123456789ab';
  const hosts = Array.from({ length: 200 }, (_, n) => ({
    host: `evil-${n}`,
    name: hostile(n),
    groups: [{ name: `Group ${n % 7}` }],
    tags: [{ tag: hostile(n), value: hostile(n + 1) }],
    items: [{ name: `Item ${hostile(n)}`, type: 'TRAP', key: `evil[${n}]`, delay: '0', value_type: 'FLOAT', units: hostile(n).slice(0, 40), triggers: [{ expression: `last(/evil-${n}/evil[${n}])>10`, name: `Trigger ${hostile(n)}`, priority: 'HIGH' }] }],
  }));
  const groups = Array.from({ length: 7 }, (_, n) => ({ uuid: uuid(n + 1), name: `Group ${n}` }));
  const answer = await fetch(`${base}/api/import`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ zabbix_export: { version: '6.0', groups, hosts } }) });
  assert.equal(answer.status, 200, await answer.text());
  const call = async (method, path, body) => {
    const answer = await fetch(base + path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  };
  for (let n = 0; n < 5; n++) {
    await call('PUT', `/api/user_groups/${encodeURIComponent(hostile(n))}`, { grants: [{ host_group: hostile(n), role: 'viewer' }] });
    await call('POST', '/api/users', { name: hostile(n), role: 'viewer', all_hosts: false, groups: [hostile(n)] });
    await call('POST', '/api/tokens', { name: hostile(n), user: hostile(n), role: 'viewer' });
  }
  const { hosts: listed } = await (await fetch(`${base}/api/hosts?limit=1000&search=evil-3`)).json();
  const { items } = await (await fetch(`${base}/api/items?host=${listed[0].id}`)).json();
  const { page, faults, close } = await openPage(browser, base);
  const views = ['/', '/problems?show=all', '/hosts', '/hosts/values', `/hosts/${listed[0].id}`, `/hosts/${listed[0].id}/values`, `/hosts/${listed[0].id}/triggers`, `/items/${items[0].id}`, '/explore', '/server', '/configuration', '/configuration/hosts/evil-3', '/configuration/hosts/evil-3/items?item=0', '/configuration/hosts/evil-3/triggers?trigger=0', '/configuration/hosts/evil-3/text', '/users', '/users/groups', '/users/tokens', '/audit', '/account'];
  for (const view of views) {
    await page.goto(base + view);
    await settled(page);
    await page.evaluate(() => document.querySelectorAll('details').forEach((part) => (part.open = true)));
  }
  await page.keyboard.press('Control+k');
  await page.keyboard.type('onerror');
  await page.locator('#results li').first().waitFor();
  assert.equal(await page.evaluate(() => window.__hostile), undefined, 'a hostile name ran as a script');
  assert.deepEqual(faults, []);
  await close();
});

test('the one-time link makes the first administrator, by keyboard', async () => {
  const { page, faults, close } = await openPage(browser, base);
  await page.goto(link);
  await page.getByLabel('Name').waitFor();
  await page.keyboard.type('ada');
  await page.keyboard.press('Tab');
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Tab');
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${base}/`);
  await page.getByRole('button', { name: 'Account: ada' }).waitFor();
  assert.deepEqual(faults, []);
  await close();

  // Loopback alone is nobody now, and the link is used up.
  assert.equal((await fetch(`${base}/api/hosts`)).status, 401);
  const again = await openPage(browser, base);
  await again.page.goto(link);
  await again.page.getByLabel('Name').fill('eve');
  for (const n of [0, 1]) await again.page.locator('input[type=password]').nth(n).fill(PASSWORD);
  await again.page.keyboard.press('Enter');
  await again.page.getByRole('alert').filter({ hasText: 'there is an administrator already' }).waitFor();
  await again.close();
});

test('sign in, make a token, change users, see the audit log, sign out', async () => {
  const { page, faults, close } = await openPage(browser, base);
  await page.goto(`${base}/account`);
  await signIn(page, 'ada', 'not the password');
  await page.getByRole('alert').filter({ hasText: 'not right' }).waitFor();
  await signIn(page, 'ada');
  await page.getByRole('heading', { name: 'ada' }).waitFor();

  await page.getByLabel('Token name').fill('scripts');
  await page.keyboard.press('Enter');
  const text = await page.locator('.command code').textContent();
  assert.match(text, /^tmk_/);
  const as = (token) => fetch(`${base}/api/me`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await (await as(text)).json()).role, 'viewer');
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('button', { name: 'Revoke scripts?' }).click();
  await page.getByRole('button', { name: 'Revoke' }).waitFor({ state: 'detached' });
  assert.equal((await as(text)).status, 401);

  await page.goto(`${base}/users/groups`);
  await page.getByRole('button', { name: 'New user group' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Threes');
  await page.getByLabel('Host group').fill('Group 3');
  await page.getByLabel('Role there').selectOption('operator');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('operator on Group 3').waitFor();

  await page.goto(`${base}/users`);
  await page.getByRole('button', { name: 'New user', exact: true }).click();
  await page.getByLabel('Name', { exact: true }).fill('bob');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByLabel('Role').selectOption('operator');
  await page.getByLabel('On all hosts').uncheck();
  await page.getByLabel('Threes').check();
  await page.getByRole('button', { name: 'Make the user' }).click();
  await page.getByText('by Threes').waitFor();

  // Bob sees the hosts of one group only, no page for administrators, and is signed out the moment that he is disabled.
  const bob = await openPage(browser, base);
  await bob.page.goto(`${base}/hosts`);
  await signIn(bob.page, 'bob');
  await bob.page.getByText('28 hosts').or(bob.page.getByText('29 hosts')).waitFor();
  assert.equal(await bob.page.getByRole('link', { name: 'Users' }).count(), 0);
  await page.getByRole('button', { name: 'Edit bob' }).click();
  await page.waitForURL(/user=\d+/);
  await page.reload(); // The address holds which form is open.
  await page.getByLabel('Disabled').check();
  await page.getByRole('button', { name: 'Save' }).click();
  await bob.page.getByRole('heading', { name: 'Sign in' }).waitFor();
  assert.deepEqual(refusals(bob.faults), []);
  await bob.close();

  await page.getByRole('link', { name: 'Audit' }).click();
  await page.getByText('user bob').first().waitFor();
  await page.locator('summary').first().focus();
  await page.keyboard.press('Enter');
  await page.locator('td pre').filter({ hasText: '"disabled": true' }).waitFor();
  assert.equal(await page.getByText(PASSWORD).count(), 0);

  const menu = page.getByRole('button', { name: 'Account: ada' });
  await menu.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  assert.deepEqual(refusals(faults), []);
  await close();
});

test('an editor of one host group finds her hosts only, and changes one', async () => {
  const ada = await openPage(browser, base);
  await ada.page.goto(`${base}/account`);
  await signIn(ada.page, 'ada');
  await ada.page.getByRole('heading', { name: 'ada' }).waitFor();
  const made = await ada.page.evaluate(async (password) => {
    const call = async (method, path, body) => (await fetch(path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).status;
    return [
      await call('PUT', '/api/user_groups/Fives', { grants: [{ host_group: 'Group 5', role: 'editor' }, { host_group: 'Group 6', role: 'viewer' }] }),
      await call('POST', '/api/users', { name: 'eva', role: 'editor', all_hosts: false, groups: ['Fives'], password }),
    ];
  }, PASSWORD);
  assert.deepEqual(made, [200, 200]);
  await ada.close();

  const { page, faults, close } = await openPage(browser, base);
  await page.goto(`${base}/hosts`);
  await signIn(page, 'eva');
  await page.getByText(/5[678] hosts/).waitFor();
  await page.getByRole('link', { name: 'Configuration' }).click();
  await page.getByText(/^2[89] hosts$/).waitFor();
  for (const name of ['Templates', 'Import', 'Actions and media']) assert.equal(await page.getByRole('navigation', { name: 'Configuration' }).getByRole('link', { name, exact: true }).count(), 0, name);
  await page.goto(`${base}/configuration/templates`);
  await page.getByText('This concerns hosts that you may not change.').waitFor();
  await page.goto(`${base}/configuration/hosts/evil-6`); // She may see it.
  await page.getByRole('alert').filter({ hasText: 'no host of this name that you may change' }).waitFor();

  await page.goto(`${base}/configuration/hosts/evil-5`);
  await page.getByLabel('Description').fill('The fifth');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('1 host updated').waitFor();
  await page.goto(`${base}/configuration/hosts/evil-5/text`);
  await page.getByText('Saving it as text needs the role editor on all hosts').waitFor();
  assert.match(await page.getByLabel('host evil-5 as YAML').inputValue(), /The fifth/);
  assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0);

  await page.goto(`${base}/configuration/add?sends=program`);
  await page.getByLabel('Host name').fill('of-eva');
  await page.getByRole('button', { name: 'Add the host' }).click();
  await page.getByRole('heading', { name: 'of-eva is added' }).waitFor();
  assert.deepEqual(faults.filter((fault) => !/status of 4(01|03|04)/.test(fault)), []);
  await close();
});

test('a viewer of some hosts is told on each page what needs more', async () => {
  const ada = await openPage(browser, base);
  await ada.page.goto(`${base}/account`);
  await signIn(ada.page, 'ada');
  await ada.page.getByRole('heading', { name: 'ada' }).waitFor();
  const made = await ada.page.evaluate(
    async (password) => (await fetch('/api/users', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ name: 'lim', role: 'viewer', all_hosts: false, groups: ['Fives'], password }) })).status,
    PASSWORD,
  );
  assert.equal(made, 200);
  await ada.close();

  const { page, faults, close } = await openPage(browser, base);
  await page.goto(`${base}/account`);
  await signIn(page, 'lim');
  await page.getByRole('heading', { name: 'lim' }).waitFor();
  faults.length = 0; // Signing in began with being refused.
  for (const [path, said] of [
    ['/users', 'This page needs the role administrator.'],
    ['/users/groups', 'This page needs the role administrator.'],
    ['/audit', 'This page needs the role administrator.'],
    ['/alerting/media', 'This page needs the role editor on all hosts.'],
    ['/configuration', 'Your role cannot change hosts and templates.'],
    ['/server', 'Your role holds on some hosts only'],
    ['/storage', 'Your role holds on some hosts only'],
  ]) {
    await page.goto(base + path);
    await page.getByText(said).waitFor();
    assert.equal(await page.locator('.failure').count(), 0, path);
  }
  for (const path of ['/', '/problems', '/hosts', '/hosts/values', '/requests', '/explore?q=evil', '/dashboards', '/alerting']) {
    await page.goto(base + path);
    await settled(page);
    assert.equal(await page.locator('.failure').count(), 0, path);
  }
  assert.deepEqual(faults, []);
  await close();
});

test('the server is killed and started again: the page says so and goes on', async () => {
  const { page, close } = await openPage(browser, base);
  await page.goto(`${base}/hosts`);
  await signIn(page, 'ada');
  const rows = page.locator('main tbody tr');
  await rows.nth(100).waitFor();
  await stop('SIGKILL');
  await page.getByRole('button', { name: 'no contact' }).waitFor();
  assert.ok((await rows.count()) > 100, 'what was shown is gone');
  await page.locator('.rail').getByRole('link', { name: 'Problems' }).click();
  await page.getByRole('alert').getByText('the server cannot be reached').waitFor();
  await start(new URL(base).host, /(Tidemark is at)/);
  await page.locator('.live.on').waitFor();
  await page.locator('.failure').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Account: ada' }).waitFor(); // The session is kept on the server.
  await close();
});
