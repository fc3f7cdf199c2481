// Dashboards in a real browser: made by mouse, made by keyboard only, an earlier version restored, a conflict told. Without TIDEMARK_URL it runs
// against the fake server of web/app/dev.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chartsReady, launch, openPage } from './browser.mjs';
import { HOSTILE, startTarget } from './target.mjs';

let browser;
let target;
let machine;

before(async () => {
  browser = await launch();
  target = await startTarget('--hosts', '20');
  const { hosts } = await (await fetch(`${target.base}/api/hosts?limit=1000`)).json();
  machine = hosts.find((one) => one.state === 'ok' && one.items > 50) ?? hosts[0];
});

after(async () => {
  await browser?.close();
  await target?.stop();
});

/** Runs a story on a fresh page; allowed are faults that belong to it, such as a refused save. */
function story(name, run, { allowed = [], ...options } = {}) {
  test(name, async () => {
    const { page, faults, close } = await openPage(browser, target.base, options);
    try {
      await run(page);
      assert.equal(await page.evaluate(() => window.__hostile), undefined, 'a hostile name ran as a script');
      assert.deepEqual(faults.filter((fault) => !allowed.some((one) => fault.includes(one))), []);
    } finally {
      await close();
    }
  });
}

const unique = (name) => `${name} ${Date.now() % 1e8}`;

/** The dashboard at the page's address, as the server has it. */
async function saved(page, query = '') {
  const id = /\/dashboards\/(\d+)/.exec(page.url())[1];
  return (await fetch(`${target.base}/api/dashboards/${id}${query}`)).json();
}

const places = (widgets) => widgets.map(({ x, y, w, h }) => `${x},${y} ${w}x${h}`);

/** Makes a dashboard over the API and opens it. */
async function make(page, dashboard) {
  const answer = await fetch(`${target.base}/api/dashboards`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ dashboard }) });
  const head = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(head));
  await page.goto(`${target.base}/dashboards/${head.id}`);
  return head;
}

const note = (text, x, y) => ({ kind: 'text', title: text, x, y, w: 8, h: 4, text });

story('made by mouse: a chart, a text, moved and resized, saved', async (page) => {
  const name = unique('By mouse');
  await page.goto(`${target.base}/dashboards`);
  await page.getByRole('button', { name: 'New dashboard' }).click();
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByRole('button', { name: 'Take over' }).click();
  await page.getByRole('button', { name: 'Add a widget' }).click();
  await page.getByLabel('Title').fill('Load');
  await page.getByLabel('Host of item 1').selectOption(machine.host);
  await page.getByLabel('Key of item 1').fill('system.cpu.load*');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('button', { name: 'Add a widget' }).click();
  await page.getByLabel('Kind').selectOption('text');
  await page.locator('dialog textarea').fill(`# Hello\n${HOSTILE}`);
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await chartsReady(page, 1);

  const drag = async (locator, dx, dy) => {
    const box = await locator.boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 + dx, box.y + box.height / 2 + dy, { steps: 8 });
    await page.mouse.up();
  };
  const column = (await page.locator('.grid').boundingBox()).width / 24;
  // The text goes beside the chart, then becomes two columns wider and a row higher.
  await page.locator('.cell-move').nth(1).scrollIntoViewIfNeeded();
  await drag(page.locator('.cell-move').nth(1), column * 12, -40 * 8);
  await drag(page.locator('.cell-size').nth(1), column * 2, 40);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.waitForURL(/\/dashboards\/\d+/);
  await page.getByRole('button', { name: 'Edit' }).waitFor();
  const { dashboard } = await saved(page);
  assert.equal(dashboard.name, name);
  assert.deepEqual(places(dashboard.widgets), ['0,0 12x7', '12,0 10x4']);
  assert.deepEqual(dashboard.widgets[0].items, [{ host: machine.host, key: 'system.cpu.load*' }]);
  await chartsReady(page, 1);
  await page.reload();
  await chartsReady(page, 1);
  await page.getByRole('heading', { name: 'Hello' }).waitFor();
});

