import { eventLogContract } from '../../../../contracts/event-log.contract.js';
import { openEventStoreDb } from './fixture.js';

/** A real server holds events of earlier runs. */
const startsEmpty = !process.env.EVENTSTORE_URL;

eventLogContract(startsEmpty ? 'EventStoreDB (double)' : 'EventStoreDB', openEventStoreDb, {
  positions: 'increasing',
  tellsRepetition: false,
  startsEmpty,
});
