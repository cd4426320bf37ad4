import { eventLogContract } from '../../../../contracts/event-log.contract.js';
import { createLogDatabase, openLogWithKeys } from '../../../../support/event-log-postgres.js';

eventLogContract('PostgreSQL', async () => {
  const database = await createLogDatabase();
  const opened = openLogWithKeys(database.url);
  return {
    ...opened,
    close: async () => {
      await opened.close();
      await database.drop();
    },
  };
});
