import { randomBytes } from 'node:crypto';
import { MemoryDataKeys, MemoryEventLog } from '#adapters/event-store/memory/memory-event-log.js';
import { nodeHashing } from '#adapters/crypto/hashing.js';
import { createSealer } from '#adapters/crypto/sealer.js';
import { eventLogContract } from '../../../../contracts/event-log.contract.js';

eventLogContract('memory', async () => {
  const sealer = createSealer([{ version: 'v1', key: randomBytes(32) }]);
  const dataKeys = new MemoryDataKeys(sealer);
  return { log: new MemoryEventLog(nodeHashing, dataKeys), dataKeys, sealer, close: async () => undefined };
});