story('made by keyboard only: added, moved, resized, removed, saved', async (page) => {
  const name = unique('By keyboard');
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  /** Goes on with Tab until what has the focus is what is looked for. */
  const tabTo = async (wanted, back = false) => {
    for (let n = 0; n < 120; n++) {
      const label = await page.evaluate(() => {
        const at = document.activeElement;
        const label = at.labels?.[0]?.querySelector('span')?.textContent ?? '';
        return `${at.getAttribute('aria-label') ?? ''} ${label} ${at.tagName === 'BUTTON' ? at.textContent : ''}`.trim();
      });
      if (label.startsWith(wanted)) return;
      await press(back ? 'Shift+Tab' : 'Tab');
    }
    assert.fail(`Tab never comes to ${wanted}`);
  };
  await page.goto(`${target.base}/dashboards`);
  await page.getByRole('button', { name: 'New dashboard' }).waitFor();
  await tabTo('New dashboard');
  await press('Enter');
  await page.getByRole('dialog').waitFor();
  await tabTo('Name');
  await page.keyboard.type(name);
  await press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  for (const text of ['one', 'two']) {
    await tabTo('Add a widget');
    await press('Enter');
    await page.getByRole('dialog').waitFor();
    await tabTo('Kind');
    await page.keyboard.type('Text');
    await tabTo('Title');
    await page.keyboard.type(text);
    await tabTo('Text');
    await page.keyboard.type(text);
    await tabTo('Add');
    await press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  // The second stands below the first: up past it, two to the right, one wider, two higher.
  await tabTo('two.');
  await press('ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowRight', 'ArrowRight', 'Shift+ArrowRight', 'Shift+ArrowDown', 'Shift+ArrowDown');
  await page.getByText('two: column 3, row 1, 9 wide, 5 high').waitFor({ state: 'attached' });
  await tabTo('one.', true);
  await press('Delete');
  await tabTo('Save', true);
  await press('Enter');
  await page.waitForURL(/\/dashboards\/\d+/);
  await page.getByRole('button', { name: 'Edit' }).waitFor();
  const { dashboard } = await saved(page);
  assert.deepEqual(dashboard.widgets.map((widget) => widget.title), ['two']);
  assert.deepEqual(places(dashboard.widgets), ['2,0 9x5']);
});

story('of a host with one click; its neighbour through the variable', async (page) => {
  await page.goto(`${target.base}/hosts/${machine.id}?last=5m`);
  await page.getByRole('link', { name: 'make a dashboard' }).click();
  await page.waitForURL(/from-host=/);
  await chartsReady(page, 3);
  await page.getByRole('button', { name: 'Name and variables' }).click();
  await page.getByLabel('Name', { exact: true }).fill(unique('Of a host'));
  await page.getByRole('button', { name: 'Take over' }).click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.waitForURL(/\/dashboards\/\d+/);
  await chartsReady(page, 3);
  const { dashboard } = await saved(page);
  assert.ok(dashboard.widgets.length > 6 && dashboard.widgets.flatMap((one) => one.items ?? []).every((item) => item.host === '$host'));
  assert.equal(await page.locator('.variables select').first().inputValue(), machine.host);
  assert.equal(await page.locator('.widget-missing').count(), 0);
});

story('a variable of a group without hosts says so', async (page) => {
  const name = unique('Empty group');
  await make(page, {
    name,
    variables: [{ name: 'host', title: 'Host', kind: 'host', group: 'Nobody' }],
    widgets: [{ kind: 'chart', title: 'Load', x: 0, y: 0, w: 12, h: 5, items: [{ host: '$host', key: 'system.cpu.load*' }] }],
  });
  await page.getByText('There is no host in group Nobody.').waitFor();
  assert.equal(await page.getByLabel('Host').locator('option').allTextContents().then((all) => all.join()), 'no host in group Nobody');
});

story('an earlier version is looked at and restored', async (page) => {
  await make(page, { name: unique('Versions'), widgets: [note('first', 0, 0)] });
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('button', { name: 'Remove first' }).click();
  await page.getByLabel('Note for this version').fill('without the first');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('There is nothing on this dashboard yet.').waitFor();
  await page.getByRole('button', { name: 'Version 2' }).click();
  await page.getByText('without the first').waitFor();
  await page.getByRole('link', { name: 'Look at 1' }).click();
  await page.getByText('This is version 1 of 2').waitFor();
  await page.getByRole('heading', { name: 'first' }).waitFor();
  assert.match(page.url(), /version=1/);
  await page.getByRole('button', { name: 'Restore this version' }).click();
  await page.getByRole('button', { name: 'Version 3' }).waitFor();
  assert.doesNotMatch(page.url(), /version=1/);
  await page.getByRole('heading', { name: 'first' }).waitFor();
  const now = await saved(page);
  assert.deepEqual([now.version, now.note, now.dashboard.widgets.length], [3, 'restored version 1', 1]);
  assert.equal((await saved(page, '?version=2')).dashboard.widgets.length, 0, 'what was restored over stays in the history');
});

story(
  'somebody else saved meanwhile: it is said, and nothing is lost',
  async (page) => {
    const head = await make(page, { name: unique('Conflict'), widgets: [note('mine', 0, 0)] });
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('button', { name: 'Remove mine' }).waitFor();
    const other = await fetch(`${target.base}/api/dashboards/${head.id}`, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ version: 1, dashboard: { name: head.name, widgets: [note('theirs', 0, 0)] } }) });
    assert.equal(other.status, 200);
    await page.locator('.cell').first().focus();
    await page.keyboard.press('Shift+ArrowRight');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(/you changed version 1, and version 2 was saved since/).waitFor();
    await page.getByRole('link', { name: 'Look at version 2' }).waitFor();
    assert.equal((await saved(page)).dashboard.widgets[0].title, 'theirs');
    await page.getByRole('button', { name: 'Save mine over it' }).click();
    await page.getByRole('button', { name: 'Version 3' }).waitFor();
    const now = await saved(page);
    assert.deepEqual([now.dashboard.widgets[0].title, now.dashboard.widgets[0].w], ['mine', 9]);
  },
  { allowed: ['409'] },
);

