// The configuration on the real server: hosts, items, triggers, templates, tests before anything is stored, and deleting history; by mouse and by
// keyboard alone.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { launch, openPage, settled } from './browser.mjs';
import { startServer } from './ownserver.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
let server;
let base;
let web;
let webhook;
const posted = [];

before(async () => {
  browser = await launch();
  web = createServer((request, response) => {
    if (request.method === 'POST') posted.push(request.url);
    response.end('{"temperature":21.5}');
  });
  await new Promise((done) => web.listen(0, '127.0.0.1', done));
  webhook = `http://127.0.0.1:${web.address().port}`;
  server = await startServer();
  base = server.base;
});

after(async () => {
  await browser?.close();
  web?.close();
  await server?.stop();
});

/** Runs a story on a fresh page and fails it for anything that must never happen. */
function story(name, run, options = {}) {
  test(name, async () => {
    const { page, faults, close } = await openPage(browser, base, options);
    try {
      await run(page);
      // A refused document is part of the stories; the browser tells of each such answer.
      assert.deepEqual(faults.filter((fault) => !/status of 4(00|09|22)/.test(fault)), []);
    } finally {
      await close();
    }
  });
}

const get = async (path) => (await fetch(base + path)).json();
const yaml = async (host) => (await fetch(`${base}/api/export?host=${host}`)).text();

