import { run } from './run.mjs';

run('dist/apps/standalone/src/main.js');
