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

export default {
  // Generous: a build of a bundle or a browser's start on two busy cores. A test that hangs still fails.
  testTimeout: 120_000,
  projects: [
    project('js'),
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
