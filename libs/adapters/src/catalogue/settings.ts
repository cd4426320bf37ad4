import type { ActionDefinition, Catalogue, HttpOutcomes, ProviderDefinition } from '#domain';
import type { Template } from './template.js';

/** The catalogue as the core sees it, plus what the provider adapters need to make the calls. */
export interface LoadedCatalogue extends Catalogue {
  readonly actions: ReadonlyMap<string, LoadedAction>;
  readonly providers: ReadonlyMap<string, ProviderSettings>;
}

export type ProviderSettings = HttpProviderSettings | SmtpProviderSettings;

export interface HttpProviderSettings extends ProviderDefinition {
  readonly kind: 'http';
  /** Scheme, host and port; no path. */
  readonly origin: string;
  /** What stands before each path, without a slash at its end; usually empty. */
  readonly pathPrefix: string;
  /** Sent with calls and look-ups. Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: Template])[];
  /** Header that carries the provider key of a call; null where the provider honours none. */
  readonly keyHeader: string | null;
  readonly outcomes: HttpOutcomes;
  readonly lookup: LookupSettings | null;
}

/** How a provider's answer to a look-up is read. Pointers are RFC 6901, already split into their tokens. */
export interface LookupSettings {
  readonly path: Template;
  readonly present: Pointer;
  readonly id: Pointer | null;
  readonly amount: Pointer | null;
  /** Where the payload has the amount that `amount` must equal. */
  readonly amountOf: Pointer | null;
  readonly refused: { readonly pointer: Pointer; readonly equals: readonly unknown[] } | null;
  /** Statuses that mean "there is none". */
  readonly absent: readonly number[];
}

/** Unescaped tokens; empty for the whole value. */
export type Pointer = readonly string[];

export interface SmtpProviderSettings extends ProviderDefinition {
  readonly kind: 'smtp';
  readonly host: string;
  readonly port: number;
  /** `implicit` from the first byte (smtps); else STARTTLS: demanded, used where offered, or not used. */
  readonly tls: 'implicit' | 'required' | 'if_offered' | 'never';
  readonly credentials: { readonly user: string; readonly password: string } | null;
  readonly from: { readonly name: string; readonly address: string };
  readonly messageIdDomain: string;
}

export interface LoadedAction extends ActionDefinition {
  readonly request: HttpActionRequest | MailActionRequest;
}

export interface HttpActionRequest {
  readonly kind: 'http';
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: Template;
  /** Whether the payload is sent as JSON body. */
  readonly sendsPayload: boolean;
  readonly result: ResultSettings;
}

/** What an action takes from a 2xx answer. */
export interface ResultSettings {
  /** False: the provider answers without a JSON body, and the status alone is believed. */
  readonly hasBody: boolean;
  readonly providerOperationId: Pointer | null;
  readonly keep: readonly KeptMember[];
}

export interface KeptMember {
  /** Its name in the result: the pointer's last token. */
  readonly name: string;
  readonly pointer: Pointer;
}

export interface MailActionRequest {
  readonly kind: 'mail';
  readonly to: Pointer;
  readonly subject: Pointer;
  readonly text: Pointer;
  readonly html: Pointer | null;
  readonly cc: Pointer | null;
  readonly replyTo: Pointer | null;
}
