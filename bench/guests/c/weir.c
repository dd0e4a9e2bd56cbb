// weir's module ABI (abi.md, Flavour 1), by hand.
#include "redact.h"

#define IMPORT(name) __attribute__((import_module("weir"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

IMPORT("input") void host_input(char *at);
IMPORT("output") void host_output(const char *at, size_t length);

EXPORT("weir_abi_v1") void marker(void) {}

EXPORT("weir_describe") int describe(void) {
	static const char page[] = "{\"interceptors\":[{\"name\":\"redact\",\"type\":\"mutation\","
	                           "\"hooks\":[{\"events\":[\"tools/call\"],\"phase\":\"request\"}]}]}";
	host_output(page, sizeof page - 1);
	return 0;
}

EXPORT("weir_invoke") int invoke(size_t length) {
	char *frame = space(length + answer_room(length)), *out = frame + length;
	host_input(frame);
	host_output(out, answer(frame, length, out));
	return 0;
}