/** Moves with Tab until the element with a name has the focus, unless it has it already. */
async function tabTo(page, name, limit = 80) {
  for (let n = 0; n < limit; n++) {
    const label = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e?.matches('a, button, input, select, textarea, summary')) return '';
      return e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent ?? '';
    });
    if (label.trim().startsWith(name)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not come to ${name}`);
}

/** Changes something and waits until the server has looked at it and the page shows what it said. */
async function planned(page, change) {
  const answer = page.waitForResponse((response) => response.url().includes('/api/configuration/plan'));
  await change();
  await (await answer).finished();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

story('the overview of a new server tells the first steps', async (page) => {
  await page.goto(base);
  await page.getByRole('heading', { name: 'First steps' }).waitFor();
  for (const step of ['Add a host', 'See what MongoDB does', 'Be told of problems', 'Connect Grafana']) await page.locator('.guide').getByText(step, { exact: true }).waitFor();
  await page.getByRole('link', { name: 'With templates, another name or encryption' }).click();
  await page.getByRole('heading', { name: 'Add a host' }).waitFor();
});

story('add a host with the mouse, with a pre-shared key', async (page) => {
  await page.goto(`${base}/configuration`);
  await page.getByRole('link', { name: 'Add a host' }).first().click();
  await page.getByRole('button', { name: 'Tidemark agent' }).click();
  const form = page.locator('main form');
  await form.getByLabel('Host name').fill('no/name');
  await form.getByText('is no host name').waitFor();
  await form.getByLabel('Host name').fill('db1.example.com');
  await form.getByLabel('Host groups').fill('Databases');
  await form.getByRole('button', { name: 'Add', exact: true }).first().click();
  await form.getByLabel('Address').fill('192.0.2.7');
  await form.getByLabel('Encrypt with a new pre-shared key').check();
  await form.getByRole('button', { name: 'Add the host' }).click();
  await page.getByRole('heading', { name: 'db1.example.com is added' }).waitFor();
  const { trapper } = await get('/api/me');
  assert.match(trapper, /^127\.0\.0\.1:\d+$/);
  const commands = await page.locator('.command code').allTextContents();
  assert.match(commands[0], /echo [0-9a-f]{64} > db1\.example\.com\.psk/);
  assert.match(commands[1], new RegExp(`tidemark agent --server ${trapper.replaceAll('.', '\\.')} --host db1\\.example\\.com --tls-connect psk`));
  await page.getByText("only the server's own machine reaches it").waitFor();
  assert.match(await yaml('db1.example.com'), /ip: '?192\.0\.2\.7/);
  const { hosts } = await get('/api/hosts');
  assert.deepEqual(hosts[0].groups.includes('Databases'), true);
  assert.equal((await get(`/api/hosts/${hosts[0].id}/tls`)).psk_identity, 'db1.example.com');
  await page.getByRole('link', { name: 'Edit it' }).click();
  await page.reload(); // An address with dots in it is a page too.
  await page.getByRole('heading', { name: 'db1.example.com' }).waitFor();
  await page.getByLabel('Visible name').fill('Database one');
  await page.getByRole('region', { name: 'Changes that are not saved' }).getByText('1 host updated').waitFor();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('1 host updated').waitFor();
  assert.match(await yaml('db1.example.com'), /name: '?Database one/);
  // A second host of the same name is refused while it is typed.
  await page.goto(`${base}/configuration/add?sends=program`);
  await page.getByLabel('Host name').fill('db1.example.com');
  await page.getByText('exists already').waitFor();
});

story('add a host, an item and a trigger by keyboard alone', async (page) => {
  await page.goto(`${base}/configuration/add`);
  await page.getByRole('button', { name: 'Sender or another program' }).waitFor();
  await tabTo(page, 'Sender or another program');
  await page.keyboard.press('Enter');
  await page.getByLabel('Host name').waitFor();
  await tabTo(page, 'Host name');
  await page.keyboard.type('web-1');
  await tabTo(page, 'Add the host');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'web-1 is added' }).waitFor();
  await page.locator('.command code', { hasText: /zabbix_sender -z 127\.0\.0\.1 -p \d+ -s web-1/ }).waitFor();
  assert.doesNotMatch(await yaml('web-1'), /Linux by/);
  await tabTo(page, 'Edit it');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'web-1' }).waitFor();
  await page.getByLabel('Visible name').waitFor();
  await tabTo(page, 'Items');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'New item' }).waitFor();
  await tabTo(page, 'New item');
  await page.keyboard.press('Enter');
  await page.getByLabel('Key', { exact: false }).first().waitFor();
  assert.equal(await page.locator('main .problem-text').count(), 0, 'mistakes before anything was typed');
  assert.equal(await page.getByText('the values of the old one').count(), 0);
  await tabTo(page, 'Name');
  await page.keyboard.type('Temperature');
  await tabTo(page, 'Key');
  await page.keyboard.type('temperature now');
  await page.locator('.field', { hasText: 'Key' }).locator('.problem-text').first().waitFor();
  for (let n = 0; n < 4; n++) await page.keyboard.press('Backspace');
  await tabTo(page, 'Type');
  await page.keyboard.type('Trapper');
  await tabTo(page, 'Units');
  await page.keyboard.type('C');
  await tabTo(page, 'Save');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('1 item created').waitFor();
  const text = await yaml('web-1');
  for (const line of ['key: temperature', 'units: C', 'type: TRAP', 'value_type: FLOAT']) assert.ok(text.includes(line), `${line} in\n${text}`);

  await page.goto(`${base}/configuration/hosts/web-1/triggers`);
  await page.getByRole('button', { name: 'New trigger' }).waitFor();
  await tabTo(page, 'New trigger');
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: /^Expression/ }).waitFor();
  await tabTo(page, 'Name');
  await page.keyboard.type('Too warm');
  await tabTo(page, 'Expression');
  await page.keyboard.press('Control+a');
  await page.keyboard.type('last(/web-1/humidity)>30');
  await page.getByText('there is no item humidity on web-1').first().waitFor();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('last(/web-1/temperature)>30');
  await page.getByText('there is no item humidity on web-1').first().waitFor({ state: 'detached' });
  await tabTo(page, 'Save');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('1 trigger created').waitFor();
});

story('preview a trigger on stored values', async (page) => {
  const begin = Math.floor(Date.now() / 1000) - 6 * 3600;
  const data = Array.from({ length: 240 }, (_, n) => ({ host: 'web-1', key: 'temperature', value: String(20 + 15 * Math.sin((n / 60) * 2 * Math.PI)), clock: begin + n * 60, ns: 0 }));
  assert.match(await server.send(data), /processed: 240; failed: 0/);
  await page.goto(`${base}/configuration/hosts/web-1/triggers?trigger=0`);
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByText('Would have fired 4 times').waitFor();
  assert.equal(await page.locator('.preview rect').count(), 4);
  // The chart begins at the first stored value, six hours ago, and not seven days ago.
  const [left, middle] = await page.locator('.preview-times span').allTextContents();
  assert.notEqual(left, middle);
  assert.equal(await page.locator('.preview-heights span').count(), 2);
  assert.ok((await page.locator('.preview rect').first().evaluate((bar) => Number(bar.getAttribute('width')))) > 40, 'the problems are hairlines');
  assert.equal(await page.locator('.tested tbody tr').count(), 4);
  // What is typed is tried, without being saved.
  await page.getByRole('textbox', { name: /^Expression/ }).fill('last(/web-1/temperature)>99');
  await page.getByRole('button', { name: 'Preview' }).focus();
  await page.keyboard.press('Enter');
  await page.getByText('Would not have fired').waitFor();
  await page.getByRole('button', { name: 'Discard' }).click();
  assert.match(await yaml('web-1'), />30/);
});

story('add a passive agent and an SNMP device: both need an address', async (page) => {
  for (const [kind, name, lines] of [
    ['Zabbix agent, the server asks it', 'asked-1', [/name: '?Linux by Zabbix agent passive/, /ip: '?192\.0\.2\.8/]],
    ['SNMP device', 'switch-1', [/type: SNMP/, /port: '161'/, /community: private/]],
  ]) {
    await page.goto(`${base}/configuration/add`);
    await page.getByRole('button', { name: kind }).click();
    await page.getByRole('button', { name: 'another kind' }).click();
    await page.getByRole('button', { name: kind }).click();
    await page.getByLabel('Host name').fill(name);
    await page.getByRole('button', { name: 'Remove Hosts' }).or(page.getByRole('button', { name: 'Remove Linux servers' })).click();
    if (kind === 'SNMP device') await page.getByLabel('Community').fill('private');
    await page.getByRole('button', { name: 'Add the host' }).click();
    assert.equal(await page.getByLabel('Address').evaluate((field) => field.validity.valueMissing), true);
    await page.getByLabel('Address').fill('192.0.2.8');
    await page.getByRole('button', { name: 'Add the host' }).click();
    await page.getByText('choose at least one host group').waitFor();
    await page.getByLabel('Host groups').fill('Asked');
    await page.getByRole('button', { name: 'Add', exact: true }).first().click();
    await page.getByRole('button', { name: 'Add the host' }).click();
    await page.getByRole('heading', { name: `${name} is added` }).waitFor();
    const text = await yaml(name);
    for (const line of lines) assert.match(text, line);
  }
});

story('test an item: its value now, and what each step makes of it', async (page) => {
  await page.goto(`${base}/configuration/hosts/web-1/items`);
  await page.getByRole('button', { name: 'New item' }).click();
  await page.getByLabel('Name', { exact: true }).fill('Page');
  await page.getByLabel('Key', { exact: false }).first().fill('page');
  await page.getByRole('combobox', { name: /^Type/ }).selectOption('HTTP_AGENT');
  await page.getByLabel('URL').fill(webhook);
  await page.getByLabel('Add a step').selectOption('JSONPATH');
  await page.getByLabel('Path, such as').fill('$.temperature');
  await page.getByLabel('Add a step').selectOption('MULTIPLIER');
  await page.getByLabel('Number', { exact: true }).fill('2');
  await page.getByRole('button', { name: 'Get the value now' }).click();
  const tested = page.locator('.tested');
  await tested.getByText('Would be stored as float').waitFor();
  assert.deepEqual((await tested.locator('tbody td:last-child').allTextContents()).map((cell) => cell.trim()), ['21.5', '43']);
  await page.locator('.try').getByLabel('Value', { exact: true }).fill('{"temperature":"warm"}');
  await page.getByRole('button', { name: 'Test the steps' }).click();
  await tested.getByText('Not supported').waitFor();
  // An interval that cannot be read is said at its field, while it is typed.
  await page.getByLabel('Interval').fill('often');
  await page.locator('.field', { hasText: 'Interval' }).locator('.problem-text').waitFor();
  await page.getByLabel('Interval').fill('30s');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('1 item created').waitFor();
});

story('import a template: the plan first', async (page) => {
  await page.goto(`${base}/configuration/import`);
  const file = `zabbix_export:
  version: '7.0'
  template_groups:
    - uuid: 7df96b18c230490a9a0a9e2307226338
      name: Templates
  templates:
    - uuid: 0123456789ab4def8123456789abc001
      template: Room
      name: Room
      groups:
        - name: Templates
      items:
        - uuid: 0123456789ab4def8123456789abc002
          name: Humidity
          type: TRAP
          key: humidity
          value_type: FLOAT
        - uuid: 0123456789ab4def8123456789abc003
          name: Wrong
          type: NONSENSE
          key: wrong
`;
  await page.getByLabel('File', { exact: true }).setInputFiles({ name: 'room.yaml', mimeType: 'application/yaml', buffer: Buffer.from(file) });
  await page.getByRole('heading', { name: 'What room.yaml does' }).waitFor();
  await page.getByText('item wrong: type is "NONSENSE"').waitFor();
  assert.equal((await get('/api/configuration')).templates.some((one) => one.template === 'Room'), false, 'a plan imported');
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('heading', { name: 'Imported' }).waitFor();
  await page.getByRole('link', { name: 'Templates' }).click();
  await page.getByLabel('Search templates').fill('room');
  await page.getByRole('link', { name: 'Room' }).click();
  await page.getByRole('link', { name: 'Items', exact: true }).click();
  await page.getByRole('button', { name: 'Humidity' }).waitFor();
});

story('the host as text is the same as the file', async (page) => {
  await page.goto(`${base}/configuration/hosts/web-1/text`);
  const area = page.getByLabel('host web-1 as YAML');
  await area.waitFor();
  assert.equal(await area.inputValue(), await yaml('web-1'));
  await area.fill((await yaml('web-1')).replace('units: C', 'units: F'));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').getByText('1 item updated').waitFor();
  assert.match(await yaml('web-1'), /units: F/);
});

story('send a test alert to a webhook, by keyboard', async (page) => {
  const media = [{ name: 'page hook', webhook: { url: `${webhook}/alert`, allow: ['127.0.0.0/8'] } }];
  const answer = await fetch(`${base}/api/alerting`, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ media }) });
  assert.equal(answer.status, 200, await answer.text());
  await page.goto(`${base}/configuration`);
  await tabTo(page, 'Actions and media');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Media and receivers' }).focus();
  await page.keyboard.press('Enter');
  const to = page.locator('main form').getByLabel('To', { exact: false });
  await to.focus();
  await page.keyboard.type(`${webhook}/alert`);
  await page.keyboard.press('Enter');
  for (let n = 0; posted.length === 0 && n < 200; n++) await page.waitForTimeout(50);
  assert.deepEqual(posted, ['/alert']);
});

story('delete the history of an item: asked twice, with the name typed', async (page) => {
  const last = async () => (await get('/api/items?search=temperature')).items[0].last;
  assert.notEqual(await last(), null);
  await page.goto(`${base}/configuration/hosts/web-1`);
  await page.getByText('Delete history').click();
  await page.getByLabel('Key of the only item').fill('temperature');
  await page.getByRole('button', { name: 'Delete the history…' }).click();
  await page.getByLabel('Type temperature to confirm').fill('temper');
  await page.getByRole('button', { name: 'Delete the history of 1 item' }).click();
  await page.getByRole('alert').getByText('type temperature').waitFor();
  assert.notEqual(await last(), null);
  await page.getByLabel('Type temperature to confirm').fill('temperature');
  await page.getByRole('button', { name: 'Delete the history of 1 item' }).click();
  await page.getByText('The history of 1 item is deleted.').waitFor();
  assert.equal(await last(), null);
});

const VIEWS = [
  '',
  '/add',
  '/templates',
  '/macros',
  '/import',
  '/hosts/web-1',
  '/hosts/web-1/items?item=0',
  '/hosts/web-1/triggers?trigger=0',
  '/hosts/web-1/rules',
  '/hosts/web-1/macros',
  '/hosts/web-1/text',
  `/templates/${encodeURIComponent('Linux by Zabbix agent')}/rules?rule=0`,
  '/macros?fresh=regexp',
  '/network',
  '/network?fresh=net',
  '/network?fresh=action',
];

async function open(page, view) {
  await page.goto(`${base}/configuration${view}`);
  await settled(page);
}

story(
  'narrow: no page of the configuration is wider than the screen',
  async (page) => {
    for (const view of VIEWS) {
      await open(page, view);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${view} is ${wide} px wider than the screen`);
    }
    await open(page, '/add');
    await page.getByRole('button', { name: 'Zabbix agent, active' }).click();
    await page.getByLabel('Host name').fill('narrow-1');
    await page.getByLabel('Encrypt with a new pre-shared key').check();
    await page.getByRole('button', { name: 'Add the host' }).click();
    await page.getByRole('heading', { name: 'narrow-1 is added' }).waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, 'the commands for a new host are wider than the screen');
  },
  { viewport: { width: 390, height: 844 } },
);

