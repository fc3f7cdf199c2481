// The page in a real browser. Without TIDEMARK_URL it runs against the fake server of web/app/dev.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { chartsReady, launch, openPage, picture, settled } from './browser.mjs';
import { startTarget } from './target.mjs';

const JS_BUDGET = 120 * 1024;
const CSS_BUDGET = 20 * 1024;
const VIEWS = ['/', '/problems', '/problems?show=all', '/hosts', '/hosts/values', '/requests', '/requests?group=application', '/requests?compare=before', '/explore', '/explore?q=system_cpu_load', '/dashboards', '/dashboards/new', '/server', '/storage', '/alerting', '/alerting/actions', '/alerting/media', '/alerting/maintenance', '/alerting/text', '/users', '/users/groups', '/users/tokens', '/audit', '/account'];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser;
let target;

before(async () => {
  browser = await launch();
  target = await startTarget('--hosts', '70');
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

/** Opens the charts of the machine that the server runs on: the first host that has a CPU chart. */
async function openHost(page, query = '') {
  await page.goto(`${target.base}/hosts`);
  const hosts = await page.evaluate(async () => (await (await fetch('/api/hosts?limit=1000')).json()).hosts);
  const host = hosts.find((one) => one.state === 'ok' && one.items > 50) ?? hosts[0];
  await page.goto(`${target.base}/hosts/${host.id}${query}`);
  await page.locator('[data-chart="glance-cpu"][data-status="ready"]').waitFor();
  return host;
}

/** The view of one problem, none where nothing was ever wrong. */
async function problemViews() {
  const { problems } = await (await fetch(`${target.base}/api/problems?limit=1`)).json();
  return problems.map((one) => `/problems?show=all&last=1d&problem=${one.event_id}`);
}

test('first start: one machine, moving charts, without a click', async () => {
  const first = target.fake ? await startTarget('--hosts', '1', '--age', '3') : target;
  const { page, faults, close } = await openPage(browser, first.base);
  try {
    await page.goto(first.base);
    if (first.fake) {
      await chartsReady(page, 4);
      const still = await picture(page, 'glance-cpu');
      await page.waitForFunction((old) => document.querySelector('[data-chart="glance-cpu"] canvas')?.toDataURL() !== old, still);
    }
    await page.locator('[data-number="values-per-second"]').waitFor();
    await page.getByRole('link', { name: 'Hosts' }).click();
    await page.locator('table.linked tbody tr').first().click();
    await page.waitForURL(/\/hosts\/\d+/);
    assert.deepEqual(faults, []);
  } finally {
    await close();
    if (first !== target) await first.stop();
  }
});

story('a host: live charts that move every second', async (page) => {
  await openHost(page, '?last=1m');
  await chartsReady(page, 4);
  for (let n = 0; n < 3; n++) {
    const before = await picture(page, 'glance-cpu');
    await page.waitForFunction((old) => document.querySelector('[data-chart="glance-cpu"] canvas').toDataURL() !== old, before);
  }
  assert.equal(await page.locator('.live.on').count(), 1);
});

story('live values do not read the charts again', async (page) => {
  await openHost(page, '?last=1m');
  await chartsReady(page, 4);
  const calls = [];
  page.on('request', (request) => request.url().includes('/api/chart') && calls.push(request.url()));
  for (let n = 0; n < 3; n++) {
    const before = await picture(page, 'glance-cpu');
    await page.waitForFunction((old) => document.querySelector('[data-chart="glance-cpu"] canvas').toDataURL() !== old, before);
  }
  // One call may be the comparison that looks for the unusual section.
  assert.ok(calls.length <= 1, `${calls.length} calls of /api/chart while nothing but time went on`);
});

story('dragging zooms all charts, double click goes back', async (page) => {
  await openHost(page, '?last=5m');
  await chartsReady(page, 4);
  const over = page.locator('[data-chart="glance-cpu"] .u-over');
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 6 });
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  const params = new URL(page.url()).searchParams;
  const length = Date.parse(params.get('to')) - Date.parse(params.get('from'));
  assert.ok(length > 60_000 && length < 240_000, `zoomed to ${length} ms of 300,000`);
  await page.getByText('paused').waitFor();
  await chartsReady(page, 4);
  await over.dblclick();
  await page.waitForURL(/last=5m/);
  await page.locator('.live.on').waitFor();
});

