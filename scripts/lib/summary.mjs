// Scripts: reads test runners' own reports and adds them up. Pure; tests/js/scripts.test.js holds it.

export const nothing = { passed: 0, failed: 0, skipped: 0 };

export const add = (a, b) => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});

/** The line that ends a run: 'N passed, N failed', and ', N skipped' where some were. */
export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** Did a run go well? One in which nothing ran did not. */
export const isGreen = ({ passed, failed }) => failed === 0 && passed > 0;

const sumOf = (text, pattern) =>
  [...text.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);

/**
 * Cases of a ctest run over GoogleTest programs.
 * @param {string} log ctest's LastTest.log: the whole output of each program
 * @param {string} output what ctest itself printed; its closing line counts programs
 */
export function ctestCases(log, output) {
  const passed = sumOf(log, /^\[ {2}PASSED {2}\] (\d+) tests?\./gm);
  const skipped = sumOf(log, /^\[ {2}SKIPPED \] (\d+) tests?, listed below/gm);
  const failedCases = sumOf(log, /^\[ {2}FAILED {2}\] (\d+) tests?, listed below/gm);
  const programs = /(\d+) tests? failed out of (\d+)/.exec(output);
  if (!programs) return { passed, failed: failedCases + 1, skipped }; // ctest itself failed
  // A program that crashed or hung lists no failed case: it counts as one.
  return { passed, failed: Math.max(failedCases, Number(programs[1])), skipped };
}

/** Cases of a Jest run, from its JSON report; a file that could not be run counts as one failure. */
export function jestCases(report) {
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + report.numRuntimeErrorTestSuites,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}