for (const colorScheme of ['light', 'dark']) {
  story(
    `no serious finding of axe in the configuration, ${colorScheme}`,
    async (page) => {
      for (const view of VIEWS) {
        await open(page, view);
        await page.evaluate(AXE);
        const found = await page.evaluate(async () => (await axe.run(document, { resultTypes: ['violations'] })).violations);
        const serious = found.filter((one) => one.impact === 'serious' || one.impact === 'critical');
        assert.deepEqual(serious.map((one) => `${view}: ${one.id}: ${one.nodes[0].html.slice(0, 160)} ${one.nodes[0].failureSummary}`), []);
      }
    },
    { colorScheme },
  );
}

story('a host is deleted', async (page) => {
  await page.goto(`${base}/configuration/hosts/web-1`);
  await page.getByRole('button', { name: 'Delete the host' }).click();
  await page.getByRole('button', { name: 'Delete web-1 with all its items?' }).click();
  await page.waitForURL(`${base}/configuration`);
  assert.equal((await get('/api/hosts?search=web-1')).total, 0);
});

story('global regular expressions: make, try, change and delete one, by keyboard', async (page) => {
  await page.goto(`${base}/configuration/macros`);
  await page.getByRole('button', { name: 'New regular expression' }).waitFor();
  await tabTo(page, 'New regular expression');
  await page.keyboard.press('Enter');
  await page.getByLabel('Name').waitFor();
  assert.equal(await page.locator('main .problem-text').count(), 0, 'mistakes before anything was typed');
  await tabTo(page, 'Name');
  await page.keyboard.type('Disks');
  await tabTo(page, 'Regular expression');
  await page.keyboard.type('^(sd|nvme');
  await tabTo(page, 'Text to try it with');
  await page.keyboard.type('nvme0n1');
  await tabTo(page, 'Try');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('expression 1').waitFor();
  await page.getByLabel('Regular expression', { exact: true }).fill('^(sd|nvme)');
  await page.getByRole('button', { name: 'Try', exact: true }).click();
  await page.getByRole('status').getByText('True for this text.').waitFor();
  await page.getByLabel('Text to try it with').fill('vda');
  await page.getByRole('button', { name: 'Try', exact: true }).click();
  await page.getByRole('status').getByText('Not fulfilled: expression 1').waitFor();
  await tabTo(page, 'Save');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: '@Disks' }).waitFor();
  assert.equal((await get('/api/regexps')).regexps.find((one) => one.name === 'Disks').expressions[0].expression, '^(sd|nvme)');
  await page.getByRole('link', { name: '@Disks' }).click();
  await page.reload(); // The open one is in the address.
  await page.getByRole('button', { name: 'Add an expression' }).click();
  await page.getByLabel('The text').nth(1).selectOption('not_included');
  await page.getByLabel('Text', { exact: true }).fill('boot');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /@Disks/ }).getByText('does not contain').waitFor();
  await page.getByRole('row', { name: /@Disks/ }).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete Disks?' }).click();
  await page.getByRole('link', { name: '@Disks' }).waitFor({ state: 'detached' });
});

