import { expect, test } from 'vitest';
import { trapperOf } from '../src/state/trapper.ts';

test('the address of the trapper is the one on which it listens', () => {
  expect(trapperOf('127.0.0.1:20051', 'localhost')).toEqual({ address: '127.0.0.1:20051', host: '127.0.0.1', port: '20051', loopback: true });
  expect(trapperOf('[::1]:20051', 'localhost')).toMatchObject({ address: '[::1]:20051', loopback: true });
  expect(trapperOf('192.0.2.1:10051', 'monitor.example.com')).toMatchObject({ address: '192.0.2.1:10051', loopback: false });
});

test('where it listens on all addresses the name in the browser stands for the server', () => {
  expect(trapperOf('[::]:20051', 'monitor.example.com')).toEqual({ address: 'monitor.example.com:20051', host: 'monitor.example.com', port: '20051', loopback: false });
  expect(trapperOf('0.0.0.0:10051', '[2001:db8::1]').address).toBe('[2001:db8::1]:10051');
  expect(trapperOf(undefined, 'monitor.example.com').address).toBe('monitor.example.com:10051');
});
