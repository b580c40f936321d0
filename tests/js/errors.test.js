// Tests: the kinds of error: classes, codes, and their way between worker and page.

import { HeadwiseError } from 'headwise';
import {
  aborted,
  fromErrorRecord,
  invalidType,
  outOfMemory,
  toErrorRecord,
  unsupported,
} from '../../dist/errors.js';

test('HeadwiseError is an Error with a name, a code and a stack', () => {
  const error = new HeadwiseError('INIT_FAILED', 'no file', { cause: 1 });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({
    name: 'HeadwiseError',
    code: 'INIT_FAILED',
    message: 'no file',
    cause: 1,
  });
  expect(String(error)).toBe('HeadwiseError: no file');
  expect(error.stack).toContain('errors.test.js');
});

test.each([
  [invalidType('q: wrong'), TypeError, 'INVALID_TYPE'],
  [outOfMemory('attention', 2 ** 34, 2 ** 32), RangeError, 'OUT_OF_MEMORY'],
  [aborted('attention', 'enough'), DOMException, 'ABORTED'],
  [unsupported('no such thing'), HeadwiseError, 'UNSUPPORTED'],
  [new Error('anything'), Error, undefined],
])('%s crosses to another thread whole', (error, kind, code) => {
  expect(error.code).toBe(code);
  const copy = fromErrorRecord(structuredClone(toErrorRecord(error)));
  expect(copy).toBeInstanceOf(kind);
  expect(copy.name).toBe(error.name);
  expect(copy.code).toBe(code);
  expect(copy.message).toBe(error.message);
  expect(copy.bytesWanted).toBe(error.bytesWanted);
});

test('an abort is an AbortError although DOMException has codes of its own', () => {
  const error = aborted('attention', new Error('enough'));
  expect(error.name).toBe('AbortError');
  expect(error.code).toBe('ABORTED');
  expect(error.cause.message).toBe('enough');
});
