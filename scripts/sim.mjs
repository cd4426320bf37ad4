import { run } from './run.mjs';

run('dist/proof/simulation/main.js');
