// Tests: which engines get the products' short turns, by what each says of itself; and that this one gets what it should.
import { wantsShortTurns } from '../../dist/wasm/compiler.js';

const browser = (userAgent) => ({ navigator: { userAgent } });
const chrome = (major) =>
  browser(
    `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`,
  );

test.each([
  ['Node 20', { process: { versions: { v8: '11.3.244.8-node.33' } } }, true],
  ['Node 22', { process: { versions: { v8: '12.4.254.21-node.57' } } }, true],
  ['Node 23', { process: { versions: { v8: '12.9.202.28-node.14' } } }, true],
  ['Node 24', { process: { versions: { v8: '13.6.233.17-node.63' } } }, false],
  [
    'Deno 2',
    { ...browser('Deno/2.1.4'), process: { versions: { v8: '13.0.245.12-rusty' } } },
    false,
  ],
  [
    'Bun, which names a V8 too',
    { ...browser('Bun/1.4.5'), process: { versions: { bun: '1.4.5', v8: '13.6.233.10-node.18' } } },
    true,
  ],
  ['Chrome 129', chrome(129), true],
  ['Chrome 140', chrome(140), false],
  [
    'Firefox 140',
    browser('Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'),
    false,
  ],
  [
    'Safari 18',
    browser(
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Safari/605.1.15',
    ),
    true,
  ],
  ['an engine that says nothing', {}, false],
])('%s', (_, globals, expected) => {
  expect(wantsShortTurns(globals)).toBe(expected);
});

test('this engine, by its V8', () => {
  expect(wantsShortTurns()).toBe(Number.parseInt(process.versions.v8, 10) < 13);
});