story('global macros: make, change and delete one, by keyboard, and never show a secret', async (page) => {
  const globals = async () => (await get('/api/configuration')).global_macros.filter((one) => one.macro.startsWith('{$E2E'));
  await page.goto(`${base}/configuration/macros`);
  await page.getByRole('button', { name: 'New macro' }).waitFor();
  await tabTo(page, 'New macro');
  await page.keyboard.press('Enter');
  await page.getByLabel('Name').waitFor();
  await tabTo(page, 'Name');
  await page.keyboard.type('E2E');
  await tabTo(page, 'Value');
  await page.keyboard.type('7');
  await tabTo(page, 'Save');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').filter({ hasText: 'expected the form {$NAME}' }).waitFor();
  await page.getByLabel('Name').fill('{$E2E:"a/b"}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /E2E/ }).getByText('7', { exact: true }).waitFor();
  assert.deepEqual(await globals(), [{ macro: '{$E2E:"a/b"}', value: '7' }]);
  await page.getByRole('link', { name: '{$E2E:"a/b"}' }).click();
  await page.reload(); // The open one is in the address.
  await page.getByLabel('Value').fill('canary-9a1');
  await page.getByLabel(/^Secret/).check();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /E2E/ }).getByText('secret').waitFor();
  assert.deepEqual(await globals(), [{ macro: '{$E2E:"a/b"}', secret: true }]);
  await page.getByRole('link', { name: '{$E2E:"a/b"}' }).click();
  assert.equal(await page.getByLabel('Value').inputValue(), '');
  await page.getByLabel(/^Secret/).uncheck();
  await page.getByLabel('Value').fill('8');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /E2E/ }).getByText('8', { exact: true }).waitFor();
  assert.ok(!JSON.stringify(await get('/api/audit?search=global-macros')).includes('canary-9a1'), 'the audit log shows a secret');
  await page.getByRole('row', { name: /E2E/ }).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete {$E2E:"a/b"}?' }).click();
  await page.getByRole('link', { name: '{$E2E:"a/b"}' }).waitFor({ state: 'detached' });
  assert.deepEqual(await globals(), []);
});

