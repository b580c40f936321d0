// Tests: a device that looks for finished work only when something is submitted, as Firefox's does between its polls, is kept
// at it; one that answers by itself is left alone.

import { nudged } from '../../dist/webgpu/nudge.js';

/** Answers after `wanted` submissions. */
function sleepy(wanted) {
  let submissions = 0;
  let wake;
  const promise = new Promise((resolve) => (wake = resolve));
  const device = {
    queue: {
      submit(commands) {
        expect(commands).toEqual([]);
        submissions++;
        if (submissions === wanted) wake('done');
      },
    },
  };
  return { promise, device, submissions: () => submissions };
}

test.each([1, 2, 7, 40])(
  'an answer that takes %i submissions comes, and then no more',
  async (n) => {
    const { promise, device, submissions } = sleepy(n);
    const pauses = [];
    const pause = async (ms) => void pauses.push(ms);
    expect(await nudged(promise, device, pause)).toBe('done');
    expect(submissions()).toBe(n);
    // Ever longer, so that a core is not kept busy, and never long.
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    for (const ms of pauses) expect(ms).toBeLessThan(10);
  },
);

test('an answer that is there needs none, and a refusal comes through', async () => {
  const { device, submissions } = sleepy(1);
  expect(await nudged(Promise.resolve(7), device)).toBe(7);
  const lost = new Error('lost');
  await expect(nudged(Promise.reject(lost), device)).rejects.toBe(lost);
  expect(submissions()).toBe(0);
});

test('an answer that comes by itself during a pause is not waited past', async () => {
  const { device } = sleepy(Infinity);
  let answer;
  const promise = new Promise((resolve) => (answer = resolve));
  const never = () => {
    answer('by itself');
    return new Promise(() => undefined);
  };
  expect(await nudged(promise, device, never)).toBe('by itself');
});
