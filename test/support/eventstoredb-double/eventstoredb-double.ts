import { createConnection, createServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import {
  Metadata,
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import gossipService from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import featuresService from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { AppendReq, AppendResp, ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import { Faults, type Call, type Fault } from './faults.js';
import { appendAnswer, expectedIn, proposedIn, readEventOf, send, streamIn, streamNotFound } from './messages.js';
import { DoubleStore, type ProposedEvent } from './store.js';
import { DoubleSubscription } from './subscription.js';

type Refusal = { code: status; details: string; metadata?: Metadata };

let isAnnounced = false;

/**
 * Speaks EventStoreDB's protocol on a real port, with the client's own service definitions, over a store in memory. It stands in where no
 * server is at hand: it is made from what is documented of the server, and proves nothing about one.
 */
export class EventStoreDbDouble {
  readonly store = new DoubleStore();
  readonly faults = new Faults();
  /** Names of the connections seen: a client has one for its life. */
  readonly connectionNames = new Set<string>();
  /** Calls seen, by kind; `batch_append` is none that this project may use. */
  readonly calls = new Map<string, number>();
  private readonly subscriptions = new Set<DoubleSubscription>();
  private readonly sockets = new Set<Socket>();
  private readonly proxy: TcpServer = createServer((socket) => this.relay(socket));
  private readonly server = new Server({ 'grpc.max_receive_message_length': 20_000_000 });
  private grpcPort = 0;

  static async start(): Promise<EventStoreDbDouble> {
    if (!isAnnounced)
      process.stderr.write('The EventStoreDB of these tests is a double, not EventStoreDB: set EVENTSTORE_URL for a real one.\n');
    isAnnounced = true;
    const double = new EventStoreDbDouble();
    await double.listen();
    return double;
  }

  get port(): number {
    return (this.proxy.address() as AddressInfo).port;
  }

  get url(): string {
    return `esdb://127.0.0.1:${this.port}?tls=false`;
  }

  /** As of a cluster, whose members are asked for the leader first. */
  get clusterUrl(): string {
    return `esdb://127.0.0.1:${this.port},127.0.0.1:${this.port}?tls=false&maxDiscoverAttempts=2&discoveryInterval=20`;
  }

  /** Events of somebody else, in a stream of their own or the server's. */
  writeForeign(stream: string, count = 1): void {
    const event = (): ProposedEvent => ({
      id: crypto.randomUUID(),
      type: '$statistics',
      contentType: 'application/json',
      data: Buffer.from('{"proc":{"mem":1}}'),
      metadata: Buffer.alloc(0),
    });
    if (count === 0) return;
    this.store.append(stream, 'any', Array.from({ length: count }, event));
    this.wake();
  }

  get openSubscriptions(): number {
    return this.subscriptions.size;
  }

  /** Breaks every connection, whatever is under way on it. */
  cutConnections(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Ends every subscription: with an error as at a change of leader, or just so. */
  endSubscriptions(how: 'error' | 'end'): number {
    const ended = [...this.subscriptions];
    for (const subscription of ended) {
      subscription.end();
      if (how === 'end') subscription.call.end();
      else subscription.call.emit('error', refusalError({ code: status.UNAVAILABLE, details: 'The leader has changed.' }));
    }
    this.subscriptions.clear();
    return ended.length;
  }

  async close(): Promise<void> {
    this.cutConnections();
    this.server.forceShutdown();
    await new Promise((resolve) => this.proxy.close(resolve));
  }

  private async listen(): Promise<void> {
    this.server.addService(
      streamsService.StreamsService as never,
      {
        append: (call: ServerReadableStream<AppendReq, AppendResp>, answer: sendUnaryData<AppendResp>) => this.append(call, answer),
        read: (call: ServerWritableStream<ReadReq, ReadResp>) => this.read(call),
        batchAppend: (call: ServerWritableStream<unknown, unknown>) => {
          this.count('batch_append');
          call.emit('error', refusalError({ code: status.UNIMPLEMENTED, details: 'The double takes classic appends only.' }));
        },
        delete: unimplemented,
        tombstone: unimplemented,
      } as UntypedServiceImplementation,
    );
    this.server.addService(
      featuresService.ServerFeaturesService as never,
      {
        getSupportedMethods: (_: unknown, answer: sendUnaryData<unknown>) => answer(null, supportedMethods()),
      } as UntypedServiceImplementation,
    );
    this.server.addService(
      gossipService.GossipService as never,
      {
        read: (_: unknown, answer: sendUnaryData<unknown>) => this.gossip(answer),
      } as UntypedServiceImplementation,
    );
    const insecure = ServerCredentials.createInsecure();
    this.grpcPort = await new Promise((resolve, reject) =>
      this.server.bindAsync('127.0.0.1:0', insecure, (error, port) => (error ? reject(error) : resolve(port))),
    );
    await new Promise<void>((resolve) => this.proxy.listen(0, '127.0.0.1', resolve));
  }

  private relay(client: Socket): void {
    const server = createConnection(this.grpcPort, '127.0.0.1');
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => undefined); // Cut connections are what this is for; `close` follows.
    }
    this.sockets.add(client);
    client.on('close', () => {
      this.sockets.delete(client);
      server.destroy();
    });
    server.on('close', () => client.destroy());
    client.pipe(server).pipe(client);
  }

  private append(call: ServerReadableStream<AppendReq, AppendResp>, answer: sendUnaryData<AppendResp>): void {
    this.meet('append', call.metadata);
    const requests: AppendReq[] = [];
    call.on('error', () => undefined); // The connection was cut under it.
    call.on('data', (request: AppendReq) => requests.push(request));
    // A request that was given up half-way ends as well, and is known to be cancelled only a moment later; nothing of it may be stored.
    call.on('end', () => setImmediate(() => setImmediate(() => !call.cancelled && requests.length > 1 && this.commit(requests, answer))));
  }

  private commit(requests: readonly AppendReq[], answer: sendUnaryData<AppendResp>): void {
    const fault = this.faults.take('append');
    const commit = () => {
      const options = requests[0]!.getOptions()!;
      const expected = expectedIn(options);
      const events = requests.slice(1).map((request) => proposedIn(request.getProposedMessage()!));
      const stored = this.store.append(streamIn(options.getStreamIdentifier()), expected, events);
      this.wake();
      return appendAnswer(stored, expected);
    };
    if (fault === null) return answer(null, commit());
    if (fault === 'cut_after_commit' || fault === 'silence_after_commit') commit();
    this.strike(fault, (refusal) => answer(refusal));
  }

  private read(call: ServerWritableStream<ReadReq, ReadResp>): void {
    const options = call.request.getOptions()!;
    const kind = options.hasSubscription() ? 'subscribe' : options.hasAll() ? 'read_all' : 'read_stream';
    this.meet(kind, call.metadata);
    call.on('error', () => undefined);
    const fault = this.faults.take(kind);
    if (fault !== null) return this.strike(fault, (refusal) => call.emit('error', refusalError(refusal)));
    if (kind === 'subscribe') this.subscribe(call, options);
    else if (kind === 'read_all') void this.readAll(call, options);
    else void this.readStream(call, options);
  }

  private async readStream(call: ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const of = options.getStream()!;
    const name = streamIn(of.getStreamIdentifier());
    const records = this.store.stream(name);
    if (records === null) return sendAll(call, [streamNotFound(name)]);
    const count = Number(options.getCount());
    const isBackwards = options.getReadDirection() === 1;
    const from = of.hasRevision() ? Number(of.getRevision()) : of.hasEnd() ? Infinity : 0;
    const selected = isBackwards
      ? records.filter(({ revision }) => revision <= from).reverse()
      : records.filter(({ revision }) => revision >= from);
    await sendAll(
      call,
      selected.slice(0, count).map((record) => readEventOf(record, false)),
    );
  }

  private async readAll(call: ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const of = options.getAll()!;
    const { records } = this.store;
    const isBackwards = options.getReadDirection() === 1;
    const at = of.hasPosition() ? BigInt(of.getPosition()!.getCommitPosition()) : null;
    if (at !== null && !this.store.isReadable(at)) {
      return void call.emit('error', refusalError({ code: status.UNKNOWN, details: `Invalid position ${at}: no record begins there.` }));
    }
    const index = at !== null ? this.store.indexAt(at) : of.hasEnd() ? records.length : 0;
    const count = Math.min(Number(options.getCount()), records.length);
    // Forwards the record at the position is included, backwards it is not.
    const selected = isBackwards ? records.slice(Math.max(0, index - count), index).reverse() : records.slice(index, index + count);
    await sendAll(
      call,
      selected.map((record) => readEventOf(record, true)),
    );
  }

  private subscribe(call: ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): void {
    const of = options.getAll()!;
    const at = of.hasPosition() ? BigInt(of.getPosition()!.getCommitPosition()) : null;
    if (at !== null && !this.store.isReadable(at)) {
      return void call.emit('error', refusalError({ code: status.UNKNOWN, details: `Invalid position ${at}: no record begins there.` }));
    }
    const filter = options.getFilter();
    const window = filter?.hasMax() ? filter.getMax() : 32;
    const subscription = new DoubleSubscription(call, this.store, {
      prefixes: filter?.getStreamIdentifier()?.getPrefixList() ?? [''],
      checkpointEvery: filter ? window * filter.getCheckpointintervalmultiplier() : Infinity,
      // Behind the position, or the records there are when the subscriber wants only new ones.
      from: at !== null ? this.store.indexAt(at + 1n) : of.hasEnd() ? this.store.records.length : 0,
    });
    this.subscriptions.add(subscription);
    const forget = () => this.subscriptions.delete(subscription);
    call.on('cancelled', forget);
    call.on('close', forget);
    void subscription.pump();
  }

  private wake(): void {
    for (const subscription of this.subscriptions) void subscription.pump();
  }

  private gossip(answer: sendUnaryData<unknown>): void {
    this.count('gossip');
    const fault = this.faults.take('gossip');
    if (fault !== null) return this.strike(fault, (refusal) => answer(refusal));
    const endPoint = new gossip.EndPoint();
    endPoint.setAddress('127.0.0.1');
    endPoint.setPort(this.port);
    const id = new shared.UUID();
    id.setString('00000000-0000-4000-8000-000000000001');
    const member = new gossip.MemberInfo();
    member.setInstanceId(id);
    member.setTimeStamp('0');
    member.setState(gossip.MemberInfo.VNodeState.LEADER);
    member.setIsAlive(true);
    member.setHttpEndPoint(endPoint);
    const info = new gossip.ClusterInfo();
    info.setMembersList([member]);
    answer(null, info);
  }

  private meet(call: Call, metadata: Metadata): void {
    this.count(call);
    this.connectionNames.add(String(metadata.get('connection-name')[0] ?? ''));
  }

  private count(call: string): void {
    this.calls.set(call, (this.calls.get(call) ?? 0) + 1);
  }

  private strike(fault: Fault, refuse: (refusal: Refusal) => void): void {
    if (fault === 'silence_before_commit' || fault === 'silence_after_commit') return;
    if (fault === 'unavailable') return refuse({ code: status.UNAVAILABLE, details: 'The server is not ready.' });
    if (fault !== 'not_leader') return this.cutConnections();
    const metadata = new Metadata();
    metadata.set('exception', 'not-leader');
    metadata.set('leader-endpoint-host', '127.0.0.1');
    metadata.set('leader-endpoint-port', String(this.port));
    refuse({ code: status.NOT_FOUND, details: 'Leader info available', metadata });
  }
}

async function sendAll(call: ServerWritableStream<ReadReq, ReadResp>, responses: readonly ReadResp[]): Promise<void> {
  for (const response of responses) await send(call, response);
  call.end();
}

function unimplemented(_: ServerUnaryCall<unknown, unknown>, answer: sendUnaryData<unknown>): void {
  answer({ code: status.UNIMPLEMENTED, details: 'Not part of the double.' });
}

/** As a current server says it: with batch append, which this project must not fall into. */
function supportedMethods() {
  const supported = new features.SupportedMethods();
  supported.setEventStoreServerVersion('24.10.0');
  supported.setMethodsList(
    ['append', 'batchappend', 'read', 'delete', 'tombstone'].map((name) => {
      const method = new features.SupportedMethod();
      method.setServiceName('event_store.client.streams.streams');
      method.setMethodName(name);
      return method;
    }),
  );
  return supported;
}

function refusalError({ code, details, metadata }: Refusal): Error {
  return Object.assign(new Error(details), { code, details, metadata });
}
