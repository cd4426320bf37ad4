import type { Catalogue } from '#domain';
import { ROLES, rolesFor, type Access } from '../http/access.js';
import { PROBLEMS, type ProblemCode } from '../problems/catalogue.js';
import { ANSWER_SCHEMAS } from './operation-schemas.js';
import { requestSchemas } from './request-schemas.js';
import { ANSWER_HEADERS, CAPABILITIES, ROUTES, type Answer, type Route } from './routes.js';
import { ref, type Schema } from './schema.js';

/** What any call may be answered before or beside its own work. */
const ALWAYS: readonly ProblemCode[] = ['malformed_request', 'headers_too_large', 'request_timeout', 'internal_error'];
const WITH_KEY: readonly ProblemCode[] = ['authentication_required', 'authentication_invalid', 'rate_limited'];
const WITH_BODY: readonly ProblemCode[] = [
  ...(['unsupported_media_type', 'body_too_large', 'body_missing', 'body_incomplete', 'invalid_utf8'] as const),
  ...(['malformed_json', 'duplicate_member', 'lone_surrogate', 'number_out_of_range', 'too_deep', 'request_invalid'] as const),
];

/** Answers to what is no call at all; they belong to no path of the document. */
export const UNMATCHED_CODES: readonly ProblemCode[] = [
  ...(['route_not_found', 'method_not_allowed', 'malformed_url', 'url_too_long'] as const),
  ...(['malformed_request', 'headers_too_large', 'request_timeout'] as const),
];

/** The API as it is, in OpenAPI 3.1: built from the routes' descriptions, the catalogue of problems and the loaded actions. */
export function buildDocument(catalogue: Catalogue): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Onefold command API',
      version: '1',
      description: 'One intent, one effect. Every error is RFC 9457 problem details with a stable `code`; see docs/errors.md.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths: pathsOf(ROUTES),
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'A key of one tenant and role.' } },
      schemas: { ...ANSWER_SCHEMAS, Capabilities: CAPABILITIES, ...requestSchemas(catalogue) },
      responses: {
        ...Object.fromEntries([...statusesOf(UNMATCHED_CODES)].map(([status, codes]) => [`Unmatched${status}`, problemResponse(codes)])),
      },
    },
  };
}

function pathsOf(routes: readonly Route[]): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) (paths[route.path] ??= {})[route.method] = describeRoute(route);
  return paths;
}

function describeRoute(route: Route): object {
  const { operationId, summary, access, parameters = [], body } = route;
  return {
    operationId,
    summary,
    ...(access === 'open' ? { security: [] } : { 'x-roles': rolesFor(access) }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: body.required, content: { 'application/json': { schema: body.schema } } } }),
    responses: responsesOf(route),
  };
}

function responsesOf({ access, answers, problems, body }: Route): Record<string, object> {
  const codes = [...ALWAYS, ...gateCodes(access), ...(body ? WITH_BODY : []), ...problems];
  const refused = [...statusesOf(codes)].map(([status, ofStatus]): [string, object] => [String(status), problemResponse(ofStatus)]);
  const answered = Object.entries(answers).map(([status, answer]): [string, object] => [status, answerResponse(answer)]);
  return Object.fromEntries([...refused, ...answered]);
}

function gateCodes(access: Access): readonly ProblemCode[] {
  if (access === 'open') return [];
  return rolesFor(access).length === ROLES.length ? WITH_KEY : [...WITH_KEY, 'role_not_allowed'];
}

function statusesOf(codes: readonly ProblemCode[]): Map<number, ProblemCode[]> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of new Set(codes)) byStatus.set(PROBLEMS[code].status, [...(byStatus.get(PROBLEMS[code].status) ?? []), code]);
  return byStatus;
}

/** The codes that a status stands for here, each with its title. */
function problemResponse(codes: readonly ProblemCode[]): object {
  const schema: Schema = {
    allOf: [ref('Problem'), { properties: { code: { enum: codes }, status: { const: PROBLEMS[codes[0]!].status } } }],
  };
  return {
    description: codes.map((code) => `${code}: ${PROBLEMS[code].title}.`).join(' '),
    content: { 'application/problem+json': { schema } },
  };
}

function answerResponse({ description, schema, mediaType = 'application/json', headers = [] }: Answer): object {
  return {
    description,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers.map((name) => [name, ANSWER_HEADERS[name]])) }),
    ...(schema && { content: { [mediaType]: { schema } } }),
  };
}
