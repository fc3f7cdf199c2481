// What forms know of items and preprocessing steps: names for people, fields of each type, parameters of each step.

export const ITEM_TYPES: [string, string][] = [
  ['ZABBIX_ACTIVE', 'Agent (sends by itself)'],
  ['ZABBIX_PASSIVE', 'Agent (is asked)'],
  ['TRAP', 'Trapper (a sender sends)'],
  ['SIMPLE', 'Simple check'],
  ['HTTP_AGENT', 'HTTP agent'],
  ['SNMP_AGENT', 'SNMP agent'],
  ['SNMP_TRAP', 'SNMP trap'],
  ['CALCULATED', 'Calculated'],
  ['DEPENDENT', 'Dependent (from another item)'],
  ['SCRIPT', 'Script'],
  ['EXTERNAL', 'External check (a program of the server)'],
  ['SSH', 'SSH agent'],
  ['ODBC', 'Database monitor'],
  ['JMX', 'JMX agent'],
  ['IPMI', 'IPMI agent'],
  ['INTERNAL', 'Internal'],
];

export const VALUE_TYPES: [string, string][] = [
  ['FLOAT', 'Number, with fraction'],
  ['UNSIGNED', 'Whole number, not negative'],
  ['CHAR', 'Text, up to 255 characters'],
  ['TEXT', 'Text'],
  ['LOG', 'Log'],
  ['BINARY', 'Binary'],
];

export interface FieldSpec {
  key: string;
  label: string;
  hint?: string;
  lines?: number;
  secret?: boolean;
  /** What may be chosen, the first being what a missing field means. */
  options?: [string, string][];
}

const USER: FieldSpec[] = [
  { key: 'username', label: 'User' },
  { key: 'password', label: 'Password', secret: true },
];

const TIMEOUT: FieldSpec = { key: 'timeout', label: 'Timeout', hint: 'Such as 3s; 1s to 10m.' };

/** TYPE_FIELDS are what only items of a type have. Lists and rarer fields are edited as text. */
export const TYPE_FIELDS: Record<string, FieldSpec[]> = {
  TRAP: [{ key: 'allowed_hosts', label: 'Allowed senders', hint: 'Addresses with commas between; empty for any.' }],
  HTTP_AGENT: [
    { key: 'url', label: 'URL', hint: 'Such as http://{HOST.CONN}:8080/status; macros are expanded.' },
    { key: 'request_method', label: 'Method', options: ['GET', 'POST', 'PUT', 'HEAD'].map((one) => [one, one]) },
    { key: 'posts', label: 'Request body', lines: 3 },
    { key: 'status_codes', label: 'Status codes taken', hint: 'Such as 200,201-204; empty for 200.' },
    TIMEOUT,
    {
      key: 'authtype',
      label: 'Sign in by',
      options: [
        ['NONE', 'Nothing'],
        ['BASIC', 'Basic'],
        ['DIGEST', 'Digest'],
        ['NTLM', 'NTLM'],
      ],
    },
    ...USER,
  ],
  SNMP_AGENT: [{ key: 'snmp_oid', label: 'SNMP OID', hint: 'Such as get[1.3.6.1.2.1.1.3.0] or walk[…].' }],
  CALCULATED: [{ key: 'params', label: 'Formula', hint: 'Such as last(//net.if.in[eth0]) * 8; // is this host.', lines: 3 }],
  SCRIPT: [
    { key: 'params', label: 'Script', hint: 'JavaScript; its return value is the value.', lines: 8 },
    TIMEOUT,
  ],
  EXTERNAL: [TIMEOUT],
  SSH: [
    { key: 'params', label: 'Commands', lines: 4 },
    {
      key: 'authtype',
      label: 'Sign in by',
      options: [
        ['PASSWORD', 'Password'],
        ['PUBLIC_KEY', 'Key'],
      ],
    },
    ...USER,
    { key: 'publickey', label: 'Public key file', hint: 'A file of the folder ssl of the server, for signing in by key.' },
    { key: 'privatekey', label: 'Private key file' },
    TIMEOUT,
  ],
  ODBC: [{ key: 'params', label: 'SQL query', lines: 4 }, ...USER, TIMEOUT],
  JMX: [{ key: 'jmx_endpoint', label: 'JMX endpoint', hint: 'Such as service:jmx:rmi:///jndi/rmi://{HOST.CONN}:{HOST.PORT}/jmxrmi.' }, ...USER, TIMEOUT],
  IPMI: [{ key: 'ipmi_sensor', label: 'IPMI sensor', hint: 'Its id, such as Inlet Temp; none for the key ipmi.get. The user of the controller stands at the host: ipmi_username and ipmi_password, as text.' }],
};

