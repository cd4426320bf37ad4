import type { ProviderAdapter } from '#domain';
import type { HttpActionRequest, LoadedAction, LoadedCatalogue, MailActionRequest } from '../catalogue/settings.js';
import { HttpProvider } from './http/http-provider.js';
import { SmtpProvider } from './smtp/smtp-provider.js';

/** An adapter for each provider of the catalogue, by name. They open connections only when they are called; `close` each in the end. */
export function createProviders(catalogue: LoadedCatalogue): ReadonlyMap<string, ProviderAdapter> {
  const providers = new Map<string, ProviderAdapter>();
  for (const [name, settings] of catalogue.providers) {
    const actions = [...catalogue.actions.values()].filter((action) => action.provider === name);
    const adapter =
      settings.kind === 'http'
        ? new HttpProvider(settings, requestsOf(actions, 'http'))
        : new SmtpProvider(settings, requestsOf(actions, 'mail'));
    providers.set(name, adapter);
  }
  return providers;
}

function requestsOf(actions: readonly LoadedAction[], kind: 'http'): ReadonlyMap<string, HttpActionRequest>;
function requestsOf(actions: readonly LoadedAction[], kind: 'mail'): ReadonlyMap<string, MailActionRequest>;
function requestsOf(actions: readonly LoadedAction[], kind: string): ReadonlyMap<string, HttpActionRequest | MailActionRequest> {
  return new Map(actions.filter(({ request }) => request.kind === kind).map(({ actionType, request }) => [actionType, request]));
}
