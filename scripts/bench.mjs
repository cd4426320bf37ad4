import { run } from './run.mjs';

run(process.argv.includes('--distributed') ? 'dist/bench/distributed.js' : 'dist/bench/main.js');
