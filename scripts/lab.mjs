import { run } from './run.mjs';

run('dist/apps/provider-lab/src/main.js');
