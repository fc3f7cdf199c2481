// Where the items of MongoDB stand that Tidemark's agent makes: the server's own counters (keys mongodb.FAMILY[INSTANCE, THINGS…, MODE]) and what
// is seen on the wire (mongo.instance[…], mongo.sniff[…], mongo.sampled[…]). The families, modes and names are made in agent/mongodb and sniff.

import type { Item } from '../api/types.ts';
import type { Key } from './key.ts';
import type { Place } from './places.ts';

type Look = Partial<Pick<Place, 'stack' | 'mirror' | 'top'>>;

/** Charts of what is told of the whole server: FAMILY[MODE], in the order of the page. */
const CHARTS: [RegExp, string, Look?][] = [
  [/^instance\[(requests|errors|monitoring|cluster|waiting)\]$/, 'Requests on the wire'],
  [/^instance\[time\]$/, 'Time spent in requests on the wire'],
  [/^instance\[p95\]$/, 'Latency, 95th percentile'],
  [/^instance\[bytes\.in\]$/, 'Traffic of requests'],
  [/^instance\[bytes\.out\]$/, 'Traffic of requests', { mirror: true }],
  [/^instance\[docs\]$/, 'Documents in requests and replies'],
  [/^operations\[/, 'Operations', { stack: true }],
  [/^operations\.replicated\[/, 'Operations from the replica set', { stack: true }],
  [/^latency\[.*\.time\]$/, 'Time in requests', { stack: true }],
  [/^latency\[.*\.count\]$/, 'Requests by kind', { stack: true }],
  [/^running\[(all|waiting)\]$/, 'Operations under way'],
  [/^running\[longest\]$/, 'Age of the longest operation'],
  [/^running\[/, 'Operations under way by kind', { stack: true }],
  [/^connections\[(current|active|available|monitoring)\]$/, 'Connections'],
  [/^connections\[/, 'Connections opened and refused'],
  [/^network\[in\]$/, 'Traffic'],
  [/^network\[out\]$/, 'Traffic', { mirror: true }],
  [/^network\[in\.physical\]$/, 'Traffic, compressed'],
  [/^network\[out\.physical\]$/, 'Traffic, compressed', { mirror: true }],
  [/^queue\[/, 'What waits for locks and tickets'],
  [/^clients\[/, 'Readers and writers at work'],
  [/^tickets\[read\./, 'Read tickets', { stack: true }],
  [/^tickets\[write\./, 'Write tickets', { stack: true }],
  [/^locks\[.*\.count\]$/, 'Locks taken'],
  [/^locks\[.*\.waits\]$/, 'Locks waited for'],
  [/^locks\[.*\.time\]$/, 'Time waited for locks'],
  [/^cache\[(used|size|dirty)\]$/, 'Cache'],
  [/^cache\[read\.bytes\]$/, 'Cache, bytes read and written'],
  [/^cache\[written\.bytes\]$/, 'Cache, bytes read and written', { mirror: true }],
  [/^cache\[evicted/, 'Cache, pages dropped'],
  [/^cache\[.*\.pages\]$/, 'Cache, pages'],
  [/^memory\[(resident|virtual|allocated|heap)\]$/, 'Memory'],
  [/^documents\[/, 'Documents'],
  [/^scanned\[(keys|documents)\]$/, 'Read to answer queries'],
  [/^sorts\[(unindexed|spilled)\]$/, 'Sorts'],
  [/^writes\[(conflicts|waited|timedout)\]$/, 'Writes in conflict and waiting'],
  [/^cursors\[(open|pinned|endless)\]$/, 'Cursors'],
  [/^cursors\[/, 'Cursors opened and timed out'],
  [/^transactions\[(open|active|idle)\]$/, 'Transactions'],
  [/^transactions\[/, 'Transactions started and ended'],
  [/^replication\[(members|healthy|primaries)\]$/, 'Members'],
  [/^ttl\[/, 'Expiry of documents'],
  [/^asserts\[/, 'Asserts'],
  [/^sniff\[/, 'Capture of the wire'],
  [/^sampled\[/, 'Told by the server'],
  [/^self\[(up|skipped|refused)\]$/, 'Questions to the server'],
];

/** What is told of each of many things, and what of it adds up over them. */
const THINGS: Record<string, string> = { member: 'Members', database: 'Databases', collection: 'Collections', index: 'Indexes' };
const ADDS_UP = /^(total\.time|total\.count|data|storage|storage\.free|index\.storage|cached|documents)$/;

/** The words of a line's name that its chart says already. */
const SAID = /^(Cache, pages|Cache, bytes|Cache|Memory|Journal|Asserts|Connections that|Connections|Operations under way|Operations that|Transactions|Cursors|Documents|Time in|Locks taken|Locks waited for|Time waited for locks|Read tickets|Write tickets),? (?=\S)/;

/** mongoPlace says where an item of MongoDB stands; null for one that Tidemark's agent did not make. */
export function mongoPlace(key: Key, item: Item): Place | null {
  const own = item.labels?.section === 'mongodb';
  const told = /^mongo\.(instance|sniff|sampled)$/.test(key.name);
  if (!own && !told) return null;
  const family = key.name.replace(/^mongo(db)?\./, '');
  const mode = key.params.at(-1) ?? '';
  const instance = family === 'sniff' ? '' : (key.params[0] ?? '');
  const things = key.params.slice(1, -1).join('.');
  const title = plainName(item.name, instance, things);
  const place = { section: 'MongoDB', of: instance };
  const kind = THINGS[family];
  if (kind !== undefined && things !== '') {
    const heading = `${kind}: ${title.charAt(0).toLowerCase()}${title.slice(1)}`;
    return { ...place, chart: `${family} ${mode} ${instance}`, title: heading, name: things, order: 200 + Object.keys(THINGS).indexOf(family), stack: ADDS_UP.test(mode) };
  }
  const at = CHARTS.findIndex(([pattern]) => pattern.test(`${family}[${mode}]`));
  if (at < 0) return { ...place, chart: `${family} ${mode} ${instance}`, title, name: title, order: 100 };
  const [, heading, look] = CHARTS[at];
  const short = title.replace(SAID, '');
  return { ...place, chart: `${heading} ${instance}`, title: heading, alone: title, name: things === '' ? short : `${things}, ${short}`, order: at, ...look };
}

/** plainName leaves out what stands before the name of the measure: "MongoDB db-1:27017: requests" is "Requests". */
function plainName(name: string, instance: string, things: string): string {
  const rest = [`MongoDB ${things}: `, `MongoDB ${instance}: `, 'MongoDB sniffer: ', 'MongoDB: '].find((start) => name.startsWith(start)) ?? '';
  const title = name.slice(rest.length);
  return title.charAt(0).toUpperCase() + title.slice(1);
}
