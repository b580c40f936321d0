// Scripts: `node scripts/toolchain.mjs` finds or makes the toolchain; `node scripts/toolchain.mjs COMMAND …` runs a
// command with it, in the current folder.
import { main, note } from './lib/log.mjs';
import { toolchain } from './lib/toolchain.mjs';

await main(async () => {
  const tools = await toolchain();
  const [command, ...args] = process.argv.slice(2);
  if (command === undefined) return note(tools.folder ?? tools.stamp);
  const { code } = await tools.run(command, args, { cwd: process.cwd(), allowFailure: true });
  process.exitCode = code;
});
