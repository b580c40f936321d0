// Bench: attention on the GPU beside onnxruntime-web's MultiHeadAttention on its WebGPU provider, in one page of Chromium and
// on one device, call by call in turn. Prints a Markdown table that names the adapter; a rival that refuses a shape says why.
import { parseArgs } from 'node:util';
import { gpuShapes, workOf } from './gpu-shapes.mjs';
import { launchChromium, serveBench } from './hosts/chromium.mjs';
import { failureOf } from './hosts/failure.mjs';

const { values } = parseArgs({
  options: {
    browser: { type: 'boolean' },
    software: { type: 'boolean' },
    most: { type: 'string', default: '200' },
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '7' },
  },
});

const switches = values.software
  ? ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader']
  : ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--ignore-gpu-blocklist'];

const server = await serveBench();
const browser = await launchChromium(switches);
try {
  const page = await browser.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(new URL('page/gpu.html', server.resolvedUrls.local[0]).href);
  await page
    .waitForFunction(() => globalThis.callStation !== undefined, undefined, { timeout: 60_000 })
    .catch((error) => {
      throw new Error([error.message, ...complaints].join('; '));
    });
  const call = async (method, value = {}) => {
    const { result, error } = await page.evaluate(
      ([name, given]) => globalThis.callStation(name, given),
      [method, value],
    );
    if (error) throw failureOf(error);
    return result;
  };
  const { gpu, ort } = await call('open');
  process.stdout.write(
    `${gpu.description}; Chromium ${browser.version()}; onnxruntime-web ${ort}, MultiHeadAttention\n\n` +
      '| heads × queries × keys × size | headwise, resident, ms | onnxruntime-web, resident, ms | theirs / ours | headwise, with transfers, ms | onnxruntime-web, with transfers, ms | theirs / ours |\n' +
      '|---|---|---|---|---|---|---|\n',
  );
  let variants;
  const wrong = [];
  const wanted = gpuShapes.filter(
    (each) => workOf(each) <= Number(values.most) * 1e9 && each.join('x').startsWith(values.only),
  );
  for (const sizes of wanted) {
    const cells = [sizes.join(' × ')];
    for (const resident of [true, false]) {
      try {
        const times = await call('measure', { sizes, rounds: Number(values.rounds), resident });
        variants = times.variants;
        for (const [side, difference] of Object.entries(times.differences)) {
          if (!(difference < 1e-3))
            wrong.push(`${sizes.join(' × ')}: ${side} is wrong by ${difference.toFixed(3)}`);
        }
        cells.push(times.headwise.toFixed(2), times.onnxruntime.toFixed(2));
        cells.push((times.onnxruntime / times.headwise).toFixed(2));
      } catch (error) {
        cells.push(`failed: ${error.message}`, '', '');
        process.exitCode = 1;
      }
    }
    process.stdout.write(`| ${cells.join(' | ')} |\n`);
  }
  process.stdout.write(`\nheadwise's forms: ${JSON.stringify(variants)}\n`);
  for (const line of wrong) process.stdout.write(`${line}\n`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  await browser.close();
  await server.close();
}
