import { run } from './run.mjs';

run('dist/stack/main.js');
