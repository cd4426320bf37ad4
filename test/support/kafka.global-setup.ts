import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { runProgram, type ProgramResult } from '#adapters/postgres/embedded/run-program.js';
import { KafkaUnavailable } from '../../stack/kafka/broker-files.js';
import { startKafkaCluster } from '../../stack/kafka/kafka-cluster.js';
import { pickPorts } from '../../stack/ports.js';
import { askMetadata } from '../../stack/kafka/probe.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the broker of the test run is (`host:port`, comma separated), or why there is none. */
    kafka: { readonly brokers: string } | { readonly reason: string };
  }
}

const IMAGE = 'apache/kafka:4.1.2';
/** A Docker without an engine says so at once; one that hangs is no Docker. */
const DOCKER_TIMEOUT_MS = 10_000;
/** The image is some 200 MB. */
const PULL_TIMEOUT_MS = 180_000;
const START_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

/**
 * One broker for all test files: `KAFKA_BROKERS`; else a container where a Docker engine answers; else Java and Maven. Where none can be
 * had the tests are skipped and say why, unless `REQUIRE_KAFKA=true`.
 */
export default async function startKafka(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env['KAFKA_BROKERS'];
  if (given) {
    project.provide('kafka', { brokers: given });
    return undefined;
  }
  try {
    const broker = (await startContainer()) ?? (await startKafkaCluster({ brokers: 1 }));
    project.provide('kafka', { brokers: broker.bootstrap });
    return () => broker.stop();
  } catch (error) {
    if (!(error instanceof KafkaUnavailable) || process.env['REQUIRE_KAFKA'] === 'true') throw error;
    project.provide('kafka', { reason: error.message });
    return undefined;
  }
}

/** Undefined where there is no engine, or it cannot have the image: then Java is tried. */
async function startContainer(): Promise<{ bootstrap: string; stop(): Promise<void> } | undefined> {
  const engine = await docker(['version', '--format', '{{.Server.Version}}'], DOCKER_TIMEOUT_MS);
  if (engine.code !== 0) return undefined;
  const [port, controller] = (await pickPorts(2)) as [number, number];
  const name = `onefold-test-kafka-${randomBytes(6).toString('hex')}`;
  const settings = Object.entries(containerSettings(port, controller)).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
  // The same port inside and outside: the broker reaches itself under the address that it tells its clients.
  const args = ['run', '--detach', '--rm', '--name', name, '--publish', `127.0.0.1:${port}:${port}`, ...settings, IMAGE];
  const started = await docker(args, PULL_TIMEOUT_MS);
  const stop = async () => void (await docker(['rm', '--force', name], DOCKER_TIMEOUT_MS));
  if (started.code === 0 && (await answers(port))) return { bootstrap: `127.0.0.1:${port}`, stop };
  await stop();
  return undefined;
}

function containerSettings(port: number, controller: number): Record<string, string | number> {
  return {
    KAFKA_NODE_ID: 1,
    KAFKA_PROCESS_ROLES: 'broker,controller',
    KAFKA_CONTROLLER_QUORUM_VOTERS: `1@127.0.0.1:${controller}`,
    KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
    KAFKA_LISTENERS: `PLAINTEXT://:${port},CONTROLLER://127.0.0.1:${controller}`,
    KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://127.0.0.1:${port}`,
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1,
    KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: 1,
    KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: 1,
    KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: 0,
    KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
  };
}

async function docker(args: readonly string[], timeoutMs: number): Promise<ProgramResult> {
  return runProgram({ file: 'docker', args, options: {} }, { timeoutMs }).catch((error: Error) => ({ code: null, output: error.message }));
}

async function answers(port: number): Promise<boolean> {
  const giveUpAt = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < giveUpAt) {
    const view = await askMetadata(port, PROBE_TIMEOUT_MS).catch(() => undefined);
    if (view && view.brokers.length > 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}
