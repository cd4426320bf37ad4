import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { control, type ControlTools } from './control.js';
import { takeCall, type CallTools } from './http-calls.js';
import { sendJson } from './http-io.js';
import { idMaker } from './ids.js';
import { FileJournal, memoryJournal, readJournal } from './journal.js';
import { LabState } from './lab-state.js';
import { lookUp } from './look-up.js';
import { httpKinds, providerClasses, type HttpKind, type ProviderClass } from './provider-classes.js';
import { LabMailServer } from './smtp.js';
import { Timers } from './timers.js';

export interface LabOptions {
  /** 0: any free port. */
  readonly port: number;
  /** 0: any free port; null: no mail server. */
  readonly smtpPort: number | null;
  /** Initially 127.0.0.1. */
  readonly host?: string;
  /** NDJSON file, made when missing and read back when there; null: memory only. */
  readonly ledgerFile: string | null;
  /** Where webhooks go when `POST /lab/webhook` does not say. */
  readonly webhookUrl?: string;
  /** What signs webhooks when `POST /lab/webhook` does not say: `whsec_` and base64. */
  readonly webhookSecret?: string;
  /** Told when the ledger file cannot be written any more, after which nothing is answered; initially a process warning. */
  readonly onFault?: (error: Error) => void;
}

export interface Lab {
  readonly url: string;
  readonly port: number;
  readonly smtpPort: number | null;
  /** Drops open connections, writes what waits, and frees the ports. Landings planned for later stay in the file. */
  close(): Promise<void>;
}

/**
 * Starts the stand-in provider. Rejects with a one-line error when a port is taken or the ledger file is damaged or
 * cannot be opened; nothing is left open then.
 */
export async function startLab(options: LabOptions): Promise<Lab> {
  const host = options.host ?? '127.0.0.1';
  const onFault = options.onFault ?? ((error: Error) => process.emitWarning(error));
  const answers = new Timers();
  const state = new LabState();
  const newId = idMaker();
  const gate = newGate();
  const mail = options.smtpPort === null ? null : new LabMailServer({ state, newId, answers, opened: gate.opened, onFault });
  const webhook = { url: options.webhookUrl ?? null, secret: options.webhookSecret ?? null };
  const server = newHttpServer();
  const close = async (): Promise<void> => {
    answers.clear();
    await Promise.all([closeHttp(server), mail?.close()]);
    await state.close();
  };
  try {
    // Ports first: a second lab by mistake must not touch the first one's file.
    const smtpPort =
      mail === null ? null : await naming('SMTP port', 'LAB_SMTP_PORT', options.smtpPort, mail.listen(options.smtpPort ?? 0, host));
    const port = await naming('port', 'LAB_PORT', options.port, listen(server, options.port, host));
    // From here to `open` nothing yields, so no request is taken before the ledger is read.
    openLedger(state, options.ledgerFile, onFault);
    server.on('request', router({ state, newId, answers, webhook, onFault }));
    gate.open();
    return { url: `http://${host}:${port}`, port, smtpPort, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function openLedger(state: LabState, file: string | null, onFault: (error: Error) => void): void {
  if (file === null) return state.start(memoryJournal);
  readJournal(file, (line) => state.replay(line));
  state.start(new FileJournal(file, onFault));
}

function newGate(): { opened: Promise<void>; open: () => void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

function newHttpServer(): Server {
  // A server that closes idle connections sooner than its callers makes resets nobody scripted.
  const server = createServer({ keepAliveTimeout: 120_000, requestTimeout: 60_000 });
  // Held calls occupy a connection for up to ten minutes each; more than this is a runaway client.
  server.maxConnections = 10_000;
  return server;
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

/** The port that a setting names is in use. */
export class LabPortTaken extends Error {
  override readonly name = 'LabPortTaken';

  constructor(
    message: string,
    readonly setting: 'LAB_PORT' | 'LAB_SMTP_PORT',
    options: ErrorOptions,
  ) {
    super(message, options);
  }
}

async function naming(what: string, setting: LabPortTaken['setting'], port: number | null, listening: Promise<number>): Promise<number> {
  try {
    return await listening;
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') throw new LabPortTaken(`${what} (${setting}) ${port} is taken; choose another`, setting, { cause });
    throw new Error(`${what} (${setting}) ${port}: ${message}`, { cause });
  }
}

function closeHttp(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

type Target = readonly [ProviderClass, HttpKind];

/** Every call path, looked up whole: cheaper than taking the path apart for each call. */
const targets = new Map<string, Target>(providerClasses.flatMap((name) => httpKinds.map((kind) => [`/${name}/v1/${kind}`, [name, kind]])));

function router(tools: CallTools & ControlTools) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    response.sendDate = false;
    route(tools, request, response).catch((error: Error) => {
      // Without a written ledger there is no truth to answer with.
      request.socket.destroy();
      tools.onFault(error);
    });
  };
}

async function route(tools: CallTools & ControlTools, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = request.url ?? '/';
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const target = targets.get(path);
  if (target !== undefined && request.method === 'POST') return takeCall(tools, target[0], target[1], request, response);
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  if (target !== undefined && request.method === 'GET') {
    return lookUp(tools.state, tools.answers, target[0], target[1], query.get('reference'), request, response);
  }
  if (target !== undefined)
    return sendJson(response, 405, { error: 'method_not_allowed', allowed: ['GET', 'POST'] }, { allow: 'GET, POST' });
  if (path.startsWith('/lab/')) return control(tools, path, query, request, response);
  sendJson(response, 404, {
    error: 'not_found',
    paths: [...providerClasses.map((name) => `/${name}/v1/{kind}`), '/lab/...'],
    kinds: httpKinds,
  });
}
