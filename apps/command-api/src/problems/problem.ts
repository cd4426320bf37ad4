import { PROBLEMS, type ProblemCode } from './catalogue.js';

/** One fault: where it is (exactly one of the three), which rule it breaks, and the way out. Never the value at fault. */
export interface ProblemDetail {
  /** RFC 6901 pointer into the body. */
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly code: ProblemCode;
  readonly rule: string;
}

export interface ProblemExtras {
  /** What happened this time; the way out of the catalogue when left out. */
  readonly detail?: string;
  /** The first 20 of them are told. */
  readonly errors?: readonly ProblemDetail[];
  /** Extension members (RFC 9457 section 3.2), for example `operation_id`. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body of an error answer, `application/problem+json` (RFC 9457). */
export interface ProblemBody {
  /** Stable: `urn:onefold:error:<code>`, described in `docs/errors.md`. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly errors?: readonly (ProblemDetail & { readonly way_out: string })[];
  readonly [extension: string]: unknown;
}

/** As many as a caller will mend at once. A body of members that nobody knows would be answered at ten times its size otherwise. */
const ERRORS_MAX = 20;

/** A request that is refused, or that can't be served now. */
export class Problem extends Error {
  override readonly name = 'Problem';

  constructor(
    readonly code: ProblemCode,
    private readonly extras: ProblemExtras = {},
  ) {
    super(code);
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.extras.headers ?? {};
  }

  body(): ProblemBody {
    const { status, title, wayOut } = PROBLEMS[this.code];
    const { detail, errors, members } = this.extras;
    return {
      ...members,
      type: `urn:onefold:error:${this.code}`,
      title,
      status,
      detail: detail ?? firstRule(errors) ?? wayOut,
      code: this.code,
      ...(errors && { errors: errors.slice(0, ERRORS_MAX).map((error) => ({ ...error, way_out: PROBLEMS[error.code].wayOut })) }),
    };
  }
}

function firstRule(errors: readonly ProblemDetail[] = []): string | undefined {
  const [first] = errors;
  if (!first) return undefined;
  const place = first.pointer || first.header || first.parameter;
  return place ? `${place}: ${first.rule}` : first.rule;
}