/** fitsType tells whether the value of a field means something for another type. */
export const fitsType = (type: string, key: string, value: string): boolean => (TYPE_FIELDS[type] ?? []).some((field) => field.key === key && (field.options === undefined || field.options.some(([name]) => name === value)));

/** KEY_HINTS say what the key of an item of a type looks like. */
export const KEY_HINTS: Record<string, string> = {
  ZABBIX_ACTIVE: 'What the agent measures, such as vfs.fs.size[/,used] or log[/var/log/syslog,error]; the agent may have keys of its own.',
  ZABBIX_PASSIVE: 'What the agent measures, such as vfs.fs.size[/,used]; the agent may have keys of its own. The host needs an interface of type agent.',
  HTTP_AGENT: 'Any name, such as status; it is only the name of the item.',
  SNMP_AGENT: 'Any name, such as uptime; what is asked for is the OID. The host needs an interface of type SNMP.',
  CALCULATED: 'Any name, such as traffic.total; what is computed is the formula.',
  DEPENDENT: 'Any name, such as status.version; it is only the name of the item.',
  SCRIPT: 'Any name, such as orders.open; it is only the name of the item.',
  INTERNAL: 'What the server tells of itself, such as zabbix[queue] or tidemark[disk_used_percent].',
  TRAP: 'Any name, such as temperature; senders name it so.',
  SIMPLE: 'Such as icmpping, net.tcp.service[https,,443] or net.udp.service[ntp].',
  EXTERNAL: 'A program in the folder collect.external_scripts of the server with its parameters, such as domain_days.sh[{HOST.CONN}].',
  SNMP_TRAP: 'snmptrap[pattern], or snmptrap.fallback for traps that fit no other item.',
  SSH: 'ssh.run[name,<address>,<port>,<encoding>]',
  ODBC: 'db.odbc.select[name,,"postgres://{HOST.CONN}:5432/database"], or db.odbc.get[…] for all rows.',
  JMX: 'jmx["object name","attribute"], such as jmx["java.lang:type=Memory","HeapMemoryUsage.used"]. The host needs an interface of type JMX.',
  IPMI: 'Any name that is not taken, or ipmi.get for all sensors. The host needs an interface of type IPMI.',
};

export const keyHint = (type: string): string => KEY_HINTS[type] ?? 'What is measured, such as temperature or vfs.fs.size[/,used].';

/** Types whose values nobody asks for have no interval. */
export const hasInterval = (type: string): boolean => !['TRAP', 'SNMP_TRAP', 'DEPENDENT'].includes(type);

/** canBeAsked tells whether a value can be asked for now. */
export const canBeAsked = (type: string): boolean => !['ZABBIX_ACTIVE', 'TRAP', 'SNMP_TRAP', 'INTERNAL'].includes(type);

export const defaultDelay = (type: string): string => (hasInterval(type) ? '1m' : '0');

export interface StepSpec {
  type: string;
  title: string;
  group: string;
  params: { label: string; lines?: number }[];
}

const step = (group: string, type: string, title: string, ...params: string[]): StepSpec => ({ group, type, title, params: params.map((label) => ({ label })) });

