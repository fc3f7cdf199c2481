// The pages of the rail, in its order.

export interface Page {
  path: string;
  title: string;
  icon: string;
  about: string;
  /** A line is drawn above the first page of the second group. */
  second?: boolean;
  /** Only for this role. */
  role?: string;
}

export const PAGES: Page[] = [
  { path: '/', title: 'Overview', icon: 'overview', about: 'The fleet at a glance' },
  { path: '/problems', title: 'Problems', icon: 'problems', about: 'What is wrong, and what was' },
  { path: '/hosts', title: 'Hosts', icon: 'hosts', about: 'All hosts and latest values' },
  { path: '/requests', title: 'Requests', icon: 'requests', about: 'What MongoDB spends its time on' },
  { path: '/explore', title: 'Explore', icon: 'explore', about: 'Ask with PromQL' },
  { path: '/dashboards', title: 'Dashboards', icon: 'dashboards', about: 'Charts and tables put together by hand' },
  { path: '/alerting', title: 'Alerting', icon: 'alerting', about: 'Who is told, and what was sent', second: true },
  { path: '/server', title: 'Server', icon: 'server', about: 'How this server is doing' },
  { path: '/storage', title: 'Storage', icon: 'storage', about: 'What is kept, and how long it lasts' },
  { path: '/configuration', title: 'Configuration', icon: 'configuration', about: 'Hosts, templates, items, triggers' },
  { path: '/users', title: 'Users', icon: 'users', about: 'Who may do what', role: 'administrator' },
  { path: '/audit', title: 'Audit', icon: 'audit', about: 'Who changed what', role: 'administrator' },
];

/** PARTS are pages below those of the rail; search finds them too. */
export const PARTS: Omit<Page, 'icon'>[] = [
  { path: '/hosts/values', title: 'Latest values', about: 'The newest value of every item' },
  { path: '/dashboards/new', title: 'New dashboard', about: 'An empty one to put widgets on' },
  { path: '/alerting/actions', title: 'Actions', about: 'For which problems whom they tell', role: 'editor' },
  { path: '/alerting/media', title: 'Media and receivers', about: 'Mail, webhooks, scripts; a test message', role: 'editor' },
  { path: '/alerting/maintenance', title: 'Maintenance', about: 'Times in which problems tell nobody', role: 'editor' },
  { path: '/configuration/add', title: 'Add a host', about: 'A new host, and the command for its machine', role: 'editor' },
  { path: '/configuration/templates', title: 'Templates', about: 'What many hosts have in common', role: 'editor' },
  { path: '/configuration/macros', title: 'Macros and expressions', about: 'Global macros and regular expressions', role: 'editor' },
  { path: '/configuration/network', title: 'Network discovery', about: 'Find hosts in networks', role: 'editor' },
  { path: '/configuration/import', title: 'Import', about: 'Hosts and templates from a file', role: 'editor' },
  { path: '/users/groups', title: 'User groups', about: 'Roles on host groups', role: 'administrator' },
  { path: '/users/tokens', title: 'Tokens', about: 'What lets programs in', role: 'administrator' },
  { path: '/account', title: 'Account', about: 'Your password and tokens' },
];

/** pageOf is the page of the rail that an address belongs to. */
export function pageOf(path: string): Page | undefined {
  if (path === '/') return PAGES[0];
  if (path.startsWith('/items/')) return PAGES[2];
  return PAGES.slice(1).find((page) => path === page.path || path.startsWith(`${page.path}/`));
}
