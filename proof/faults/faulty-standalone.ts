// What `npm start` runs, with its ports wrapped: it kills itself at CRASH_POINT, when that is reached for the CRASH_OCCURRENCE-th time.
// Without CRASH_POINT it is the product as it is.
import { startStandalone } from '#apps/standalone/src/standalone.js';
import { reachedFromEnvironment } from './crash-at.js';
import { decoration } from './decorate.js';

try {
  const reached = reachedFromEnvironment();
  const standalone = await startStandalone(process.env, { onProgress: () => undefined, ...(reached && { decorate: decoration(reached) }) });
  process.stdout.write(`${JSON.stringify({ ready: true, api: standalone.url, key: standalone.developmentKey })}\n`);
  process.once('SIGTERM', () => {
    standalone.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
} catch (error) {
  process.stderr.write(`${(error as Error).stack}\n`);
  process.exit(1);
}
