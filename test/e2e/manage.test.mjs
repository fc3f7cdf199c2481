// Pages on which things are changed: the store, alerting, the configuration. Against the fake server, or the one at TIDEMARK_URL.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, openPage } from './browser.mjs';
import { startTarget } from './target.mjs';

let browser;
let target;

before(async () => {
  browser = await launch();
  target = await startTarget('--hosts', '12');
});

after(async () => {
  await browser?.close();
  await target?.stop();
});

/** Runs a story on a fresh page and fails it for anything that must never happen. */
function story(name, run, options = {}) {
  test(name, async () => {
    const { page, faults, close } = await openPage(browser, target.base, options);
    try {
      await run(page);
      assert.equal(await page.evaluate(() => window.__hostile), undefined, 'a hostile name ran as a script');
      assert.deepEqual(faults, []);
    } finally {
      await close();
    }
  });
}

const get = async (path) => (await fetch(target.base + path)).json();

story('storage: how long it will last, and what takes the room', async (page) => {
  await page.goto(`${target.base}/storage`);
  const lasts = page.locator('[data-number="lasts"]');
  await lasts.waitFor();
  if (target.fake) {
    assert.match(await lasts.textContent(), /^42 days$/);
    await page.getByText(/fills in \d+ days, about \d{4}-\d\d-\d\d/).waitFor();
    await page.getByRole('img', { name: /^Values: 9 file pairs/ }).waitFor();
  }
  const rows = await page.locator('table', { has: page.locator('caption', { hasText: 'Tiers' }) }).locator('tbody tr').allTextContents();
  assert.deepEqual(rows.map((row) => /one minute|one hour|exactly/.exec(row)?.[0]), ['exactly', 'one minute', 'one hour']);
  const { quota_bytes: quota } = await get('/api/storage');
  assert.ok(quota > 0);
});

story('storage: what takes the room, and what another codec would bring', async (page) => {
  await page.goto(`${target.base}/storage`);
  const rowsOf = async (caption) => page.locator('table', { has: page.locator('caption', { hasText: caption }) }).locator('tbody tr').allTextContents();
  await page.getByRole('heading', { name: 'Compression by kind of values' }).waitFor();
  await page.getByRole('heading', { name: 'Last trial of codecs' }).waitFor();
  await page.getByRole('heading', { name: 'What hosts take' }).waitFor();
  if (!target.fake) {
    assert.equal((await get('/api/storage/hosts')).factor, 2);
    await page.getByText('Known once a file pair of values is closed').nth(1).waitFor();
    await page.getByText('None was made yet').waitFor();
    return;
  }
  await page.getByText(/Recommended is zstd:3, 64 KiB: 29 % less disk/).waitFor();
  const hosts = await rowsOf('Room by host');
  assert.deepEqual(hosts.map((row) => /^(db1|web1|deleted items)/.exec(row)?.[0]), ['db1', 'web1', 'deleted items']);
  assert.match(hosts[0], /its oldest go first/);
  const kinds = await rowsOf('Kinds of values');
  assert.equal(kinds.length, 5);
  assert.match(kinds[0], /Other numbers with a fraction/);
  assert.match(kinds[4], /stay the same/);
  const candidates = await rowsOf('Candidates');
  assert.deepEqual(candidates.map((row) => /^(as it is|none|lz4|zstd:3)/.exec(row)?.[0]), ['as it is', 'none', 'lz4', 'zstd:3']);
});

story('storage: a snapshot is made and deleted, by keyboard', async (page) => {
  await page.goto(`${target.base}/storage`);
  await page.getByLabel('Name of the new snapshot').fill('of the browser test');
  if (!target.fake) await page.getByLabel('Name of the new snapshot').fill('of-the-browser-test');
  const name = target.fake ? 'of the browser test' : 'of-the-browser-test';
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText(`Made ${name}`).waitFor();
  const row = page.locator('tr', { hasText: name });
  await row.waitFor();
  await row.getByRole('button', { name: 'Delete' }).focus();
  await page.keyboard.press('Enter');
  await row.getByRole('button', { name: `Delete ${name}?` }).waitFor();
  await page.keyboard.press('Enter');
  await row.waitFor({ state: 'detached' });
});

