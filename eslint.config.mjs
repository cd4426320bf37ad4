import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', 'coverage/', '.onefold/', '.kafka/'] },
  eslint.configs.recommended,
  ...tseslint.configs.recommended,
  {
    files: ['**/*.mjs'],
    languageOptions: {
      globals: { process: 'readonly', console: 'readonly', URL: 'readonly', fetch: 'readonly', setTimeout: 'readonly', Buffer: 'readonly' },
    },
  },
  {
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-console': 'error',
      eqeqeq: 'error',
    },
  },
  { files: ['scripts/**', 'bench/**', 'stack/**', 'proof/**'], rules: { 'no-console': 'off' } }, // their output is what they are for
  {
    files: ['libs/domain/src/**'],
    rules: {
      // The core is pure: time, randomness and the outside world are handed in.
      'no-restricted-globals': ['error', 'Date.now', 'process', 'Buffer', 'setTimeout', 'setInterval', 'fetch', 'crypto', 'performance'],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'Time is handed in.' },
        { object: 'Math', property: 'random', message: 'Randomness is handed in.' },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'Time is handed in.' },
      ],
    },
  },
);
