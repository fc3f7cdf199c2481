// Pictures of the configuration for docs/screenshots: node configshots.mjs FOLDER [NAME…], with TIDEMARK_BIN.

import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { launch, openPage, settled } from './browser.mjs';
import { startServer } from './ownserver.mjs';

const folder = process.argv[2];
const only = process.argv.slice(3);
mkdirSync(folder, { recursive: true });
const server = await startServer();
const { base } = server;
const browser = await launch();
// What network discovery finds and web scenarios ask; the server does not ask itself.
const web = createServer((_, response) => response.end('ok'));
await new Promise((done) => web.listen(0, '127.0.0.1', done));

const post = async (path, body, method = 'POST') => {
  const answer = await fetch(base + path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
};
const first = await openPage(browser, base, { viewport: { width: 1440, height: 900 } });

const item = (key, name, units, more = {}) => ({ name, type: 'TRAP', key, value_type: 'FLOAT', units, ...more });
const hosts = [
  {
    host: 'room-1',
    name: 'Server room',
    groups: [{ name: 'Rooms' }],
    interfaces: [{ ip: '192.0.2.7', interface_ref: 'if1' }, { type: 'SNMP', useip: 'NO', dns: 'ups.example.com', port: '161', details: { community: '{$SNMP_COMMUNITY}' }, interface_ref: 'if2' }],
    tags: [{ tag: 'site', value: 'north' }],
    macros: [{ macro: '{$WARM}', value: '28' }, { macro: '{$SNMP_COMMUNITY}', type: 'SECRET_TEXT', value: 'public' }],
    items: [
      item('temperature', 'Temperature', '°C'),
      item('humidity', 'Humidity', '%'),
      item('power', 'Power drawn', 'W', { preprocessing: [{ type: 'JSONPATH', parameters: ['$.phases[0].power'] }, { type: 'MULTIPLIER', parameters: ['0.1'] }, { type: 'IN_RANGE', parameters: ['0', '20000'], error_handler: 'DISCARD_VALUE' }] }),
    ],
    discovery_rules: [
      {
        name: 'Sensors',
        type: 'TRAP',
        key: 'sensors',
        delay: '0',
        filter: { conditions: [{ macro: '{#ROOM}', value: '^north', formulaid: 'A' }] },
        lld_macro_paths: [{ lld_macro: '{#ROOM}', path: '$.room' }, { lld_macro: '{#SENSOR}', path: '$.id' }],
        item_prototypes: [item('sensor[{#SENSOR}]', 'Sensor {#SENSOR} in {#ROOM}', '°C', { trigger_prototypes: [{ expression: 'last(/room-1/sensor[{#SENSOR}])>{$WARM}', name: 'Sensor {#SENSOR} is too warm', priority: 'AVERAGE' }] })],
      },
    ],
  },
  { host: 'db-1', name: 'Database one', groups: [{ name: 'Databases' }], templates: [{ name: 'Linux by Tidemark agent' }] },
  { host: 'web-1', name: 'Web one', groups: [{ name: 'Web servers' }], templates: [{ name: 'Linux by Zabbix agent' }] },
];
const triggers = [
  { expression: 'avg(/room-1/temperature,10m)>{$WARM}', name: 'The server room is too warm', priority: 'HIGH', opdata: '{ITEM.LASTVALUE}' },
  { expression: 'last(/room-1/humidity)<20', name: 'The air is too dry', priority: 'WARNING' },
];
const pages = {
  'configuration-guide': ['/'],
  configuration: ['/configuration'],
  'configuration-add': ['/configuration/add'],
  'configuration-added': ['/configuration/add?sends=tidemark', async (page) => {
    await page.getByLabel('Host name').fill(`new-${Date.now() % 1e6}`);
    const encrypt = page.getByLabel('Encrypt with a new pre-shared key');
    if (await encrypt.count()) await encrypt.check();
    await page.getByRole('button', { name: 'Add the host' }).click();
    await page.locator('.next').waitFor();
  }],
  'configuration-host': ['/configuration/hosts/room-1'],
  'configuration-items': ['/configuration/hosts/room-1/items'],
  'configuration-item': ['/configuration/hosts/room-1/items?item=1', async (page) => {
    await page.locator('.try').getByRole('textbox', { name: /^Value/ }).fill('{"phases":[{"power":12840},{"power":11210}]}');
    await page.getByRole('button', { name: 'Test the steps' }).click();
    await page.locator('.tested').waitFor();
  }],
  'configuration-trigger': ['/configuration/hosts/room-1/triggers?trigger=1', async (page) => {
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.locator('.preview').waitFor();
  }],
  'configuration-mistake': ['/configuration/hosts/room-1/triggers?trigger=1', async (page) => {
    await page.getByRole('textbox', { name: /^Expression/ }).fill('avg(/room-1/temperatur,10m)>{$WARM');
    await page.locator('.field .problem-text').first().waitFor();
  }],
  'configuration-macros': ['/configuration/hosts/room-1/macros'],
  'configuration-rule': ['/configuration/hosts/room-1/rules?rule=0'],
  'configuration-templates': ['/configuration/templates'],
  'configuration-globals': ['/configuration/macros'],
  'configuration-macro': ['/configuration/macros?macro=%7B%24SNMP_COMMUNITY%7D', async (page) => {
    await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
  }],
  'configuration-regexp': ['/configuration/macros?regexp=File%20systems%20for%20discovery', async (page) => {
    await page.getByLabel('Text to try it with').fill('ext4');
    await page.getByRole('button', { name: 'Try', exact: true }).click();
    await page.getByRole('status').getByText('for this text').waitFor();
  }],
  'configuration-network': ['/configuration/network'],
  'configuration-network-rule': ['/configuration/network?net=Office', async (page) => {
    await page.getByRole('table').waitFor();
  }],
  'configuration-network-form': ['/configuration/network?net=Office', async (page) => {
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Addresses').waitFor();
  }],
  'configuration-network-action': ['/configuration/network?action=Linux%20machines', async (page) => {
    await page.getByRole('button', { name: 'Save the action' }).waitFor();
  }],
  'configuration-web': ['/configuration/hosts/shop/web', async (page) => {
    await page.getByText('step 2 of 3 failed').waitFor();
  }],
  'configuration-import': ['/configuration/import', async (page) => {
    const text = JSON.stringify({ zabbix_export: { version: '7.0', template_groups: [{ uuid: '7df96b18c230490a9a0a9e2307226338', name: 'Templates' }], templates: [{ uuid: '0123456789ab4def8123456789abc001', template: 'UPS by SNMP', name: 'UPS by SNMP', groups: [{ name: 'Templates' }], items: [{ uuid: '0123456789ab4def8123456789abc002', name: 'Load', type: 'SNMP_AGENT', key: 'ups.load', snmp_oid: 'get[1.3.6.1.2.1.33.1.4.4.1.5.1]' }, { uuid: '0123456789ab4def8123456789abc003', name: 'Wrong', type: 'NONSENSE', key: 'wrong' }] }] } });
    await page.getByLabel('File', { exact: true }).setInputFiles({ name: 'ups.json', mimeType: 'application/json', buffer: Buffer.from(text) });
    await page.getByRole('heading', { name: 'What ups.json does' }).waitFor();
  }],
  'configuration-purge': ['/configuration/hosts/room-1', async (page) => {
    await page.getByText('Delete history').click();
    await page.getByRole('button', { name: 'Delete the history…' }).click();
    await page.getByLabel('Type room-1 to confirm').waitFor();
  }],
};
await post('/api/global-macros/%7B$CPU.MAX%7D', { value: '90' }, 'PUT');
await post('/api/global-macros/%7B$SNMP_COMMUNITY%7D', { value: 'public', secret: true }, 'PUT');
const SIZES = { 1440: { width: 1440, height: 900 }, 390: { width: 390, height: 844 } };
await first.close();

async function picture(name, colorScheme, width, viewport) {
  const { page, faults, close } = await openPage(browser, base, { viewport, colorScheme });
  const [path, act] = pages[name];
  await page.goto(base + path);
  await settled(page);
  await act?.(page);
  await page.waitForTimeout(1_000);
  // As tall as what it shows, so that nothing that floats covers it; long lists as far as a screen goes.
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  if (!/^\/configuration(\/templates)?$/.test(path)) await page.setViewportSize({ width: viewport.width, height: Math.max(viewport.height, Math.min(height, 2_400)) });
  await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png` });
  for (const fault of faults) console.error(name, fault);
  await close();
}

for (const [name] of Object.entries(pages)) {
  if (name === 'configuration-network') {
    const step = (name, path, codes) => ({ name, url: `http://127.0.0.1:${web.address().port}${path}`, status_codes: codes, timeout: '5s' });
    const httptests = [{ name: 'Log in', delay: '10s', steps: [step('Form', '/', '200'), step('Enter', '/enter', '302'), step('Orders', '/orders', '200')] }];
    await post('/api/import', { zabbix_export: { version: '6.0', groups: [{ uuid: '57b7ae836ca64446ba2c296389c009b7', name: 'Web' }], hosts: [{ host: 'shop', name: 'shop', groups: [{ name: 'Web' }], httptests }] } });
    const rule = { name: 'Office', ranges: '127.0.0.1-4', delay: '1h', checks: [{ type: 'tcp', ports: String(web.address().port) }, { type: 'agent', key: 'system.uname', name: 'system', timeout: '0.2s' }] };
    const action = { name: 'Linux machines', event: 'discovery', conditions: [{ field: 'rule', value: 'Office' }, { field: 'value', operator: 'contains', value: 'Linux' }], operations: [{ type: 'add_group', group: 'Linux servers' }, { type: 'link_template', template: 'Linux by Zabbix agent' }] };
    const answer = await fetch(`${base}/api/network-discovery`, { method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ rules: [rule], actions: [action] }) });
    if (!answer.ok) throw new Error(await answer.text());
    await post('/api/network-discovery/scan', { rule: 'Office' });
  }
  if (name === 'configuration') {
    await post('/api/import', { zabbix_export: { version: '7.0', host_groups: [{ name: 'Rooms' }, { name: 'Databases' }, { name: 'Web servers' }], hosts, triggers } });
    const begin = Math.floor(Date.now() / 1000) - 7 * 86_400 + 600;
    const data = Array.from({ length: 2_000 }, (_, n) => ({ host: 'room-1', key: 'temperature', value: (24 + 5 * Math.sin((n / 288) * 2 * Math.PI) + Math.sin(n * 0.37) * 0.6).toFixed(2), clock: begin + n * 300, ns: 0 }));
    for (let at = 0; at < data.length; at += 500) await server.send(data.slice(at, at + 500));
  }
  if (only.length > 0 && !only.includes(name)) continue;
  for (const colorScheme of ['light', 'dark']) for (const [width, viewport] of Object.entries(SIZES)) await picture(name, colorScheme, width, viewport);
}
await browser.close();
web.close();
await server.stop();