story('storage: re-compression is started, seen, and ends', async (page) => {
  await page.goto(`${target.base}/storage`);
  await page.getByLabel('How').selectOption({ index: 1 });
  await page.getByLabel('Older than').selectOption('everything closed');
  await page.getByRole('button', { name: 'Write old pairs anew' }).click();
  if (target.fake) await page.getByRole('progressbar').waitFor();
  await page.getByText(/The last one ended/).waitFor();
  assert.equal((await get('/api/storage/recompress')).codec, 'zstd:3');
});

story('alerting: messages by state; actions in words; a test message says what came of it', async (page) => {
  if (!target.fake) await configureAlerting();
  await page.goto(`${target.base}/alerting`);
  if (target.fake) {
    await page.locator('tbody tr').nth(99).waitFor();
    await page.getByRole('button', { name: 'Older messages' }).click();
    await page.locator('tbody tr').nth(149).waitFor();
  }
  await page.getByRole('button', { name: 'Failed' }).click();
  await page.waitForURL(/state=failed/);
  await page.getByRole('link', { name: 'Actions' }).click();
  await page.getByText('from step 5 on').waitFor();
  await page.getByRole('link', { name: 'Media and receivers' }).click();
  await page.locator('main form').getByLabel('To', { exact: false }).fill('nobody@example.com');
  await page.getByRole('button', { name: 'Send a test message' }).click();
  await page.getByRole('alert').getByText('It was not sent').waitFor();
});

/** Settings for the real server; the mail server is one that nothing listens on. */
async function configureAlerting() {
  const operations = [{ receivers: ['page test'] }, { from: 5, to: -1, receivers: ['page test'] }];
  const response = await fetch(`${target.base}/api/alerting`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      media: [{ name: 'page mail', mail: { server: '127.0.0.1:9', from: 'tidemark@example.com', security: 'none' } }],
      receivers: [{ name: 'page test', media: [{ media: 'page mail', to: 'nobody@example.com' }] }],
      actions: [{ name: 'page action', disabled: true, operations }],
    }),
  });
  assert.ok(response.ok, `${response.status} ${await response.clone().text()}`);
}

story('alerting: a maintenance begins, is in force, and ends; a wrong one says what was expected', async (page) => {
  await page.goto(`${target.base}/alerting/maintenance`);
  await page.getByLabel('Name of the maintenance').fill('of the browser test');
  await page.locator('select:has(optgroup)').selectOption({ index: 1 });
  await page.getByLabel('Begins').fill('tomorrow');
  await page.getByRole('button', { name: 'Begin or plan it' }).click();
  await page.getByRole('alert').getByText('is no time, expected').waitFor();
  await page.getByLabel('Begins').fill('');
  await page.getByRole('button', { name: 'Begin or plan it' }).click();
  const row = page.locator('tr', { hasText: 'of the browser test' });
  await row.waitFor();
  await row.getByText('in force').waitFor();
  await row.getByRole('button', { name: 'End' }).click();
  await row.getByRole('button', { name: /of the browser test\?/ }).click();
  await row.waitFor({ state: 'detached' });
});