story('network discovery: a rule is made, looks, and shows what it found', async (page) => {
  await page.goto(`${base}/configuration/network`);
  await page.getByText('There is no rule of network discovery.').waitFor();
  await page.getByRole('button', { name: 'New rule' }).click();
  const form = page.locator('main form');
  await form.getByLabel('Name', { exact: true }).fill('Here');
  await form.getByLabel('Addresses').fill('127.0.0.1/99');
  await form.getByLabel('Asks by').selectOption('tcp');
  await form.getByLabel('Ports').fill(new URL(webhook).port);
  await form.getByRole('button', { name: 'Save the rule' }).click();
  await form.getByRole('alert').filter({ hasText: '127.0.0.1/99' }).waitFor();
  await form.getByLabel('Addresses').fill('127.0.0.1');
  await form.getByRole('button', { name: 'Save the rule' }).click();
  await page.getByRole('link', { name: 'Here' }).click();
  await page.getByRole('heading', { name: 'What it found' }).waitFor();
  await page.getByRole('button', { name: 'Look now' }).click();
  await page.getByRole('row', { name: /127\.0\.0\.1 up for/ }).waitFor();
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Switched off').check();
  await page.getByRole('button', { name: 'Save the rule' }).click();
  await page.getByRole('row', { name: /^Here/ }).getByText('off').waitFor();
  assert.equal((await get('/api/network-discovery')).rules[0].disabled, true);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete Here?' }).click();
  await page.getByText('There is no rule of network discovery.').waitFor();
});

