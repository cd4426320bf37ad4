import { run } from './run.mjs';

run('dist/bench/main.js');