story('alerting: forms for a media type, a receiver and an action; what is wrong is said once saving was tried', async (page) => {
  await page.goto(`${target.base}/alerting/media`);
  await page.getByRole('button', { name: 'New media type' }).click();
  await page.getByLabel('Name of the media type').fill('form mail');
  assert.equal(await page.locator('.form-problems').count(), 0, 'mistakes before saving was tried');
  await page.getByRole('button', { name: 'Save media type' }).click();
  await page.getByRole('status').getByText('Server: expected a name and a port').waitFor();
  await page.getByRole('textbox', { name: /^Server/ }).fill('127.0.0.1:9');
  await page.getByRole('textbox', { name: /^From/ }).fill('tidemark@example.com');
  await page.getByLabel('Protection').selectOption('none');
  await page.getByRole('button', { name: 'Save media type' }).click();
  await page.locator('tr', { hasText: 'form mail' }).first().waitFor();
  await page.getByRole('button', { name: 'New receiver' }).click();
  await page.getByLabel('Name of the receiver').fill('form receiver');
  await page.getByRole('combobox', { name: /^Over/ }).selectOption('form mail');
  await page.getByLabel('Address').fill('ops@example.com');
  await page.getByRole('button', { name: 'Save receiver' }).click();
  await page.locator('tr', { hasText: 'form receiver' }).waitFor();

  await page.goto(`${target.base}/alerting/actions`);
  await page.getByRole('button', { name: 'New action' }).click();
  await page.getByLabel('Name of the action').fill('form action');
  assert.equal(await page.locator('.form-problems').count(), 0, 'mistakes of an action before saving was tried');
  await page.getByRole('button', { name: 'Save action' }).click();
  await page.getByRole('status').getByText('Operation 1 tells nobody').waitFor();
  await page.getByRole('group', { name: 'Step 1' }).getByLabel('form receiver').check();
  await page.getByRole('button', { name: 'Add a condition' }).click();
  const second = page.getByRole('group', { name: 'Condition 2' });
  await second.getByRole('combobox', { name: /^Of/ }).selectOption('tag_value');
  await second.getByRole('textbox', { name: 'Tag' }).fill('env');
  await second.getByRole('textbox', { name: /^Value/ }).fill('prod');
  await page.getByLabel('Begin after').fill('soon');
  await page.getByRole('button', { name: 'Save action' }).click();
  await page.getByRole('alert').getByText('Put right what is named above first').waitFor();
  await page.getByLabel('Begin after').fill('1m');
  await page.getByRole('button', { name: 'Save action' }).click();
  const made = page.getByRole('region', { name: 'Action form action' });
  await made.getByText('severity at least average and tag env is prod').waitFor();
  await made.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('When it is over, tell').selectOption('nobody');
  await page.getByRole('button', { name: 'Save action' }).click();
  await made.getByText('nobody').waitFor();
  const { actions } = await get('/api/alerting');
  const saved = actions.find((one) => one.name === 'form action');
  assert.deepEqual([saved.recovery, saved.delay, saved.operations[0].receivers], [[], '1m', ['form receiver']]);
  for (const button of ['Delete', 'Delete form action?']) await made.getByRole('button', { name: button, exact: true }).click();
  await made.waitFor({ state: 'detached' });
});

story('alerting: a maintenance that repeats', async (page) => {
  await page.goto(`${target.base}/alerting/maintenance`);
  await page.getByLabel('Name of the maintenance').fill('weekly one');
  await page.locator('select:has(optgroup)').selectOption({ index: 1 });
  await page.getByLabel('Repeats').selectOption('week');
  await page.getByLabel('sat').check();
  await page.getByLabel('Begins').fill('25:00');
  await page.getByRole('button', { name: 'Begin or plan it' }).click();
  await page.getByRole('alert').getByText('is no time of day').waitFor();
  await page.getByLabel('Begins').fill('22:00');
  await page.getByRole('button', { name: 'Begin or plan it' }).click();
  const row = page.locator('tr', { hasText: 'weekly one' });
  await row.getByText('every week on sat, sun at 22:00 for 2h').waitFor();
  await row.getByRole('button', { name: 'Delete' }).click();
  await row.getByRole('button', { name: /weekly one\?/ }).click();
  await row.waitFor({ state: 'detached' });
});

story('alerting: all of it as text; what is no JSON is said', async (page) => {
  await page.goto(`${target.base}/alerting/text`);
  const text = page.getByLabel('Settings of alerting');
  const before = await text.inputValue();
  await text.fill('{');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText('this is no JSON').waitFor();
  await text.fill(before);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('Saved').waitFor();
});

story('server: how busy each kind of checks is, and what is late', async (page) => {
  await page.goto(`${target.base}/server`);
  await page.getByRole('heading', { name: 'Checks and queue' }).waitFor();
  const { kinds, late } = await get('/api/queue');
  const rows = page.locator('table', { has: page.locator('caption', { hasText: 'Checks by kind' }) }).locator('tbody tr');
  assert.equal(await rows.count(), kinds.length);
  if (target.fake) {
    assert.match(await rows.first().textContent(), /^snmp81.2 %41 of 5012$/);
    await page.getByText(`${late} items are late`).waitFor();
  }
});
