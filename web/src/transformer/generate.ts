// Transformer: targets made token by token, drawn or by beams.
import type { TransformerDecoding } from './decoding.js';
import {
  checkLogits,
  drawsOf,
  logSoftmax,
  nextToken,
  type ResolvedGenerateOptions,
} from './sample.js';

/** One token after the other, until the end token, which is not among them. */
export async function* drawTokens(
  decoding: TransformerDecoding,
  settings: ResolvedGenerateOptions,
): AsyncGenerator<number, void, undefined> {
  const { prompt, endToken, maxTokens, signal } = settings;
  const draws = drawsOf(settings.seed);
  let unread = prompt;
  for (let made = 0; made < maxTokens; made++) {
    const { data } = await decoding.read([unread], { signal });
    checkLogits(data, made);
    const token = nextToken(data, settings, draws());
    if (token === endToken) return;
    unread = [token];
    yield token;
  }
}

interface Beam {
  /** Which row of the decoding has read all of it but the last token. */
  row: number;
  tokens: number[];
  score: number;
}

/** The target with the largest mean log-probability of those that `beams` open ones lead to. */
export async function beamSearch(
  decoding: TransformerDecoding,
  settings: ResolvedGenerateOptions,
): Promise<number[]> {
  const { prompt, endToken, maxTokens, beams, signal } = settings;
  let best: number[] = [];
  let bestMean = -Infinity;
  // Ended targets count their end token.
  const offer = ({ tokens, score }: Beam, ended: boolean): void => {
    const mean = score / Math.max(tokens.length + (ended ? 1 : 0), 1);
    if (mean <= bestMean) return;
    best = tokens;
    bestMean = mean;
  };
  let open: Beam[] = [{ row: 0, tokens: [], score: 0 }];
  for (let made = 0; made < maxTokens && open.length > 0; made++) {
    if (made > 0) await decoding.select(open.map(({ row }) => row));
    const unread = made > 0 ? open.map(({ tokens }) => tokens.slice(-1)) : [prompt];
    const { data, shape } = await decoding.read(unread, { signal });
    const width = shape[1] as number;
    // The best `beams` of all rows' tokens, in order; of equal ones the first.
    const next: (Beam & { token: number })[] = [];
    open.forEach(({ tokens, score: before }, row) => {
      const logits = data.subarray(row * width, (row + 1) * width);
      checkLogits(logits, made);
      logSoftmax(logits).forEach((log, token) => {
        const score = before + log;
        if (next.length === beams && !(score > (next.at(-1) as Beam).score)) return;
        let at = next.length;
        while (at > 0 && (next[at - 1] as Beam).score < score) at--;
        next.splice(at, 0, { row, token, tokens, score });
        if (next.length > beams) next.pop();
      });
    });
    open = [];
    for (const { row, token, tokens, score } of next) {
      if (token === endToken) offer({ row, tokens, score }, true);
      else open.push({ row, tokens: [...tokens, token], score });
    }
  }
  for (const beam of open) offer(beam, false);
  return best;
}
