// Small line icons and the shapes of severities, drawn here so that nothing is loaded for them.

import type { Severity } from '../api/types.ts';

const PATHS: Record<string, string> = {
  overview: 'M3 3h6v8H3zM11 3h6v5h-6zM11 11h6v6h-6zM3 14h6v3H3z',
  problems: 'M10 3l8 14H2zM10 8v4M10 14.4v.2',
  hosts: 'M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.2M6 13.5h.2',
  requests: 'M3 4h14M3 8h10M3 12h7M3 16h4',
  explore: 'M3 16c3 0 3-9 6-9s2.500 6 4.500 6 1.500-8 3.500-8',
  dashboards: 'M3 3h14v14H3zM3 9h14M10 9v8',
  server: 'M2 10h4l2-6 4 12 2-6h4',
  alerting: 'M5 14V9a5 5 0 0 1 10 0v5l1.500 1.500h-13zM8.500 17.500h3',
  storage: 'M3 5c0-1.700 3-2.500 7-2.500s7 .800 7 2.500-3 2.500-7 2.500S3 6.700 3 5zM3 5v10c0 1.700 3 2.500 7 2.500s7-.800 7-2.500V5M3 10c0 1.700 3 2.500 7 2.500s7-.800 7-2.500',
  configuration: 'M3 5h8M15 5h2M11 3v4M3 10h2M9 10h8M5 8v4M3 15h7M14 15h3M10 13v4',
  more: 'M3 5h14M3 10h14M3 15h14',
  users: 'M7 4a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM2 17c0-3 2-5 5-5s5 2 5 5M13 4.500a2.500 2.500 0 0 1 0 5M14.500 12c2 .500 3.500 2.500 3.500 5',
  user: 'M10 3a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM4 17c0-3.500 2.500-5.500 6-5.500s6 2 6 5.500',
  audit: 'M4 3h12v14H4zM7 7h6M7 10h6M7 13h4',
  search: 'M9 3a6 6 0 1 0 0 12A6 6 0 0 0 9 3zM13.500 13.500L17 17',
  clock: 'M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 6v4l3 2',
  light: 'M10 6.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM10 2v2M10 16v2M2 10h2M16 10h2M4.300 4.300l1.500 1.500M14.200 14.200l1.500 1.500M4.300 15.700l1.500-1.500M14.200 5.800l1.500-1.500',
  dark: 'M16.500 12A7 7 0 0 1 8 3.500a7 7 0 1 0 8.500 8.500z',
  auto: 'M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14',
  table: 'M3 4h14v12H3zM3 8h14M3 12h14M8 4v12',
  chart: 'M3 3v14h14M6 13l3-4 3 2 4-6',
  back: 'M12 4l-6 6 6 6',
  forward: 'M8 4l6 6-6 6',
  copy: 'M7 7h10v10H7zM4 13V4h9',
  close: 'M5 5l10 10M15 5L5 15',
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[name] ?? ''} />
    </svg>
  );
}

// Each severity has a shape of its own, so that it does not depend on colour.
const SHAPES: Record<Severity, string> = {
  'not classified': 'M6 2a4 4 0 1 0 0 8 4 4 0 0 0 0-8z',
  information: 'M6 2.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7z',
  warning: 'M6 1.500l5 9H1z',
  average: 'M6 .800L11.200 6 6 11.200.800 6z',
  high: 'M1.500 1.500h9v9h-9z',
  disaster: 'M3.600.800h4.800l2.800 2.800v4.800l-2.800 2.800H3.600L.800 8.400V3.600z',
};

export function SeverityShape({ severity }: { severity: Severity }) {
  return (
    <svg class={`shape severity-${severity.replace(' ', '-')}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SHAPES[severity]} />
    </svg>
  );
}

/** Mark is the product's own sign: a tide under its line. */
export function Mark() {
  return (
    <svg class="logo" viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-linecap="round">
      <path d="M2 6h16" stroke-width="1.500" opacity=".5" />
      <path d="M2 13c2.700 0 2.700-3 5.300-3s2.700 3 5.400 3 2.600-3 5.300-3" stroke-width="2" />
    </svg>
  );
}