story('network discovery: a proxy looks', async (page) => {
  await fetch(`${base}/api/proxies`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: 'branch', description: '' }) });
  await page.goto(`${base}/configuration/network?fresh=net`);
  const form = page.locator('main form');
  await form.getByLabel('Name', { exact: true }).fill('Far');
  await form.getByLabel('Addresses').fill('10.0.0.1-9');
  await form.getByLabel('Looked at by').selectOption('branch');
  await form.getByRole('button', { name: 'Save the rule' }).click();
  await page.getByRole('row', { name: /^Far/ }).getByText('proxy branch has not told anything yet').waitFor();
  assert.equal((await get('/api/network-discovery')).rules[0].proxy, 'branch');
  await page.getByRole('link', { name: 'Far' }).click();
  await page.getByText('from proxy branch').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Look now' }).count(), 0);
  await page.getByRole('button', { name: 'Back to the list' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete Far?' }).click();
  await page.getByText('There is no rule of network discovery.').waitFor();
  assert.equal((await fetch(`${base}/api/proxies/branch`, { method: 'DELETE' })).status, 200);
});

story('network discovery: an action is made, changed and deleted', async (page) => {
  await page.goto(`${base}/configuration/network`);
  await page.getByText('There are none: what is found becomes no host.').waitFor();
  await page.getByRole('button', { name: 'New action' }).click();
  const form = page.locator('main form');
  assert.equal(await form.locator('.problem-text').count(), 0);
  await form.getByRole('button', { name: 'Save the action' }).click();
  await form.getByText('Condition 1: write the value.').waitFor();
  await form.getByLabel('Name', { exact: true }).fill('Linux');
  await form.getByRole('group', { name: 'Condition 1' }).getByLabel(/^Value/).fill('Here');
  await form.getByRole('combobox', { name: 'Host group', exact: true }).fill('Linux servers');
  await form.getByRole('button', { name: 'Add an operation' }).click();
  await form.getByRole('group', { name: 'Operation 2' }).getByRole('combobox', { name: 'Template', exact: true }).fill('Linux by Zabbix agent');
  await form.getByRole('button', { name: 'Save the action' }).click();
  const row = page.getByRole('row', { name: /^Linux/ });
  await row.getByText('link the template Linux by Zabbix agent').waitFor();
  await row.getByRole('link', { name: 'Linux' }).click();
  await form.getByRole('combobox', { name: 'When', exact: true }).selectOption('autoregistration');
  await form.getByRole('group', { name: 'Condition 1' }).waitFor({ state: 'detached' });
  await form.getByRole('button', { name: 'Add a condition' }).click();
  await form.getByRole('group', { name: 'Condition 1' }).getByRole('combobox', { name: 'Of', exact: true }).selectOption('metadata');
  await form.getByRole('group', { name: 'Condition 1' }).getByRole('combobox', { name: 'Comparison', exact: true }).selectOption('matches');
  await form.getByRole('group', { name: 'Condition 1' }).getByLabel(/^Value/).fill('(');
  await form.getByRole('button', { name: 'Save the action' }).click();
  await form.getByRole('alert').filter({ hasText: 'condition A' }).waitFor();
  await form.getByRole('group', { name: 'Condition 1' }).getByLabel(/^Value/).fill('linux');
  await form.getByRole('button', { name: 'Save the action' }).click();
  await row.getByText('registration').waitFor();
  const [action] = (await get('/api/network-discovery')).actions;
  assert.deepEqual(action, { name: 'Linux', event: 'autoregistration', conditions: [{ field: 'metadata', operator: 'matches', value: 'linux' }], operations: [{ type: 'add_group', group: 'Linux servers' }, { type: 'link_template', template: 'Linux by Zabbix agent' }] });
  await row.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete Linux?' }).click();
  await page.getByText('There are none: what is found becomes no host.').waitFor();
});

