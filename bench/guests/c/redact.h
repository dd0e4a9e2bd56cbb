// The job that all guests of the benchmark do; ../go/redact says what it is.
#include <stddef.h>

// answer reads the frame of a call (abi.md), which the host has checked to be
// JSON, and writes the frame of the answer to out, where there must be room for
// answer_room(length) bytes. It returns the length of the answer.
size_t answer(const char *frame, size_t length, char *out);
size_t answer_room(size_t length);

// space returns room for so many bytes above the program's own data. It is the
// same for every call.
char *space(size_t bytes);
