// `npm run sim`: many seeds of the whole system in one process, on a virtual clock. The last line on standard output is a JSON summary.
import { readArguments, USAGE, UsageError } from './arguments.js';
import { runSeeds } from './run-seeds.js';

try {
  const summary = await runSeeds(readArguments(process.argv.slice(2)), (line) => console.log(line));
  console.log(JSON.stringify(summary));
  process.exitCode = summary.duplicates + summary.lost + summary.violations === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n${USAGE}`);
  process.exitCode = 2;
}