story('a preprocessing step shows its mistakes when it was touched, while it is typed', async (page) => {
  const made = await fetch(`${base}/api/import`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ zabbix_export: { version: '7.0', host_groups: [{ name: 'Steps' }], hosts: [{ host: 'steps', name: 'steps', groups: [{ name: 'Steps' }], items: [{ name: 'Load', type: 'TRAP', key: 'load', value_type: 'FLOAT' }] }] } }) });
  assert.equal(made.status, 200);
  await page.goto(`${base}/configuration/hosts/steps/items?item=0`);
  await page.getByLabel('Add a step').selectOption('MULTIPLIER');
  const step = page.locator('.step').last();
  await page.getByRole('region', { name: 'Changes that are not saved' }).getByText('1 item updated').waitFor(); // the server has answered, with a remark
  assert.equal(await step.locator('.problem-text').count(), 0);
  await step.getByLabel('Number').fill('ten');
  await step.locator('.problem-text').waitFor();
  await step.getByLabel('Number').fill('10');
  await step.locator('.problem-text').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Discard' }).click();
});

story('web scenarios of a host: none, then the steps and the last result', async (page) => {
  const step = (name, path, codes) => ({ name, url: `${webhook}${path}`, status_codes: codes, timeout: '5s' });
  const make = (hosts) => fetch(`${base}/api/import`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ zabbix_export: { version: '6.0', groups: [{ uuid: '57b7ae836ca64446ba2c296389c009b7', name: 'Web' }], hosts } }) });
  const shop = { host: 'shop', name: 'shop', groups: [{ name: 'Web' }] };
  assert.equal((await make([shop])).status, 200);
  await page.goto(`${base}/configuration/hosts/shop/web`);
  await page.getByText('This host has no web scenarios.').waitFor();
  const scenario = { name: 'Log in', delay: '10s', steps: [step('Form', '/form', '200'), step('Enter', '/enter', '500'), step('Leave', '/leave', '200')] };
  assert.equal((await make([{ ...shop, httptests: [scenario] }])).status, 200);
  await page.reload();
  const section = page.getByRole('region', { name: 'Web scenario Log in' });
  await section.getByText('step 2 of 3 failed: step "Enter": response code 200').waitFor();
  const row = (name) => section.getByRole('row', { name: new RegExp(name) });
  await row('Form').getByText('as expected').waitFor();
  await row('Form').getByRole('link', { name: '200', exact: true }).waitFor();
  await row('Enter').getByText('failed').waitFor();
  await row('Leave').getByText('not reached').waitFor();
  await page.getByRole('link', { name: 'see its values' }).click();
  await page.getByRole('navigation', { name: 'Host' }).getByRole('link', { name: 'Web' }).click();
  await section.getByText('step 2 of 3 failed: step "Enter": response code 200').waitFor();
});

story('new triggers and discovery rules show no mistakes before they are touched', async (page) => {
  await planned(page, () => page.goto(`${base}/configuration/hosts/shop/triggers`));
  await planned(page, () => page.getByRole('button', { name: 'New trigger' }).click());
  assert.equal(await page.locator('main .problem-text').count(), 0, 'a new trigger');
  await page.getByLabel('Expression', { exact: false }).first().fill('last(/shop/none)>');
  await page.locator('.field', { hasText: 'Expression' }).locator('.problem-text').first().waitFor();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await planned(page, () => page.goto(`${base}/configuration/hosts/shop/rules`));
  await planned(page, () => page.getByRole('button', { name: 'New discovery rule' }).click());
  assert.equal(await page.locator('main .problem-text').count(), 0, 'a new discovery rule');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.locator('main .problem-text').first().waitFor();
  await page.getByRole('button', { name: 'Discard' }).click();
});