story('dragging over states zooms', async (page) => {
  await page.goto(`${target.base}/items/${await target.states()}?last=15m`);
  const bar = page.locator('.timeline-bar').first();
  await bar.waitFor();
  const box = await bar.boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 8, { steps: 6 });
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  const params = new URL(page.url()).searchParams;
  const length = Date.parse(params.get('to')) - Date.parse(params.get('from'));
  assert.ok(Math.abs(length - 450_000) < 45_000, `zoomed to ${length} ms of 900,000`);
  await page.goBack();
  await page.waitForURL(/last=15m/);
});

story('the crosshair is shared and its values are in the legends', async (page) => {
  await openHost(page, '?last=5m');
  await chartsReady(page, 4);
  await page.locator('[data-chart="glance-cpu"] .u-over').hover({ position: { x: 60, y: 20 } });
  await page.waitForFunction(() => [...document.querySelectorAll('.chart-when')].filter((when) => /\d\d:\d\d:\d\d/.test(when.textContent)).length >= 4);
});

story('keys move the range; the address keeps it; live comes back', async (page) => {
  await openHost(page, '?last=15m');
  await page.keyboard.press('[');
  await page.waitForURL(/from=/);
  const moved = page.url();
  await page.keyboard.press('[');
  await page.waitForFunction((old) => location.href !== old, moved);
  await page.reload();
  await page.getByText('paused').waitFor();
  await page.locator('.live').click();
  await page.waitForFunction(() => !location.search.includes('from='));
});

story('a chart by keyboard only: crosshair, table, back', async (page) => {
  await openHost(page, '?last=5m');
  const chart = page.locator('[data-chart="glance-cpu"]');
  await chart.focus();
  await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(() => /\d\d:\d\d/.test(document.querySelector('[data-chart="glance-cpu"] .chart-when').textContent));
  await page.keyboard.press('Enter');
  await chart.locator('tbody tr').nth(3).waitFor();
  await page.keyboard.press('Enter');
  await chart.locator('.chart-table').waitFor({ state: 'detached' });
  assert.match(await chart.getAttribute('aria-label'), /^CPU\. .*highest/);
});

story('a problem appears by itself: in the rail, in the list, on the overview', async (page) => {
  await page.goto(`${target.base}/problems`);
  await page.locator('.filters').waitFor();
  const name = await target.fire();
  await page.locator('tbody tr', { hasText: name }).first().waitFor();
  await page.locator('.rail-count').waitFor();
  await page.getByRole('link', { name: 'Overview' }).first().click();
  await page.locator('.severity-counts').waitFor();
});

story('the picker takes what a person types, and says what it expected', async (page) => {
  await page.goto(`${target.base}/explore`);
  await page.locator('.range-now').click();
  await page.locator('#range-text').fill('soon');
  await page.keyboard.press('Enter');
  await page.getByText('is no time').waitFor();
  await page.locator('#range-text').fill('yesterday 9:00 .. 11:00');
  await page.keyboard.press('Enter');
  await page.waitForURL(/from=.*to=/);
  await page.locator('.range-now').click();
  await page.getByRole('button', { name: '3 h', exact: true }).click();
  await page.waitForURL(/last=3h/);
});

