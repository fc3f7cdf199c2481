// The browser that the tests drive: a fresh profile each, no requests but to the server under test, every error of the
// page kept.

import { chromium } from 'playwright-core';

export const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

// The machine may be busy; what takes longer than this is broken.
export const PATIENCE_MS = 60_000;

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS });
}

/** A page in a context of its own. faults collects what must not happen. */
export async function openPage(browser, base, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const faults = [];
  const origin = new URL(base).origin;
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`error: ${error.stack ?? error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) faults.push(`outside request: ${request.url()}`);
  });
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, faults, close: () => context.close() };
}

/** Waits until all charts in view have their data. */
export function chartsReady(page, atLeast = 1) {
  return page.waitForFunction(
    (count) => {
      const inView = [...document.querySelectorAll('[data-chart]')].filter((chart) => {
        const box = chart.getBoundingClientRect();
        return box.top < innerHeight && box.bottom > 0;
      });
      return inView.length >= count && inView.every((chart) => chart.dataset.status === 'ready');
    },
    atLeast,
  );
}

/** What a canvas shows, as text that differs when the picture differs. */
export function picture(page, chart) {
  return page.evaluate((id) => document.querySelector(`[data-chart="${id}"] canvas`)?.toDataURL() ?? '', chart);
}

/** Waits until a view shows what it is about: rows, charts, or why there are none. */
export async function settled(page) {
  await page.locator('main .page').waitFor();
  await page.waitForFunction(() => document.querySelector('main table, main [data-chart], main .squares, main .guide, main .empty, main .failure, main form, main .action') !== null);
}
