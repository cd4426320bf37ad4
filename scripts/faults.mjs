import { run } from './run.mjs';

run('dist/proof/faults/main.js');
