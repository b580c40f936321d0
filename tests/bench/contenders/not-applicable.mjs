// Bench: thrown by a contender that has no such operation, which is no failure: the report shows a dash and this reason.
export class NotApplicable extends Error {
  name = 'NotApplicable';
}
