// Journeys of people on the server at TIDEMARK_URL: each by mouse, and each by keyboard alone.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { chartsReady, launch, openPage } from './browser.mjs';
import { startTarget } from './target.mjs';

let browser;
let target;
let base;
let web;
let webhook;
const posted = [];

before(async () => {
  assert.ok(process.env.TIDEMARK_URL, 'journeys need a real server: set TIDEMARK_URL and TIDEMARK_TRAPPER');
  browser = await launch();
  target = await startTarget();
  base = target.base;
  web = createServer((request, response) => {
    if (request.method === 'POST') posted.push(request.url);
    response.end('{}');
  });
  await new Promise((done) => web.listen(0, '127.0.0.1', done));
  webhook = `http://127.0.0.1:${web.address().port}`;
});

after(async () => {
  await browser?.close();
  web?.close();
  await target?.stop();
});

const get = async (path) => (await fetch(base + path)).json();

async function put(method, path, body) {
  const answer = await fetch(base + path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.text());
}

/** What the element with the focus is called. */
const focused = () => {
  const e = document.activeElement;
  if (!e?.matches('a, button, input, select, textarea, summary, [tabindex]')) return '';
  return (e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent ?? '').trim();
};

const MAX_TABS = 200;

// A person with a mouse, and one without: both do the same. Names are texts that the name of a thing begins with.
const hands = {
  mouse: (page) => ({
    press: (name) => found(page, name, 'a, button, summary').click(),
    write: (name, text) => field(page, name).fill(text),
    choose: (name, text) => field(page, name).selectOption({ label: text }),
    tick: (name) => field(page, name).click(),
  }),
  keyboard: (page) => {
    const reach = async (name, shown) => {
      await shown.waitFor();
      for (let n = 0; n < MAX_TABS; n++) {
        if ((await page.evaluate(focused)).startsWith(name)) return;
        await page.keyboard.press('Tab');
      }
      assert.fail(`Tab does not come to ${name}`);
    };
    return {
      press: async (name) => {
        await reach(name, found(page, name, 'a, button, summary'));
        await page.keyboard.press('Enter');
      },
      write: async (name, text) => {
        await reach(name, field(page, name));
        await page.keyboard.press('Control+a');
        await page.keyboard.insertText(text);
      },
      choose: async (name, text) => {
        await reach(name, field(page, name));
        await page.keyboard.type(text);
      },
      tick: async (name) => {
        await reach(name, field(page, name));
        await page.keyboard.press('Space');
      },
    };
  },
};

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const begins = (name) => new RegExp(`^\\s*${escaped(name)}`);
const found = (page, name, selector) => page.locator(selector).filter({ hasText: begins(name) }).or(page.locator(selector.split(', ').map((one) => `${one}[aria-label^="${name.replaceAll('"', '\\"')}"]`).join(', '))).locator('visible=true').first();
const field = (page, name) => page.getByLabel(begins(name)).locator('visible=true').first();

/** Tells a story twice. run gets the page, the hands, and the name of the hands, for what is made twice. */
function journey(name, run) {
  for (const how of ['mouse', 'keyboard']) {
    test(`${name}, by ${how}`, async () => {
      const { page, faults, close } = await openPage(browser, base);
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: base });
      try {
        await run(page, hands[how](page), how);
        assert.equal(await page.evaluate(() => window.__hostile), undefined, 'a hostile name ran as a script');
        // What a form refuses is part of the stories; the browser tells of each such answer.
        assert.deepEqual(faults.filter((fault) => !/status of 4(00|09|22)/.test(fault)), []);
      } finally {
        await close();
      }
    });
  }
}

journey('from the first start to the first graph', async (page, { press }) => {
  const { hosts } = await get('/api/hosts?limit=1000');
  const own = hosts.find((one) => one.items > 50);
  await page.goto(base);
  await page.locator('.host-row', { hasText: own.name }).locator('[data-chart]').first().waitFor();
  await press(own.name);
  await page.waitForURL(new RegExp(`/hosts/${own.id}`));
  await chartsReady(page, 4);
});

