# Build: takes a bundlers' trap out of Emscripten's glue (-DGLUE=file). The glue could start workers itself; here it never does
# (PTHREAD_POOL_SIZE_STRICT, see module.cmake), but bundlers know the form new Worker(new URL("…", import.meta.url)) and build
# a second copy of the glue for it, 20 to 40 KB, and webpack warns of chunks that contain each other.

file(READ ${GLUE} text)
string(REGEX REPLACE "new Worker\\(new URL\\(\"[^\"]*\", *import\\.meta\\.url\\)" "new Worker(_scriptName" text "${text}")
file(WRITE ${GLUE} "${text}")
