// Tests, bundlers: webpack 5. Nothing to set: the entry and the output folder are any project's.
import webpack from 'webpack';

const folder = process.cwd();
const stats = await new Promise((resolve, reject) =>
  webpack(
    { context: folder, mode: 'production', entry: './main.js', output: { path: `${folder}/out` } },
    (error, result) => (error ? reject(error) : resolve(result)),
  ),
);
if (stats.hasErrors() || stats.hasWarnings()) {
  process.stderr.write(stats.toString('errors-warnings'));
  process.exitCode = 1;
}
