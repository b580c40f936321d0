// Public: the package's version. A test holds it equal to package.json's.

/** The version of the package, as in `engine.info.version`. */
export const version = '0.1.0';