journey('find the worst shape', async (page, { press }) => {
  await page.goto(base);
  await page.locator('.card-shape').first().waitFor();
  await press('Requests');
  const first = page.locator('table.requests tbody tr[data-row]').first();
  await first.waitFor();
  const loads = await page.locator('table.requests tbody td.load-cell span').allTextContents();
  assert.equal(parseFloat(loads[0]), Math.max(...loads.map(parseFloat)));
  await press((await first.locator('button.row-button').innerText()).split('\n')[0].trim().slice(0, 12));
  await page.waitForURL(/shape=/);
  await page.locator('[data-chart="shape-heat"]').waitFor();
});

journey('why did this trigger fire', async (page, { press }) => {
  const name = await target.fire();
  await page.goto(base);
  await press('Problems');
  await page.locator('tbody tr', { hasText: name }).first().waitFor();
  await press(name);
  const why = page.getByRole('region', { name: 'Why it fired' });
  await why.getByText('last(/page-test/page.test.value)>10').waitFor();
  assert.deepEqual((await why.locator('tbody td.number').allTextContents()).map((cell) => cell.trim()), ['42', '42']);
  await page.reload();
  await why.locator('tbody a').first().waitFor();
  await press('Value <img');
  await page.waitForURL(/\/items\/\d+\?.*from=/);
  await page.locator('[data-chart]').first().waitFor();
});

journey('acknowledge', async (page, { press, write }, how) => {
  const name = await target.fire();
  await page.goto(`${base}/problems`);
  await page.locator('tbody tr', { hasText: name }).first().waitFor();
  await press(name);
  const seen = page.getByRole('region', { name: 'Who has seen it' });
  await write('Comment', `looked at by ${how}`);
  await press(how === 'mouse' ? 'Acknowledge' : 'Add the comment');
  await seen.locator('li', { hasText: `looked at by ${how}` }).waitFor();
  await page.locator('tbody tr', { hasText: name }).first().getByText('seen').waitFor();
  const { problems } = await get('/api/problems?open=true');
  assert.equal(problems.find((one) => one.name.startsWith(name)).acknowledged, true);
});

journey('suppress, change and close problems', async (page, { press, write, choose, tick }) => {
  const name = await target.fire();
  await page.goto(`${base}/problems`);
  const row = page.locator('tbody tr', { hasText: name }).first();
  await row.waitFor();
  await tick(`Choose ${name}`);
  await page.getByRole('region', { name: 'Chosen problems' }).waitFor();
  await press('More: severity');
  await write('Comment', 'known, a part is on its way');
  await choose('New severity', 'disaster');
  await choose('Suppress', 'for 4 hours');
  await press('Save');
  await row.getByText('suppressed until').waitFor();
  await row.getByText('disaster').waitFor();
  await tick('Hide suppressed');
  await row.waitFor({ state: 'detached' });
  await tick('Hide suppressed');
  await row.waitFor();
  await press(name);
  const done = page.getByRole('region', { name: 'Who has seen it' });
  await done.locator('li', { hasText: 'changed severity from' }).first().waitFor();
  await press('More: severity');
  await tick('Close');
  await press('Save');
  await row.waitFor({ state: 'detached' });
});

journey('add a host', async (page, { press, write }, how) => {
  await page.goto(base);
  await press('Configuration');
  await press('Add a host');
  await press('Tidemark agent');
  await write('Host name', `journey-${how}`);
  await press('Add the host');
  await page.getByRole('heading', { name: `journey-${how} is added` }).waitFor();
  await page.locator('.command code', { hasText: `--host journey-${how}` }).waitFor();
  assert.equal((await get(`/api/hosts?search=journey-${how}`)).total, 1);
});

