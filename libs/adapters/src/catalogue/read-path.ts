import type { Section } from './section.js';
import { parseTemplate, type Template } from './template.js';

/** Reads a path with an optional query, as a template. */
export function readPath(section: Section, name: string): Template {
  const text = section.requiredText(name, `${name}: /v1/things`);
  if (text === '') return [];
  const { template, unknown } = parseTemplate(text);
  if (unknown.length > 0) {
    section.fault(
      name,
      `Has a placeholder that is not known: ${unknown.join(', ')}.`,
      'Known: {provider_key}, {operation_id}, {payload.<member>}.',
    );
  }
  if (!text.startsWith('/')) section.fault(name, 'Must start with a slash.', 'Write the path below base_url, for example /v1/things.');
  if (!/^[\x21-\x7e]*$/.test(text) || text.includes('#')) {
    section.fault(name, 'Has characters that a path may not have.', 'Write them URL-encoded; a fragment (#) is never sent.');
  }
  return template;
}