export const STEPS: StepSpec[] = [
  step('Text', 'REGEX', 'Regular expression', 'Pattern', 'Output, such as \\1'),
  step('Text', 'STR_REPLACE', 'Replace', 'Text to replace', 'By'),
  step('Text', 'TRIM', 'Trim', 'Characters'),
  step('Text', 'RTRIM', 'Right trim', 'Characters'),
  step('Text', 'LTRIM', 'Left trim', 'Characters'),
  step('Documents', 'JSONPATH', 'JSONPath', 'Path, such as $.data[0].value'),
  step('Documents', 'XMLPATH', 'XML XPath', 'Path, such as //value/text()'),
  step('Documents', 'CSV_TO_JSON', 'CSV to JSON', 'Delimiter', 'Quote', 'Header row: 1 or 0'),
  step('Documents', 'XML_TO_JSON', 'XML to JSON'),
  step('Numbers', 'MULTIPLIER', 'Multiply by', 'Number'),
  step('Numbers', 'SIMPLE_CHANGE', 'Change since the value before'),
  step('Numbers', 'CHANGE_PER_SECOND', 'Change per second'),
  step('Numbers', 'BOOL_TO_DECIMAL', 'Boolean to decimal'),
  step('Numbers', 'OCTAL_TO_DECIMAL', 'Octal to decimal'),
  step('Numbers', 'HEX_TO_DECIMAL', 'Hexadecimal to decimal'),
  { group: 'Scripts', type: 'JAVASCRIPT', title: 'JavaScript', params: [{ label: 'Script', lines: 6 }] },
  step('Checks', 'IN_RANGE', 'In range', 'Least', 'Greatest'),
  step('Checks', 'MATCHES_REGEX', 'Matches', 'Pattern'),
  step('Checks', 'NOT_MATCHES_REGEX', 'Does not match', 'Pattern'),
  step('Checks', 'CHECK_JSON_ERROR', 'Error in JSON at', 'Path'),
  step('Checks', 'CHECK_XML_ERROR', 'Error in XML at', 'Path'),
  step('Checks', 'CHECK_REGEX_ERROR', 'Error by regular expression', 'Pattern', 'Output'),
  step('Checks', 'CHECK_NOT_SUPPORTED', 'Not supported', 'Scope: -1 any, 0 matches, 1 does not', 'Pattern'),
  step('Fewer values', 'DISCARD_UNCHANGED', 'Discard unchanged'),
  step('Fewer values', 'DISCARD_UNCHANGED_HEARTBEAT', 'Discard unchanged, but for one every', 'Time, such as 10m'),
  step('Prometheus', 'PROMETHEUS_PATTERN', 'Prometheus pattern', 'Pattern', 'Take: value, label, sum, min, max, avg, count', 'Label'),
  step('Prometheus', 'PROMETHEUS_TO_JSON', 'Prometheus to JSON', 'Pattern'),
  step('SNMP', 'SNMP_WALK_VALUE', 'SNMP walk value', 'OID', 'Format: 0 to 3'),
  step('SNMP', 'SNMP_WALK_TO_JSON', 'SNMP walk to JSON', 'Field name', 'OID prefix', 'Format: 0 to 3'),
  step('SNMP', 'SNMP_GET_VALUE', 'SNMP get value', 'Format: 0 to 3'),
];

export const stepSpec = (type: string): StepSpec => STEPS.find((one) => one.type === type) ?? { type, title: type, group: '', params: [] };

export const ON_FAIL: [string, string][] = [
  ['ORIGINAL_ERROR', 'is an error'],
  ['DISCARD_VALUE', 'discards the value'],
  ['CUSTOM_VALUE', 'gives the value'],
  ['CUSTOM_ERROR', 'gives the error'],
];

export const SEVERITY_NAMES: [string, string][] = [
  ['NOT_CLASSIFIED', 'not classified'],
  ['INFO', 'information'],
  ['WARNING', 'warning'],
  ['AVERAGE', 'average'],
  ['HIGH', 'high'],
  ['DISASTER', 'disaster'],
];

export const RECOVERY: [string, string][] = [
  ['EXPRESSION', 'when the expression is false'],
  ['RECOVERY_EXPRESSION', 'when another expression is true'],
  ['NONE', 'only by hand'],
];