story('search: Ctrl K, type, Enter', async (page) => {
  await page.goto(target.base);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search' }).fill('explore');
  await page.locator('#result-0', { hasText: 'Explore' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/explore/);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search' }).fill('media and');
  await page.locator('#result-0', { hasText: 'Media and receivers' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/alerting\/media/);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search' }).fill('load average');
  await page.locator('#results li', { hasText: /item/ }).first().click();
  await page.waitForURL(/\/items\/\d+/);
  await page.getByRole('heading', { level: 1 }).waitFor();
});

story('theme: light, dark, kept', async (page) => {
  await page.goto(target.base);
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  const button = page.locator('.theme');
  await button.click();
  await button.click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await ground(), dark);
});

story('latest values: search, filter, moving', async (page) => {
  const host = await openHost(page);
  await page.goto(`${target.base}/hosts/values?host=${host.id}`);
  await page.getByRole('searchbox').fill('system.cpu.util[all,us');
  await page.waitForURL(/search=system/);
  const cell = page.locator('.value-cell').first();
  await cell.waitFor();
  const before = await cell.getAttribute('title');
  await page.waitForFunction((old) => document.querySelector('.value-cell')?.title !== old, before);
  await page.reload();
  assert.equal(await page.getByRole('searchbox').inputValue(), 'system.cpu.util[all,us');
});

story('the order of a table is in the address', async (page) => {
  await page.goto(`${target.base}/hosts`);
  await page.locator('th button', { hasText: 'Last value' }).click();
  await page.waitForURL(/sort=seen/);
  await page.reload();
  await page.locator('th[aria-sort="ascending"]', { hasText: 'Last value' }).waitFor();
  await page.locator('th button', { hasText: 'Host' }).click();
  await page.waitForURL((url) => !url.searchParams.has('sort')); // That is the order at first.
});

story('filters of problems are in the address', async (page) => {
  await page.goto(`${target.base}/problems`);
  await page.getByRole('button', { name: 'All in the range' }).click();
  await page.getByLabel('Severity').selectOption('high');
  await page.waitForURL(/show=all.*severity=high/);
  await page.reload();
  assert.equal(await page.getByLabel('Severity').inputValue(), 'high');
  assert.equal(await page.getByRole('button', { name: 'All in the range' }).getAttribute('aria-pressed'), 'true');
});

story('requests: what costs most first; dragging over a part ranks it; a shape opens; all of it is in the address', async (page) => {
  await page.goto(`${target.base}/requests?last=15m`);
  const rows = page.locator('table.requests tbody tr[data-row]');
  await rows.first().waitFor();
  const loads = await rows.locator('td.load-cell span').allTextContents();
  assert.deepEqual(loads.map(parseFloat), loads.map(parseFloat).sort((a, b) => b - a));
  await page.getByRole('button', { name: 'p95', exact: true }).click();
  await page.waitForURL(/order=p95/);
  await page.locator('th[aria-sort="descending"]', { hasText: 'p95' }).waitFor();

  const box = await page.locator('[data-chart="requests-heat"] canvas').boundingBox();
  const answer = page.waitForResponse((one) => one.url().includes('/api/mongo/requests?') && one.ok());
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 60, { steps: 6 });
  await page.mouse.up();
  await page.waitForURL(/pick=\d+-\d+/);
  const asked = new URL((await answer).url()).searchParams;
  const length = Number(asked.get('to')) - Number(asked.get('from'));
  assert.ok(length > 180_000 && length < 400_000, `ranked ${length} ms of 900,000`);
  assert.equal(asked.get('order'), 'p95');
  await page.getByTitle('Rank the whole range').click();
  await page.waitForURL((url) => !url.searchParams.has('pick'));

  await page.locator('[data-chart="requests-heat"]').focus(); // The same without a mouse.
  await page.keyboard.press('ArrowLeft');
  for (let n = 0; n < 9; n++) await page.keyboard.press('Shift+ArrowLeft');
  await page.keyboard.press('Enter');
  await page.waitForURL(/pick=\d+-\d+/);
  const [from, to] = new URL(page.url()).searchParams.get('pick').split('-').map(Number);
  assert.ok(to - from > 30_000 && to - from < 120_000, `the keys chose ${to - from} ms of 900,000, expected ten of 160 columns`);
  await page.getByTitle('Rank the whole range').click();
  await page.waitForURL((url) => !url.searchParams.has('pick'));

  const id = await rows.first().getAttribute('data-row');
  await rows.first().locator('button.row-button').click();
  await page.waitForURL(new RegExp(`shape=${id}`));
  await page.locator('[data-chart="shape-heat"]').waitFor();
  await page.reload();
  const errors = page.locator('[data-chart="shape-errors"]');
  await errors.focus();
  await page.keyboard.press('Enter'); // Charts that a view reads itself have their table too.
  await errors.locator('.chart-table tbody tr').nth(3).waitFor();
  await page.keyboard.press('Enter');
  await errors.locator('.chart-table').waitFor({ state: 'detached' });
  const full = page.locator(`tr[data-row="${id}"] + .detail-row .shape-full code`);
  await full.first().waitFor();
  assert.equal(await full.count(), 1);
});