const TEMPLATE = (name, digit) => `zabbix_export:
  version: '7.0'
  template_groups:
    - uuid: 7df96b18c230490a9a0a9e2307226338
      name: Templates
  templates:
    - uuid: 0123456789ab4def8123456789abd0${digit}1
      template: ${name}
      name: ${name}
      groups:
        - name: Templates
      items:
        - uuid: 0123456789ab4def8123456789abd0${digit}2
          name: Humidity
          type: TRAP
          key: humidity
          value_type: FLOAT
`;

journey('import a template', async (page, { press, write }, how) => {
  const name = `Journey by ${how}`;
  await page.goto(`${base}/configuration`);
  await press('Import');
  await press('Or paste it');
  await write('Text of the file', TEMPLATE(name, how === 'mouse' ? 1 : 2));
  await press('Show the plan');
  await page.getByRole('heading', { name: 'What the pasted text does' }).waitFor();
  assert.equal((await get('/api/configuration')).templates.some((one) => one.template === name), false, 'a plan imported');
  await page.getByRole('button', { name: 'Import', exact: true }).waitFor();
  if (how === 'mouse') await page.getByRole('button', { name: 'Import', exact: true }).click();
  else await press('Import');
  await page.getByRole('heading', { name: 'Imported' }).waitFor();
  assert.equal((await get('/api/configuration')).templates.some((one) => one.template === name), true);
});

journey('preview a trigger', async (page, { press }) => {
  await page.goto(`${base}/configuration/hosts/page-test/triggers?trigger=0`);
  await press('Preview');
  await page.getByText(/Would (not )?have fired/).waitFor();
});

journey('send a test alert', async (page, { press, write, choose }) => {
  const media = [{ name: 'journey hook', webhook: { url: `${webhook}/alert`, allow: ['127.0.0.0/8'] } }];
  await put('PUT', '/api/alerting', { media });
  posted.length = 0;
  await page.goto(base);
  await press('Configuration');
  await press('Actions and media');
  await press('Media and receivers');
  await choose('Over', 'journey hook');
  await write('To', `${webhook}/alert`);
  await press('Send a test message');
  for (let n = 0; posted.length === 0 && n < 200; n++) await page.waitForTimeout(50);
  assert.deepEqual(posted, ['/alert']);
});

journey('explore and link', async (page, { press, write }) => {
  await page.goto(base);
  await press('Explore');
  await write('PromQL expression', 'system_cpu_load');
  await page.keyboard.press('Escape');
  await press('Run');
  await page.locator('[data-chart="explore"][data-status="ready"]').waitFor();
  await press('Copy a link');
  await page.getByText('Link copied').waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(link, /q=system_cpu_load.*from=.*to=/);
  const other = await openPage(browser, base);
  await other.page.goto(link);
  await other.page.locator('[data-chart="explore"][data-status="ready"]').waitFor();
  await other.page.getByText('paused').waitFor();
  await other.close();
});

journey('storage: how long will it last, and keeping values longer', async (page, { press, write }, how) => {
  await page.goto(base);
  await press('Storage');
  await page.locator('[data-number="lasts"]').waitFor();
  await page.getByRole('heading', { name: 'Retention' }).waitFor();
  await write('Values of all items', 'long');
  await press('Keep them so long');
  await page.getByRole('alert').getByText('“long” is no time').waitFor();
  const days = how === 'mouse' ? 31 : 62;
  await write('Values of all items', `${days}d`);
  await write('Summaries of all items', '365d');
  await press('Keep them so long');
  await page.getByText(`Values are kept for ${days}d, whatever items say; summaries for 365d`).waitFor();
  const kept = await get('/api/storage/retention');
  assert.deepEqual([kept.history_seconds, kept.trends_seconds], [days * 86_400, 31_536_000]);
  await put('PUT', '/api/storage/retention', { history_seconds: 0, trends_seconds: 0 });
});
