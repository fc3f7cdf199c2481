// Alerting of the fake server: settings that can be changed, and a log of messages.

const EVIL = `<img src=x onerror="window.__hostile=1">'"\`{{7*7}}`;
const KINDS = { media: 'media', receiver: 'receivers', action: 'actions', maintenance: 'maintenances' };

/** alerting answers the routes of alerting; null for what is not there. */
export function alerting(started) {
  const config = {
    url: 'https://tidemark.example.com',
    media: [
      { name: 'mail', mail: { server: 'mail.example.com:587', from: 'Tidemark <tidemark@example.com>', user: 'tidemark' }, secrets: { PASSWORD: '********' } },
      { name: 'chat', webhook: { url: 'https://chat.example.com/hooks/{SECRET.TOKEN}' }, secrets: { TOKEN: '********' } },
    ],
    receivers: [
      { name: `on call ${EVIL}`, media: [{ media: 'mail', to: 'ops@example.com' }, { media: 'chat', to: '#ops', severities: ['high', 'disaster'], when: '1-5,08:00-20:00' }] },
      { name: 'manager', media: [{ media: 'mail', to: 'manager@example.com' }] },
    ],
    actions: [
      {
        name: `production ${EVIL}`,
        conditions: [{ type: 'severity', value: 'average' }, { type: 'tag_value', tag: 'env', value: 'prod' }],
        delay: '1m',
        step_duration: '15m',
        stop_when_acknowledged: true,
        operations: [{ receivers: [`on call ${EVIL}`] }, { from: 2, to: 4, receivers: [`on call ${EVIL}`], media: ['mail'], if: 'not_acknowledged' }, { from: 5, to: -1, receivers: ['manager'], if: 'not_acknowledged' }],
        recovery: null,
        update: [{ involved: true }],
      },
      { name: 'everything to the chat', disabled: true, operations: [{ receivers: ['manager'], media: ['chat'] }], recovery: [] },
    ],
    maintenances: [
      { name: 'patch night', groups: ['Linux servers'], periods: [{ every: 'month', days: ['tue'], weeks: [2], at: '22:00', for: '4h' }] },
      { name: 'move of the rack', hosts: ['db-1'], no_data: true, periods: [{ every: 'once', start: new Date(started - 36e5).toISOString().slice(0, 16), for: '1d' }] },
    ],
  };
  const states = ['sent', 'sent', 'sent', 'failed', 'waiting', 'sent'];
  const severities = ['high', 'average', 'disaster', 'warning'];
  const log = Array.from({ length: 150 }, (_, i) => ({
    id: String(1000 - i),
    action: `production ${EVIL}`,
    kind: i % 5 === 2 ? 'recovery' : 'problem',
    event_id: '7',
    problem_id: '7',
    severity: severities[i % 4],
    host: `web-${1 + (i % 9)}`,
    name: ['Disk / fills up', `Load is high ${EVIL}`, 'No answer of the agent'][i % 3],
    step: 1 + (i % 3),
    receiver: 'manager',
    media: i % 2 ? 'chat' : 'mail',
    to: i % 2 ? 'https://chat.example.com/…' : 'manager@example.com',
    subject: 'Problem',
    state: states[i % 6],
    attempts: states[i % 6] === 'failed' ? 10 : 1,
    created_at: started - i * 420_000,
    ...(states[i % 6] === 'sent' ? { sent_at: started - i * 420_000 } : {}),
    ...(states[i % 6] === 'failed' ? { error: 'mail.example.com:587: connection refused' } : {}),
  }));

  return (method, path, body, query) => {
    if (path === '/api/alerts') {
      const found = log.filter((one) => !query.get('state') || one.state === query.get('state'));
      const at = Number(query.get('cursor') ?? 0);
      const limit = Number(query.get('limit') ?? 100);
      return { alerts: found.slice(at, at + limit), ...(found.length > at + limit ? { next: String(at + limit) } : {}) };
    }
    if (path === '/api/alerting/test') return body.to.includes('nobody') ? { sent: false, error: 'no such mailbox', answer: '550' } : { sent: true, answer: '250 queued' };
    if (path === '/api/alerting/import') return { remarks: ['media type "Chat": fill in bot_token'] };
    if (method === 'PUT') {
      for (const list of Object.values(KINDS)) for (const one of body[list] ?? []) config[list] = [...config[list].filter((other) => other.name !== one.name), one];
      return {};
    }
    if (method === 'DELETE') {
      const [, , , kind, name] = path.split('/');
      const list = KINDS[kind];
      const left = config[list]?.filter((one) => one.name !== decodeURIComponent(name));
      if (left === undefined || left.length === config[list].length) return null;
      config[list] = left;
      return {};
    }
    return path === '/api/alerting' ? config : null;
  };
}
