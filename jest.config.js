// Build: Jest runs the package's tests: in Node, in browsers, and from bundles. Native ES modules, nothing transformed;
// scripts/test.mjs sets the --experimental-vm-modules that they need.

const common = {
  rootDir: import.meta.dirname ?? process.cwd(),
  testEnvironment: 'node',
  transform: {},
};
const project = (name) => ({
  ...common,
  displayName: name,
  testMatch: [`<rootDir>/tests/${name}/**/*.test.js`],
});

// What no runtime can change: data, plans, texts, the bytes of the modules. One Node runs these.
const once = [
  ...['bench-models', 'examples-data', 'examples-learning', 'gpu-cost', 'gpu-forms', 'gpu-nudge'],
  ...['gpu-plan', 'kernel-code', 'scripts'],
].map((name) => `<rootDir>/tests/js/${name}.test.js`);

export default {
  // Generous: a build of a bundle or a browser's start on two busy cores. A test that hangs still fails.
  testTimeout: 120_000,
  projects: [
    { ...project('js'), testPathIgnorePatterns: once },
    { ...project('js'), displayName: 'js-once', testMatch: once },
    project('browser'),
    project('bundlers'),
    {
      ...project('webgpu'),
      setupFiles: ['<rootDir>/tests/webgpu/support/setup.js'],
      // With them the attention and layer tests of 'js', over the GPU.
      testMatch: [
        '<rootDir>/tests/webgpu/**/*.test.js',
        '<rootDir>/tests/js/{conformance,faults-a-*,fixtures-attention,torch,keras}.test.js',
      ],
    },
  ],
};