story('requests: groups, filter, comparison, and back from the overview', async (page) => {
  await page.goto(`${target.base}/requests?last=15m`);
  const rows = page.locator('table.requests tbody tr[data-row]');
  await rows.first().waitFor();
  const shapes = await rows.count();
  await page.getByLabel('group by').selectOption('collection');
  await page.waitForURL(/group=collection/);
  await page.locator('th', { hasText: 'Collection' }).waitFor();
  await rows.first().locator('button.row-button').click();
  await page.waitForURL(/collection=/);
  await page.getByTitle('Show all collections').click();
  await page.waitForURL((url) => !url.searchParams.has('collection'));
  await page.getByRole('searchbox', { name: 'Filter requests' }).fill('aggregate');
  await page.waitForURL(/search=aggregate/);
  await page.waitForFunction((all) => document.querySelectorAll('table.requests tbody tr[data-row]').length < all, shapes);
  await page.getByRole('searchbox', { name: 'Filter requests' }).fill('');
  await page.goto(`${target.base}/requests?last=15m`);
  await page.getByLabel('compare with').selectOption('before');
  await page.waitForURL(/compare=before/);
  await page.locator('.verdict').first().waitFor();

  await page.goto(target.base);
  await page.locator('.card-shape').first().click();
  await page.waitForURL(/\/requests\?.*shape=/);
  await page.locator('[data-chart="shape-heat"]').waitFor();
});

test('requests: what is shown is what was sent', async () => {
  const { instances } = await (await fetch(`${target.base}/api/mongo/instances`)).json();
  for (const { id, total } of instances) {
    const ranking = await (await fetch(`${target.base}/api/mongo/requests?instance=${encodeURIComponent(id)}&limit=1000&from=${Date.now() - 3_600_000}&to=${Date.now()}`)).json();
    const sum = ranking.rows.reduce((left, row) => left + row.sums.requests, 0);
    if (target.fake) assert.ok(Math.abs(sum / ranking.total.requests - 1) < 0.001);
    else assert.equal(sum, ranking.total.requests);
    assert.ok(total.requests > 0);
  }
});

story('explore: a query has a chart and a table', async (page) => {
  await page.goto(`${target.base}/explore`);
  await page.getByLabel('PromQL expression').fill('system_cpu_load');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=system_cpu_load/);
  await page.locator('[data-chart="explore"][data-status="ready"]').waitFor();
  await page.locator('tbody tr', { hasText: 'system_cpu_load{' }).first().waitFor();
});

story('explore: an expression over nothing says why there is nothing', async (page) => {
  await page.goto(`${target.base}/explore?q=no_such_metric`);
  await page.getByText('No item gives a metric no_such_metric').waitFor();
});

test('a page that cannot be loaded says so, and is there after another try', async () => {
  const { page, close } = await openPage(browser, target.base);
  try {
    await page.goto(target.base);
    await page.locator('main .page').waitFor();
    await page.route('**/assets/**', (route) => route.abort());
    await page.locator('.rail').getByRole('link', { name: 'Storage' }).click();
    await page.getByRole('alert').getByText('Could not load this page.').waitFor();
    await page.unroute('**/assets/**');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Storage' }).waitFor();
    await page.locator('.rail').getByRole('link', { name: 'Server' }).click();
    await page.getByRole('heading', { name: 'Server', exact: true }).waitFor();
    await page.locator('.rail').getByRole('link', { name: 'Configuration' }).click();
    await page.getByRole('heading', { name: 'Configuration', exact: true }).waitFor();
  } finally {
    await close();
  }
});

test('a wrong query says what is wrong', async () => {
  const { page, close } = await openPage(browser, target.base);
  try {
    await page.goto(`${target.base}/explore?q=${encodeURIComponent('rate(')}`);
    await page.getByRole('alert').getByText('parse error').waitFor();
  } finally {
    await close();
  }
});

