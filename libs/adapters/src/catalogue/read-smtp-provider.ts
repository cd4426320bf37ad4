import type { CommonSettings } from './read-provider.js';
import type { Section } from './section.js';
import type { SmtpProviderSettings } from './settings.js';
import { isPlainAddress } from './mail-address.js';

const SUBMISSION_PORT = 587;
const SMTPS_PORT = 465;
const DOMAIN = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/;

export function readSmtpProvider(section: Section, common: CommonSettings): SmtpProviderSettings {
  const server = readUrl(section);
  const from = readFrom(section);
  return { ...common, kind: 'smtp', ...server, tls: readTls(section, server), from, messageIdDomain: readDomain(section, from.address) };
}

type Server = Pick<SmtpProviderSettings, 'host' | 'port' | 'credentials'>;

function readUrl(section: Section): Server {
  const text = section.requiredText('url', 'url: smtp://user:password@mail.example.com:587');
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSmtp = url !== null && (url.protocol === 'smtp:' || url.protocol === 'smtps:') && url.hostname !== '';
  if (!isSmtp) {
    if (text !== '')
      section.fault(
        'url',
        'Must be a URL that starts with smtp:// or smtps://.',
        'Write smtp://user:password@host:587 or smtps://user:password@host:465.',
      );
    return { host: 'localhost', port: SUBMISSION_PORT, credentials: null };
  }
  if (url.pathname.length > 1 || url.search !== '' || url.hash !== '') {
    section.fault('url', 'Must end after the port.', 'Settings have members of their own, for example tls.');
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (url.protocol === 'smtps:' ? SMTPS_PORT : SUBMISSION_PORT) : Number(url.port),
    credentials: readCredentials(section, url),
  };
}

function readCredentials(section: Section, { username, password }: URL): SmtpProviderSettings['credentials'] {
  if (username === '' && password === '') return null;
  try {
    if (username !== '' && password !== '') return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
    section.fault('url', 'Has only one of user and password.', 'Write smtp://user:password@host, or neither.');
  } catch {
    section.fault('url', 'Has a user or password that is not URL-encoded.', 'Write % as %25, @ as %40, : as %3A and / as %2F.');
  }
  return null;
}

/** Without a word: encrypted wherever the server offers it, always where a password is sent, and not on this machine itself. */
function readTls(section: Section, { host, credentials }: Server): SmtpProviderSettings['tls'] {
  const isLoopback = host === 'localhost' || host === '::1' || /^127\./.test(host);
  const initial = isLoopback ? 'never' : credentials ? 'required' : 'if_offered';
  const isImplicit = String(section.value('url')).startsWith('smtps:');
  if (isImplicit && section.has('tls'))
    section.fault('tls', 'An smtps URL is encrypted from the first byte.', 'Remove tls, or write smtp://.');
  const tls = section.word('tls', ['required', 'if_offered', 'never'], initial);
  if (tls === 'never' && credentials && !isLoopback && !isImplicit) {
    section.fault('tls', 'A password must not be sent unencrypted.', 'Write tls: required.');
  }
  return isImplicit ? 'implicit' : tls;
}

function readFrom(section: Section): SmtpProviderSettings['from'] {
  const text = section.requiredText('from', 'from: "Example <no-reply@example.com>"');
  const named = /^([^<>"]*)<([^<>]*)>$/.exec(text);
  const from = named ? { name: named[1]!.trim(), address: named[2]!.trim() } : { name: '', address: text };
  if (text !== '' && (!isPlainAddress(from.address) || /[\p{Cc}]/u.test(from.name))) {
    section.fault(
      'from',
      'Must be an address, or a name and an address in angle brackets.',
      'Write no-reply@example.com or "Example <no-reply@example.com>".',
    );
  }
  return from;
}

function readDomain(section: Section, fromAddress: string): string {
  const domain = section.text('message_id_domain', fromAddress.slice(fromAddress.lastIndexOf('@') + 1));
  if (domain !== '' && !DOMAIN.test(domain))
    section.fault('message_id_domain', 'Must be a domain name.', 'Write for example mail.example.com.');
  return domain;
}
