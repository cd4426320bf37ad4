import { KafkaUnavailable } from '../../stack/kafka/broker-files.js';
import type { CaseTopic } from './broker.js';
import { startDoomed, untilDeath, type CrashCase } from './crash-case.js';
import type { CrashPoint } from './crash-points.js';
import { judge, type Verdict } from './judge.js';
import type { Node } from './node.js';
import type { FaultServer } from './server.js';
import { Workload } from './workload.js';
import { eventually, World } from './world.js';

/** A relay is killed while the one-machine layout beside it works, and others go on where it was. */
export async function runRelayCase(server: FaultServer, { points, labClass, variant, occurrence }: CrashCase): Promise<Verdict> {
  const topic = await topicOf(server);
  if (topic instanceof KafkaUnavailable) return { operations: 0, effects: 0, findings: [], skipped: topic.message };
  const world = await World.open(server, topic);
  try {
    const workload = new Workload(world, labClass);
    const scene: Scene = { world, workload, node: await world.start(), occurrence };
    if (variant === 'restart') await dieInTurn(scene, points);
    else for (const point of points) await dieBesideAnother(scene, point);
    await submitMore(scene);
    return await judge(world, scene.node, workload);
  } finally {
    await world.close();
  }
}

interface Scene {
  readonly world: World;
  readonly workload: Workload;
  readonly node: Node;
  readonly occurrence: number;
}

/** With `REQUIRE_KAFKA=true` a machine that can run no broker is a failure. */
async function topicOf(server: FaultServer): Promise<CaseTopic | KafkaUnavailable> {
  try {
    return await server.createTopic();
  } catch (error) {
    if (error instanceof KafkaUnavailable && process.env['REQUIRE_KAFKA'] !== 'true') return error;
    throw error;
  }
}

/** Each is started when the one before is gone; the last one lives. */
async function dieInTurn(scene: Scene, points: readonly CrashPoint[]): Promise<void> {
  const { world, occurrence } = scene;
  for (const point of points) {
    const doomed = await startDoomed(point, () => world.startRelay({ point: point.name, occurrence }));
    await submitMore(scene);
    if (doomed) await untilDeath(doomed, point);
  }
  await world.startRelay();
}

/** Another one stands by when the leader dies, and takes the leadership over. */
async function dieBesideAnother(scene: Scene, point: CrashPoint): Promise<void> {
  const { world, occurrence } = scene;
  const doomed = await world.startRelay({ point: point.name, occurrence });
  await eventually('The leadership of the first relay', async () => ((await doomed.isLeading()) ? true : null));
  await world.startRelay();
  await submitMore(scene);
  await untilDeath(doomed, point);
}

async function submitMore({ workload, node }: Scene): Promise<void> {
  await workload.prepare();
  await workload.submitNew(node);
}
