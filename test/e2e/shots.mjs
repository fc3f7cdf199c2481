// Takes the screenshots of docs/screenshots: every page, light and dark, wide and narrow.
//
//   node shots.mjs [folder [page…]]  with TIDEMARK_URL as in the test

import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { chartsReady, launch, openPage, settled } from './browser.mjs';
import { startTarget } from './target.mjs';

const folder = process.argv[2] ?? fileURLToPath(new URL('../../docs/screenshots', import.meta.url));
const SIZES = { 1440: { width: 1440, height: 900 }, 390: { width: 390, height: 844 } };
const target = await startTarget('--hosts', '60');
const first = target.fake ? await startTarget('--hosts', '1', '--age', '50') : target;
const browser = await launch();
await mkdir(folder, { recursive: true });

const { hosts } = await (await fetch(`${target.base}/api/hosts?limit=1000`)).json();
const host = (hosts.find((one) => one.items > 50) ?? hosts[0]).id;
const { items } = await (await fetch(`${target.base}/api/items?host=${host}&search=system.cpu.load`)).json();
const { instances } = await (await fetch(`${target.base}/api/mongo/instances`)).json();
const instance = encodeURIComponent(instances[0]?.id ?? '');
const dearest = instances.length === 0 ? '' : (await (await fetch(`${target.base}/api/mongo/requests?instance=${instance}&limit=1`)).json()).rows[0]?.id;
const { items: lines } = await (await fetch(`${target.base}/api/items?host=${host}&search=syslog`)).json();
const { items: units } = await (await fetch(`${target.base}/api/items?host=${host}&search=nginx`)).json();
const { problems: open } = await (await fetch(`${target.base}/api/problems?open=true`)).json();
const only = process.argv.slice(3);
const pages = {
  'first-start': [first.base, '/'],
  overview: [target.base, '/'],
  host: [target.base, `/hosts/${host}?last=15m`],
  problems: [target.base, '/problems'],
  problem: [target.base, `/problems?problem=${open[0]?.event_id}`],
  hosts: [target.base, '/hosts'],
  values: [target.base, '/hosts/values'],
  item: [target.base, `/items/${items[0].id}?last=15m`],
  requests: [target.base, `/requests?instance=${instance}&last=1h`],
  'requests-shape': [target.base, `/requests?instance=${instance}&last=1h&shape=${dearest}`],
  'requests-compare': [target.base, `/requests?instance=${instance}&last=30m&compare=1h`],
  ...(target.fake ? { dashboard: [target.base, '/dashboards/1?last=15m'], 'dashboard-edit': [target.base, `/dashboards/new?from-host=${host}&last=15m`] } : {}),
  dashboards: [target.base, '/dashboards'],
  ...(lines.length > 0 ? { log: [target.base, `/items/${lines[0].id}?last=15m`] } : {}),
  ...(units.length > 0 ? { states: [target.base, `/items/${units[0].id}?last=15m`] } : {}),
  explore: [target.base, '/explore?q=system_cpu_load&last=15m'],
  server: [target.base, '/server'],
  storage: [target.base, '/storage'],
  alerting: [target.base, '/alerting'],
  'alerting-actions': [target.base, '/alerting/actions'],
  'alerting-media': [target.base, '/alerting/media'],
  'alerting-maintenance': [target.base, '/alerting/maintenance'],
  users: [target.base, '/users'],
  audit: [target.base, '/audit'],
  account: [target.base, '/account'],
};

for (const colorScheme of ['light', 'dark']) {
  for (const [width, viewport] of Object.entries(SIZES)) {
    const { page, faults, close } = await openPage(browser, target.base, { viewport, colorScheme });
    for (const [name, [base, path]] of Object.entries(pages)) {
      if (only.length > 0 && !only.includes(name)) continue;
      await page.goto(base + path);
      await settled(page);
      if (await page.locator('[data-chart]').count()) await chartsReady(page);
      await page.waitForTimeout(name === 'server' ? 12_000 : 3_000); // Some live values, for lines beside the numbers.
      await page.screenshot({ path: `${folder}/${name}-${colorScheme}-${width}.png` });
    }
    for (const fault of faults) if (!fault.startsWith('outside request')) console.error(fault);
    await close();
  }
}
await browser.close();
await target.stop();
if (first !== target) await first.stop();
