// Public: every error that the package throws. One maker a code, so that each code always comes with the same class.

/** The `code` of an error thrown by this package. */
export type ErrorCode =
  | 'INVALID_TYPE'
  | 'INVALID_SHAPE'
  | 'INVALID_VALUE'
  | 'OUT_OF_MEMORY'
  | 'ABORTED'
  | 'DISPOSED'
  | 'UNSUPPORTED'
  | 'DEVICE_LOST'
  | 'INIT_FAILED';

/**
 * What has no class of its own in JavaScript: `DISPOSED` (used after `dispose()`), `UNSUPPORTED` (this platform or this
 * version cannot do it), `DEVICE_LOST` (the worker or device died) and `INIT_FAILED` (the engine could not start).
 * Wrong arguments are a `TypeError` or `RangeError` with a `code`, an abort is a `DOMException` named `AbortError`.
 */
export class HeadwiseError extends Error {
  override readonly name = 'HeadwiseError';
  constructor(
    readonly code: 'DISPOSED' | 'UNSUPPORTED' | 'DEVICE_LOST' | 'INIT_FAILED',
    message: string,
    options?: { cause?: unknown },
  ) {
    super(shortened(message), options);
  }
}

/** An error of this package: its class by its code. */
export type CodedError = Error & { readonly code: ErrorCode; readonly bytesWanted?: number };

// Names, numbers and lists that callers gave are in messages, of whatever length.
const [headLength, tailLength] = [1000, 500];

function shortened(message: string): string {
  const left = message.length - headLength - tailLength;
  if (left <= 100) return message;
  return `${message.slice(0, headLength)} … ${left} characters … ${message.slice(-tailLength)}`;
}

// An own property, because DOMException.prototype.code is a number of the DOM's.
function coded<E extends Error>(error: E, code: ErrorCode, bytesWanted?: number): E & CodedError {
  Object.defineProperty(error, 'code', { value: code, enumerable: true, configurable: true });
  if (bytesWanted !== undefined) {
    Object.defineProperty(error, 'bytesWanted', { value: bytesWanted, enumerable: true });
  }
  return error as E & CodedError;
}

export function invalidType(message: string): CodedError {
  return coded(new TypeError(shortened(message)), 'INVALID_TYPE');
}

export function invalidShape(message: string): CodedError {
  return coded(new RangeError(shortened(message)), 'INVALID_SHAPE');
}

export function invalidValue(message: string): CodedError {
  return coded(new RangeError(shortened(message)), 'INVALID_VALUE');
}

/** A training step whose loss or gradients are not finite; nothing has been changed. */
export type TrainingError = CodedError & {
  readonly code: 'INVALID_VALUE';
  /** The step, counted from 1, that would have been taken. */
  readonly step: number;
  /**
   * The first module whose output, or, going backward, whose gradients are not finite: a parameter's name without its last word,
   * such as `decoder.layers.1.self_attn`; or `loss`.
   */
  readonly module: string;
};

export function notFinite(step: number, module: string, message: string): TrainingError {
  return Object.defineProperties(invalidValue(message), {
    step: { value: step, enumerable: true },
    module: { value: module, enumerable: true },
  }) as TrainingError;
}

/** Logits from which no token can be told; what was generated before stands. */
export type GenerationError = CodedError & {
  readonly code: 'INVALID_VALUE';
  /** Which new token they were to choose, counted from 0. */
  readonly position: number;
};

export function notDecidable(position: number, what: string): GenerationError {
  const error = invalidValue(`generate: ${what} for new token ${position}; finite ones are wanted`);
  return Object.defineProperty(error, 'position', {
    value: position,
    enumerable: true,
  }) as GenerationError;
}

/** `what` names the call; the bytes it wanted are in the message and in `bytesWanted`. */
export function outOfMemory(what: string, bytes: number, limit?: number): CodedError {
  const ceiling = limit === undefined ? '' : `; the heap's ceiling is ${limit} bytes`;
  return coded(
    new RangeError(`${what}: ${bytes} bytes of memory are wanted and cannot be had${ceiling}`),
    'OUT_OF_MEMORY',
    bytes,
  );
}

/** The same for a ceiling that is not the heap's: `message` says which. */
export function tooLarge(message: string, bytes: number): CodedError {
  return coded(new RangeError(message), 'OUT_OF_MEMORY', bytes);
}

/** Always a `DOMException` named `AbortError`; the signal's own reason is its `cause`. */
export function aborted(what: string, reason?: unknown): CodedError {
  const error = coded(new DOMException(`${what} was aborted`, 'AbortError'), 'ABORTED');
  if (reason !== undefined) {
    Object.defineProperty(error, 'cause', { value: reason, configurable: true });
  }
  return error;
}

export function disposed(what: string): HeadwiseError {
  return new HeadwiseError('DISPOSED', `${what} has been disposed`);
}

export function unsupported(message: string): HeadwiseError {
  return new HeadwiseError('UNSUPPORTED', message);
}

export function initFailed(message: string, cause?: unknown): HeadwiseError {
  return new HeadwiseError('INIT_FAILED', message, cause === undefined ? undefined : { cause });
}

/** An error as plain data, to cross from a worker to its page. */
export interface ErrorRecord {
  code: ErrorCode | undefined;
  message: string;
  bytesWanted?: number;
}

export function toErrorRecord(error: unknown): ErrorRecord {
  const { code, message, bytesWanted } = error as Partial<CodedError>;
  const record: ErrorRecord = { code, message: message ?? String(error) };
  if (bytesWanted !== undefined) record.bytesWanted = bytesWanted;
  return record;
}

/** The same class and code again, on the side that asked. */
export function fromErrorRecord({ code, message, bytesWanted }: ErrorRecord): Error {
  switch (code) {
    case 'INVALID_TYPE':
      return invalidType(message);
    case 'INVALID_SHAPE':
      return invalidShape(message);
    case 'INVALID_VALUE':
      return invalidValue(message);
    case 'OUT_OF_MEMORY':
      return coded(new RangeError(message), 'OUT_OF_MEMORY', bytesWanted);
    case 'ABORTED':
      return coded(new DOMException(message, 'AbortError'), 'ABORTED');
    case undefined:
      return new Error(message);
    default:
      return new HeadwiseError(code, message);
  }
}