story('kiosk: only the widgets, Escape comes back; the address keeps it', async (page) => {
  await make(page, { name: unique('Kiosk'), range: '6h', variables: [{ name: 'pick', kind: 'list', values: ['a', 'b'] }], widgets: [{ ...note('w', 0, 0), text: 'chosen: $pick' }] });
  await page.waitForURL(/last=6h/);
  await page.getByText('chosen: a').waitFor();
  await page.getByLabel('pick').selectOption('b');
  await page.getByText('chosen: b').waitFor();
  await page.getByRole('button', { name: 'Kiosk' }).click();
  await page.locator('.rail').waitFor({ state: 'hidden' });
  await page.reload();
  await page.getByText('chosen: b').waitFor();
  assert.equal(await page.locator('.top').isVisible(), false);
  await page.keyboard.press('Escape');
  await page.locator('.top').waitFor({ state: 'visible' });
});

story('a file: what it would change is shown before it is applied', async (page) => {
  const name = unique('From a file');
  await page.goto(`${target.base}/dashboards`);
  await page.getByLabel('File with dashboards').setInputFiles({ name: 'dashboards.yaml', mimeType: 'application/yaml', buffer: Buffer.from(`dashboards:\n  - name: ${name}\n    widgets: []\n`) });
  await page.getByText(/\bnew$/).first().waitFor();
  if (target.fake) return;
  assert.ok(!(await page.locator('table').allTextContents()).join().includes(name), 'it was applied before it was asked for');
  await page.getByRole('button', { name: 'Apply the file' }).click();
  await page.getByRole('link', { name }).waitFor();
  const text = await (await fetch(`${target.base}/api/dashboard-file`)).text();
  const again = await fetch(`${target.base}/api/dashboard-file`, { method: 'PUT', body: text });
  assert.equal(again.status, 200);
  assert.equal(await (await fetch(`${target.base}/api/dashboard-file`)).text(), text, 'export, apply and export again are not the same bytes');
});

story('on a phone widgets stand below each other', async (page) => {
  await make(page, { name: unique('Phone'), widgets: [note('right', 12, 0), note('left', 0, 0)] });
  await page.getByRole('heading', { name: 'left' }).waitFor();
  const [first, second] = await page.locator('.cell').evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().toJSON()));
  assert.ok(first.bottom <= second.top && first.left === second.left, JSON.stringify([first, second]));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
}, { viewport: { width: 390, height: 844 } });