test('a lost server is said, and contact comes back by itself', async () => {
  const { page, close } = await openPage(browser, target.base);
  try {
    await page.route('**/api/**', (route) => route.abort());
    await page.goto(`${target.base}/problems`);
    await page.getByText('no contact').waitFor();
    await page.getByRole('alert').getByText('cannot be reached').waitFor();
    await page.unroute('**/api/**');
    await page.locator('.live.on').waitFor();
    await page.locator('.filters').waitFor();
  } finally {
    await close();
  }
});

story('narrow: nothing is wider than the screen, the rail is at the bottom', async (page) => {
  const host = await openHost(page);
  for (const view of [...VIEWS, ...(await problemViews()), `/hosts/${host.id}`, `/hosts/${host.id}/values`, `/hosts/${host.id}/triggers`]) {
    await page.goto(target.base + view);
    await settled(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} is ${wide} px wider than the screen`);
    const rail = await page.locator('.rail').boundingBox();
    assert.ok(rail.y > 700, `${view}: the rail is at ${rail.y}`);
  }
}, { viewport: { width: 390, height: 844 }, hasTouch: true });

story('narrow: the pages that have no room in the bar are under More', async (page) => {
  await page.goto(target.base);
  await page.locator('main .page').waitFor();
  const more = page.getByRole('button', { name: 'More' });
  assert.equal(await page.getByRole('link', { name: 'Storage' }).isVisible(), false);
  await more.click();
  await page.getByRole('link', { name: 'Storage' }).click();
  await page.waitForURL(/\/storage/);
  await page.getByRole('link', { name: 'Storage' }).waitFor({ state: 'hidden' });
  await more.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Storage' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Storage' }).waitFor({ state: 'hidden' });
  const widths = await page.locator('.rail > a, .rail > button').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width));
  assert.ok(widths.length === 5 && widths.every((width) => width >= 60), `the places in the bar are ${widths} px wide`);
}, { viewport: { width: 390, height: 844 }, hasTouch: true });

for (const colorScheme of ['light', 'dark']) {
  story(`no serious finding of axe, ${colorScheme}`, async (page) => {
    const host = await openHost(page);
    for (const view of [...VIEWS, ...(await problemViews()), `/hosts/${host.id}`, `/hosts/${host.id}/triggers`]) {
      await page.goto(target.base + view);
      await settled(page);
      await page.evaluate(AXE);
      const found = await page.evaluate(async () => (await axe.run(document, { resultTypes: ['violations'] })).violations);
      const serious = found.filter((one) => one.impact === 'serious' || one.impact === 'critical');
      assert.deepEqual(serious.map((one) => `${view}: ${one.id}: ${one.nodes[0].html.slice(0, 160)} ${one.nodes[0].failureSummary}`), []);
    }
  }, { colorScheme });
}

test('the first view is small, and its headers allow nothing inline', async () => {
  const { page, faults, close } = await openPage(browser, target.base);
  try {
    const bodies = [];
    page.on('response', (response) => bodies.push(response));
    const main = await page.goto(target.base);
    await page.locator('main .page').waitFor();
    const policy = main.headers()['content-security-policy'];
    assert.match(policy, /default-src 'self'/);
    assert.doesNotMatch(policy, /unsafe/);
    const size = { script: 0, stylesheet: 0 };
    for (const response of bodies) {
      const kind = response.request().resourceType();
      if (kind in size) size[kind] += gzipSync(await response.body(), { level: 9 }).length;
    }
    assert.ok(size.script > 0 && size.script <= JS_BUDGET, `scripts are ${size.script} bytes, at most ${JS_BUDGET}`);
    assert.ok(size.stylesheet > 0 && size.stylesheet <= CSS_BUDGET, `styles are ${size.stylesheet} bytes, at most ${CSS_BUDGET}`);
    console.log(`first view, gzip: ${size.script} bytes of scripts, ${size.stylesheet} of styles`);
    assert.deepEqual(faults, []);
  } finally {
    await close();
  }
});
