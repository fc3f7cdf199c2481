// Finds the items that widgets name, with few calls: all items of a host are read once and shared by the widgets of a dashboard.

import type { ItemRef } from '../api/dashboards.ts';
import { getItems } from '../api/client.ts';
import type { Item } from '../api/types.ts';
import { natural } from '../format/natural.ts';
import { fits } from './variables.ts';

/** A reference with the items that it means. */
export interface Found {
  ref: ItemRef;
  items: Item[];
}

const MAX_HOST_ITEMS = 10_000;
const MAX_FOUND = 40;

export class ItemSource {
  private hosts = new Map<string, Promise<Item[]>>();

  /** find gives the items of references in their order; what no item has is empty. */
  async find(refs: ItemRef[], signal: AbortSignal): Promise<Found[]> {
    const found = await Promise.all(refs.map(async (ref) => ({ ref, items: (await this.of(ref, signal)).slice(0, MAX_FOUND) })));
    return found.map(({ ref, items }) => ({ ref, items: [...items].sort((a, b) => natural(a.host, b.host) || natural(a.name, b.name)) }));
  }

  private async of(ref: ItemRef, signal: AbortSignal): Promise<Item[]> {
    if (ref.group !== undefined) return (await getItems({ group: ref.group, key: ref.key, limit: MAX_FOUND }, signal)).items;
    const host = ref.host ?? '';
    let items = this.hosts.get(host);
    if (items === undefined) {
      // Not with the signal of one widget: the others wait for the same answer.
      items = getItems({ host_name: host, limit: MAX_HOST_ITEMS }).then((answer) => answer.items);
      this.hosts.set(host, items);
      items.catch(() => this.hosts.delete(host));
    }
    return (await items).filter((item) => fits(ref.key, item.key));
  }
}
