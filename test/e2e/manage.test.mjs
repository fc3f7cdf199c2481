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
