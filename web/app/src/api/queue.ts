// What the server asks for by itself, and what is late.

import { get } from './client.ts';

export interface QueueKind {
  kind: string;
  in_flight: number;
  limit: number;
  busy_percent: number;
  /** Checks that are due and wait for a free place. */
  waiting: number;
}

export interface Queue {
  /** Items that are late by more than 6 s. */
  late: number;
  items: { id: string; host: string; key: string; due_at: number }[];
  kinds: QueueKind[];
}

export const getQueue = (signal?: AbortSignal): Promise<Queue> => get('the queue', '/api/queue', {}, signal);
