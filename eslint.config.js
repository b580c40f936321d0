// Build: ESLint over TypeScript and JavaScript. Layout is Prettier's work; these are the mistakes.
import js from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['build/', 'dist/', '**/node_modules/', 'tests/fixtures/'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-console': 'off',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  {
    files: ['web/src/**/*.ts'],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A promise that nobody awaits loses its error.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      // The package speaks through errors; its few warnings go through one place that disables this rule.
      'no-console': ['error', { allow: ['warn'] }],
    },
  },
  {
    files: ['scripts/**/*.mjs', 'tests/**/*.{js,mjs}', '*.js', 'web/examples/**/*.mjs'],
    languageOptions: { globals: { ...globals.node, ...globals['shared-node-browser'] } },
  },
  {
    files: ['tests/{js,webgpu,browser,bundlers}/**/*.js'],
    languageOptions: { globals: { ...globals.jest, ...globals.browser } },
  },
  {
    files: ['tests/bundlers/**', 'tests/bench/**', 'web/demo/**'],
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
  },
);
