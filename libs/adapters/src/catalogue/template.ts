/**
 * Text with placeholders that are filled in for each call: `{provider_key}`, `{operation_id}`, and in a path also `{payload.<member>}`
 * for a member at the top of the payload.
 */
export type Template = readonly TemplatePart[];

export type TemplatePart = string | { readonly placeholder: 'provider_key' | 'operation_id' } | { readonly payloadMember: string };

export interface TemplateValues {
  readonly providerKey: string;
  readonly operationId: string;
  readonly payload: unknown;
}

/** Splits a text at its placeholders; `unknown` are those it does not know, and braces that belong to none. */
export function parseTemplate(text: string): { readonly template: Template; readonly unknown: readonly string[] } {
  const template: TemplatePart[] = [];
  const unknown: string[] = [];
  for (const piece of text.split(/(\{[^{}]*\})/)) {
    if (piece === '') continue;
    const part = piece.startsWith('{') && piece.endsWith('}') ? placeholderPart(piece.slice(1, -1)) : piece;
    if (part === null || (typeof part === 'string' && /[{}]/.test(part))) unknown.push(piece);
    else template.push(part);
  }
  return { template, unknown };
}

function placeholderPart(name: string): TemplatePart | null {
  if (name === 'provider_key' || name === 'operation_id') return { placeholder: name };
  const member = /^payload\.([A-Za-z0-9_-]{1,64})$/.exec(name)?.[1];
  return member === undefined ? null : { payloadMember: member };
}

export function usesProviderKey(template: Template): boolean {
  return template.some((part) => typeof part === 'object' && 'placeholder' in part && part.placeholder === 'provider_key');
}

export function usesPayload(template: Template): boolean {
  return template.some((part) => typeof part === 'object' && 'payloadMember' in part);
}

/** The text as it is, or null where it has to be filled in for each call. */
export function constantText(template: Template): string | null {
  return template.every((part) => typeof part === 'string') ? template.join('') : null;
}

/** Fills in a header's value. */
export function renderText(template: Template, values: TemplateValues): string {
  return template.map((part) => (typeof part === 'string' ? part : (valueOf(part, values) ?? ''))).join('');
}

/** Fills in a path, each value URL-encoded. Null where the payload lacks a member, or has one that is no path segment. */
export function renderPath(template: Template, values: TemplateValues): string | null {
  let path = '';
  for (const part of template) {
    if (typeof part === 'string') {
      path += part;
      continue;
    }
    const value = valueOf(part, values);
    // Servers resolve dot segments, so they would lead to another path than the declared one.
    if (value === null || value === '' || value === '.' || value === '..') return null;
    path += encodeURIComponent(value);
  }
  return path;
}

function valueOf(part: Exclude<TemplatePart, string>, values: TemplateValues): string | null {
  if ('placeholder' in part) return part.placeholder === 'provider_key' ? values.providerKey : values.operationId;
  const { payload } = values;
  if (typeof payload !== 'object' || payload === null || !Object.hasOwn(payload, part.payloadMember)) return null;
  const value = (payload as Record<string, unknown>)[part.payloadMember];
  if (typeof value === 'string') return /\p{Surrogate}/u.test(value) ? null : value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
