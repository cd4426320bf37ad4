/** One kind of error: its HTTP status, and what a caller can do about it. */
export interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** The rule that was broken, and the way out. */
  readonly wayOut: string;
}

/** The codes are stable: a client may branch on them. `docs/errors.md` lists exactly these. */
const kinds = {
  // The request as such
  malformed_request: { status: 400, title: 'Malformed request', wayOut: 'Send a well-formed HTTP/1.1 request.' },
  malformed_url: { status: 400, title: 'Malformed URL', wayOut: 'Percent-encode the path as RFC 3986 says.' },
  url_too_long: { status: 414, title: 'URL too long', wayOut: 'An id in a path has at most 100 characters; take it from `Location`.' },
  headers_too_large: { status: 431, title: 'Headers too large', wayOut: 'All headers together may have 16 KiB.' },
  request_timeout: {
    status: 408,
    title: 'Request took too long',
    wayOut: 'Nothing was stored; repeat the same request on a new connection: headers within 10 s, the whole of it within 30 s.',
  },
  route_not_found: { status: 404, title: 'No such route', wayOut: 'See docs/http-api.md for the calls there are.' },
  method_not_allowed: { status: 405, title: 'Method not allowed', wayOut: 'Use a method that the `Allow` header names.' },

  // Who asks, and how often
  authentication_required: { status: 401, title: 'Authentication required', wayOut: 'Send `Authorization: Bearer <key>`.' },
  authentication_invalid: { status: 401, title: 'API key not valid', wayOut: 'Use a key that is configured; keys are compared exactly.' },
  role_not_allowed: { status: 403, title: 'Role not allowed', wayOut: 'Use a key whose role may make this call.' },
  rate_limited: { status: 429, title: 'Too many requests', wayOut: 'Wait as long as `Retry-After` says, then repeat the same request.' },

  // The body as text
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    wayOut: 'Send `Content-Type: application/json`, UTF-8, without a content encoding.',
  },
  body_too_large: { status: 413, title: 'Body too large', wayOut: 'A body may have 256 KiB.' },
  body_missing: { status: 400, title: 'Body missing', wayOut: 'Send a JSON body.' },
  body_incomplete: { status: 400, title: 'Body incomplete', wayOut: 'Send as many bytes as `Content-Length` says.' },
  invalid_utf8: { status: 400, title: 'Body is not UTF-8', wayOut: 'Encode the body as UTF-8.' },
  malformed_json: { status: 400, title: 'Malformed JSON', wayOut: 'Send one JSON value as RFC 8259 says.' },
  duplicate_member: { status: 400, title: 'Duplicate member', wayOut: 'Send each member of an object once.' },
  lone_surrogate: { status: 400, title: 'Lone surrogate', wayOut: 'Send whole Unicode characters.' },
  number_out_of_range: { status: 400, title: 'Number out of range', wayOut: 'Send integers beyond 2^53-1 as strings.' },
  too_deep: { status: 400, title: 'Nested too deep', wayOut: 'Nest at most 32 levels.' },

  // The body as a request
  request_invalid: { status: 400, title: 'Request not valid', wayOut: 'Correct the members that `errors` names.' },
  member_missing: { status: 400, title: 'Member missing', wayOut: 'Add the member.' },
  member_invalid: { status: 400, title: 'Member not valid', wayOut: 'Send a value as the rule says.' },
  member_unknown: { status: 400, title: 'Member unknown', wayOut: 'Leave it out, or put it into `payload` or `source`.' },
  unknown_action_type: { status: 400, title: 'Unknown action type', wayOut: 'Use an action type that `GET /v1/capabilities` lists.' },
  payload_invalid: { status: 400, title: 'Payload not valid', wayOut: 'Correct the members that `errors` names.' },
  payload_violation: { status: 400, title: 'Payload breaks its schema', wayOut: 'Send a value as the action’s schema says.' },

  // Identity
  identity_required: {
    status: 400,
    title: 'No identity',
    wayOut: 'Name the business intent in `identity`, or send an `Idempotency-Key` header. It is never guessed.',
  },
  identity_invalid: { status: 400, title: 'Identity not valid', wayOut: 'Correct the fields that `errors` names.' },
  identity_not_an_object: { status: 400, title: 'Identity is no object', wayOut: 'Send an object of 1-8 fields.' },
  identity_empty: { status: 400, title: 'Identity is empty', wayOut: 'Name at least one field.' },
  identity_too_many_fields: { status: 400, title: 'Identity has too many fields', wayOut: 'Name at most 8 fields.' },
  identity_field_name: { status: 400, title: 'Identity field name not valid', wayOut: 'Use a-z, 0-9 and _ only.' },
  identity_field_value: { status: 400, title: 'Identity field value not valid', wayOut: 'Send a short ASCII string or a safe integer.' },
  identity_field_run_specific: { status: 400, title: 'Identity field differs between runs', wayOut: 'Move the field into `source`.' },
  identity_field_reserved: { status: 400, title: 'Identity field reserved', wayOut: 'Send the key as the `Idempotency-Key` header.' },
  identity_field_missing: { status: 400, title: 'Identity field missing', wayOut: 'Add the field that the action declares.' },
  identity_field_undeclared: { status: 400, title: 'Identity field not declared', wayOut: 'Move the field into `source` or `payload`.' },
  idempotency_key_invalid: {
    status: 400,
    title: 'Idempotency-Key not valid',
    wayOut: 'Send 1-255 printable ASCII characters, bare or quoted.',
  },
  idempotency_key_repeated: { status: 400, title: 'Idempotency-Key repeated', wayOut: 'Send the header once.' },
  payload_mismatch: {
    status: 422,
    title: 'Same identity, other payload',
    wayOut: 'Ask for the first operation by `operation_id`; where other business is meant, submit it under a new revision.',
  },
  action_mismatch: {
    status: 422,
    title: 'Same identity, other action',
    wayOut: 'Ask for the first operation by `operation_id`; name another identity for the other action.',
  },

  // Reading
  query_invalid: { status: 400, title: 'Query not valid', wayOut: 'Correct the parameters that `errors` names.' },
  parameter_unknown: { status: 400, title: 'Parameter unknown', wayOut: 'Leave the parameter out.' },
  parameter_invalid: { status: 400, title: 'Parameter not valid', wayOut: 'Send a value as the rule says.' },
  parameter_repeated: { status: 400, title: 'Parameter repeated', wayOut: 'Send the parameter once.' },
  operation_not_found: {
    status: 404,
    title: 'No such operation',
    wayOut: 'Check the id; only operations of the key’s own tenant are seen.',
  },

  // Acting on an operation
  not_cancellable: {
    status: 409,
    title: 'Too late to cancel',
    wayOut: 'Only an operation that nothing was tried for can be cancelled; read it.',
  },
  not_unknown: { status: 409, title: 'Outcome is not unknown', wayOut: 'Only an unknown outcome can be reconciled; read the operation.' },
  no_lookup: { status: 409, title: 'Provider has no look-up', wayOut: 'Resolve the review with what a person found out.' },
  no_open_review: { status: 409, title: 'No open review', wayOut: 'There is nothing to decide; read the operation.' },
  review_already_decided: { status: 409, title: 'Review already decided', wayOut: 'The first decision counts; see `winner`.' },
  decision_not_allowed: { status: 409, title: 'Decision not allowed', wayOut: 'Decide as `detail` says.' },
  if_match_required: {
    status: 428,
    title: 'If-Match required',
    wayOut: 'Send `If-Match` with the ETag of the operation that was looked at.',
  },
  if_match_invalid: { status: 400, title: 'If-Match not valid', wayOut: 'Send exactly one ETag, quotes included, for example `"3"`.' },
  revision_mismatch: { status: 412, title: 'Operation has changed', wayOut: 'Read the operation again, then decide on what it is now.' },

  // Our side
  log_unavailable: {
    status: 503,
    title: 'Event log unavailable',
    wayOut: 'Repeat the same request with the same identity; nothing is sent on a guess.',
  },
  identity_unavailable: {
    status: 503,
    title: 'Identity could not be derived',
    wayOut: 'Nothing was stored; repeat the same request. Whoever runs the service finds the cause in its log.',
  },
  overloaded: { status: 503, title: 'Overloaded', wayOut: 'Nothing was stored; repeat the same request after `Retry-After`.' },
  contention: { status: 503, title: 'Too many writers at once', wayOut: 'Repeat the same request after `Retry-After`.' },
  view_unavailable: { status: 503, title: 'List unavailable', wayOut: 'Read single operations by id, or repeat later.' },
  operation_unreadable: {
    status: 500,
    title: 'Stored events damaged',
    wayOut: 'Nothing is sent for this operation any more; whoever runs the service restores its events from a backup.',
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    wayOut: 'Repeat the same request with the same identity; report `request_id` if it stays.',
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof kinds;

export const PROBLEMS: Readonly<Record<ProblemCode, ProblemKind>> = kinds;
