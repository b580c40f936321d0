// Scripts: the browsers for the tests: Chromium from the system, installed when it is missing; Firefox where it is.
import { existsSync } from 'node:fs';

import { aptInstall, obstacleToInstalling } from './debian-root.mjs';
import { Failure, note } from './log.mjs';
import { ask } from './run.mjs';

const chromiums = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
const firefoxes = ['firefox-esr', 'firefox'];

const firstOf = (names) =>
  names.map((name) => ask('sh', ['-c', 'command -v "$1"', 'sh', name])).find(Boolean) ?? null;

/**
 * Paths of the browsers, as environment variables for the tests: HEADWISE_CHROMIUM and, where there is one,
 * HEADWISE_FIREFOX. Either may be set beforehand.
 */
export async function browsers() {
  let chromium = process.env.HEADWISE_CHROMIUM || firstOf(chromiums);
  if (!chromium) {
    const reason = obstacleToInstalling();
    if (reason)
      throw new Failure(
        `no Chromium for the browser tests, and none can be installed: ${reason}. Install one, or name it with HEADWISE_CHROMIUM.`,
      );
    await aptInstall(['chromium']);
    chromium = firstOf(chromiums);
  }
  if (!chromium || !existsSync(chromium))
    throw new Failure(`no Chromium at ${chromium}; name one with HEADWISE_CHROMIUM`);
  const firefox = process.env.HEADWISE_FIREFOX || firstOf(firefoxes);
  note(`Chromium: ${chromium}; Firefox: ${firefox ?? 'none here, its tests are skipped'}`);
  return { HEADWISE_CHROMIUM: chromium, ...(firefox ? { HEADWISE_FIREFOX: firefox } : {}) };
}
