// The functions that Extism's PDKs call, by hand: they too move input and output
// eight bytes a call.
#include "redact.h"

#include <stdint.h>

#define IMPORT(name) __attribute__((import_module("extism:host/env"), import_name(name)))

IMPORT("input_length") uint64_t input_length(void);
IMPORT("input_load_u8") uint32_t input_load_u8(uint64_t at);
IMPORT("input_load_u64") uint64_t input_load_u64(uint64_t at);
IMPORT("alloc") uint64_t alloc(uint64_t length);
IMPORT("store_u8") void store_u8(uint64_t at, uint32_t byte);
IMPORT("store_u64") void store_u64(uint64_t at, uint64_t word);
IMPORT("output_set") void output_set(uint64_t at, uint64_t length);

__attribute__((export_name("invoke"))) int invoke(void) {
	size_t length = input_length(), i = 0;
	char *frame = space(length + answer_room(length)), *out = frame + length;
	for (; i + 8 <= length; i += 8) {
		uint64_t word = input_load_u64(i);
		__builtin_memcpy(frame + i, &word, 8);
	}
	for (; i < length; i++) {
		frame[i] = input_load_u8(i);
	}

	length = answer(frame, length, out);
	uint64_t at = alloc(length);
	for (i = 0; i + 8 <= length; i += 8) {
		uint64_t word;
		__builtin_memcpy(&word, out + i, 8);
		store_u64(at + i, word);
	}
	for (; i < length; i++) {
		store_u8(at + i, (uint8_t)out[i]);
	}
	output_set(at, length);
	return 0;
}
