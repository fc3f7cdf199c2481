import { defineConfig } from 'vite';

// The page is served from the root of the server. While developing, `npm run dev` passes API calls on to
// TIDEMARK_URL, or to the fake API (`npm run fake`) when it is not set.
const api = process.env.TIDEMARK_URL ?? 'http://127.0.0.1:8421';
const passed = ['/api', '/metrics', '/-'];

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: {
    host: '127.0.0.1',
    port: 8422,
    proxy: Object.fromEntries(passed.map((path) => [path, { target: api, changeOrigin: true, headers: { origin: api } }])),
  },
});
