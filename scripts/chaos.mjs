import { run } from './run.mjs';

run('dist/proof/chaos/main.js');
