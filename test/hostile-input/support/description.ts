import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { PROBLEMS } from '#apps/command-api/src/problems/catalogue.js';

export interface SeenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

export interface DescribedParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: JsonSchema;
}

// JSON as it was read; its shape is what the tests look at.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type JsonSchema = any;

export interface DescribedRoute {
  readonly method: string;
  readonly path: string;
  readonly pattern: RegExp;
  readonly parameters: readonly DescribedParameter[];
  readonly body: JsonSchema | null;
  readonly bodyRequired: boolean;
  readonly operation: JsonSchema;
}

const ID = 'urn:test:openapi';

/**
 * `/openapi.json` as a judge of answers. Its answer schemas are closed here: a client has to ignore members that it does not know, a test
 * must not.
 */
export class Description {
  readonly routes: readonly DescribedRoute[];
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators = new Map<string, ValidateFunction>();

  constructor(readonly document: JsonSchema) {
    addFormats.default(this.ajv);
    const { schemas } = document.components;
    const isAnswer = (name: string) => !/^(?:Plan|Payload)\b|Request/.test(name);
    const closed = Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, isAnswer(name) ? close(schema) : schema]));
    this.ajv.addSchema({ $id: ID, components: { ...document.components, schemas: closed }, paths: close(document.paths) });
    this.routes = Object.entries(document.paths as JsonSchema).flatMap(([path, methods]) =>
      Object.entries(methods as JsonSchema).map(([method, operation]) => describeRoute(path, method, operation as JsonSchema)),
    );
  }

  route(operationId: string): DescribedRoute {
    return this.routes.find(({ operation }) => operation.operationId === operationId)!;
  }

  /** The call that a request line means, by its path alone: null where there is none. */
  find(method: string, url: string): DescribedRoute | null {
    const [path = ''] = url.split('?', 1);
    const fitting = this.routes.filter((route) => route.method === (method === 'HEAD' ? 'GET' : method) && route.pattern.test(path));
    // As in OpenAPI: a path without a parameter goes before one with.
    return fitting.find((route) => !route.path.includes('{')) ?? fitting[0] ?? null;
  }

  /** Whether a value fits a schema of `components`. */
  fits(name: string, value: unknown): boolean {
    return this.validator(`#/components/schemas/${name}`)(value) as boolean;
  }

  fitsSchema(schema: JsonSchema, value: unknown): boolean {
    const key = JSON.stringify(schema);
    let validate = this.validators.get(key);
    if (!validate) this.validators.set(key, (validate = this.ajv.compile(rebased(schema))));
    return validate(value) as boolean;
  }

  /** What is wrong with an answer to a request; null where nothing is. */
  faultOf(method: string, url: string, answer: SeenAnswer): string | null {
    const { status, headers, text } = answer;
    if (text === '') return null;
    const mediaType = String(headers['content-type'] ?? '').split(';', 1)[0]!;
    const route = this.find(method, url);
    const isProblem = mediaType === 'application/problem+json';
    if (isProblem) {
      const fault = this.problemFault(status, text);
      if (fault) return fault;
    }
    const pointer = route && this.schemaPointer(route, status, mediaType);
    if (pointer === undefined || pointer === null) return this.unmatchedFault(method, url, status, mediaType, text);
    if (mediaType === 'text/plain') return null;
    const validate = this.validator(pointer);
    if (validate(JSON.parse(text))) return null;
    // Of a path that fits and a fault before routing: told as for no route.
    const unmatched = isProblem && this.unmatchedFault(method, url, status, mediaType, text);
    return unmatched === null ? null : `${status} breaks ${pointer}: ${this.ajv.errorsText(validate.errors)} in ${text.slice(0, 400)}`;
  }

  private problemFault(status: number, text: string): string | null {
    const body = JSON.parse(text) as JsonSchema;
    const known = Object.hasOwn(PROBLEMS, body.code) ? PROBLEMS[body.code as keyof typeof PROBLEMS] : null;
    if (known === null) return `unknown code ${body.code}`;
    return known.status === status && body.status === status && body.type === `urn:onefold:error:${body.code}`
      ? null
      : `code ${body.code} with status ${status} and type ${body.type}`;
  }

  private unmatchedFault(method: string, url: string, status: number, mediaType: string, text: string): string | null {
    const name = `Unmatched${status}`;
    if (mediaType !== 'application/problem+json' || !this.document.components.responses[name]) {
      return `${method} ${url.slice(0, 100)} has no answer ${status} of ${mediaType} in the description: ${text.slice(0, 300)}`;
    }
    const validate = this.validator(`#/components/responses/${name}/content/application~1problem+json/schema`);
    return validate(JSON.parse(text)) ? null : `${status} breaks ${name}: ${text.slice(0, 300)}`;
  }

  private schemaPointer({ operation, method, path }: DescribedRoute, status: number, mediaType: string): string | null {
    if (!operation.responses[status]?.content?.[mediaType]) return null;
    const parts = ['paths', path, method.toLowerCase(), 'responses', String(status), 'content', mediaType, 'schema'];
    return `#/${parts.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
  }

  private validator(pointer: string): ValidateFunction {
    let validate = this.validators.get(pointer);
    if (!validate) this.validators.set(pointer, (validate = this.ajv.compile({ $ref: `${ID}${encodeURI(pointer)}` })));
    return validate;
  }
}

function describeRoute(path: string, method: string, operation: JsonSchema): DescribedRoute {
  const segments = path.split('/').map((segment) => (segment.startsWith('{') ? '[^/]+' : segment.replaceAll('.', '\\.')));
  return {
    method: method.toUpperCase(),
    path,
    pattern: new RegExp(`^${segments.join('/')}$`),
    parameters: operation.parameters ?? [],
    body: operation.requestBody?.content['application/json'].schema ?? null,
    bodyRequired: operation.requestBody?.required ?? false,
    operation,
  };
}

/** Objects that name their members take no others. */
function close(value: JsonSchema): JsonSchema {
  if (Array.isArray(value)) return value.map(close);
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, close(member)]));
  return copy['type'] === 'object' && copy['properties'] && copy['additionalProperties'] === undefined
    ? { ...copy, additionalProperties: false }
    : copy;
}

/** References into the document, from outside it. */
function rebased(value: JsonSchema): JsonSchema {
  if (Array.isArray(value)) return value.map(rebased);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isReference = name === '$ref' && typeof member === 'string' && member.startsWith('#');
      return [name, isReference ? `${ID}${member}` : rebased(member)];
    }),
  );
}
