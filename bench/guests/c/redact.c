#include "redact.h"

#include <stdbool.h>

static const char mark[] = "[email]";
static const char head[] = "{\"result\":{\"modified\":true,\"payload\":";
static const char unmodified[] = "{\"result\":{\"modified\":false}}";

static bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_domain(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; }
static bool is_local(char c) { return is_domain(c) || c == '_' || c == '+' || c == '%'; }
static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static char *append(char *out, const char *from, size_t length) {
	__builtin_memcpy(out, from, length); // memory.copy
	return out + length;
}

static bool equal(const char *a, const char *b, size_t length) {
	for (size_t i = 0; i < length; i++) {
		if (a[i] != b[i]) {
			return false;
		}
	}
	return true;
}

// string_end returns where the string that begins at p has its last quote.
static const char *string_end(const char *p) {
	for (p++; *p != '"'; p++) {
		if (*p == '\\') {
			p++;
		}
	}
	return p;
}

// value_end returns the end of the array or object at p.
static const char *value_end(const char *p, const char *end) {
	int depth = 0;
	for (; p < end; p++) {
		switch (*p) {
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			if (--depth == 0) {
				return p + 1;
			}
			break;
		case '"':
			p = string_end(p);
		}
	}
	return end;
}

// payload finds the member "payload" of the outermost object.
static const char *payload(const char *p, const char *end) {
	static const char name[] = "\"payload\"";
	int depth = 0;
	for (; p < end; p++) {
		switch (*p) {
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			depth--;
			break;
		case '"': {
			const char *from = p;
			p = string_end(p);
			if (depth == 1 && p[1] == ':' && p + 1 - from == sizeof name - 1 && equal(from, name, sizeof name - 1)) {
				return p + 2;
			}
		}
		}
	}
	return end;
}

static const char *domain_end(const char *p, const char *end) {
	const char *from = p;
	while (p < end && is_domain(*p)) {
		p++;
	}
	while (p > from && !is_letter(p[-1])) {
		p--;
	}
	const char *dot = p;
	while (dot > from && is_letter(dot[-1])) {
		dot--;
	}
	return p - dot < 2 || dot - from < 2 || dot[-1] != '.' ? NULL : p;
}

// scan looks for addresses in the string [p, end) and writes what stands before
// and between them, from *done on.
static char *scan(char *out, const char **done, const char *p, const char *end) {
	const char *floor = p; // what stands before it is no part of an address
	while (p < end) {
		if (*p == '\\') {
			p += p[1] == 'u' ? 6 : 2;
			floor = p;
			continue;
		}
		if (*p == '@') {
			const char *from = p, *to = domain_end(p + 1, end);
			while (from > floor && is_local(from[-1])) {
				from--;
			}
			if (from < p && to != NULL) {
				out = append(append(out, *done, from - *done), mark, sizeof mark - 1);
				*done = floor = p = to;
				continue;
			}
		}
		p++;
	}
	return out;
}

// An address has six bytes or more and the mark seven.
size_t answer_room(size_t length) { return length + length / 6 + sizeof head + 2; }

size_t answer(const char *frame, size_t length, char *out) {
	const char *doc = payload(frame, frame + length);
	const char *end = value_end(doc, frame + length), *done = doc;
	char *to = append(out, head, sizeof head - 1);
	for (const char *p = doc; p < end; p++) {
		if (*p != '"') {
			continue;
		}
		const char *from = p + 1;
		p = string_end(p);
		const char *next = p + 1;
		while (next < end && is_space(*next)) {
			next++;
		}
		if (next == end || *next != ':') {
			to = scan(to, &done, from, p);
		}
	}
	if (done == doc) {
		return append(out, unmodified, sizeof unmodified - 1) - out;
	}
	to = append(to, done, end - done);
	return append(to, "}}", 2) - out;
}

extern char __heap_base;

char *space(size_t bytes) {
	const size_t page = 64 << 10;
	size_t want = ((size_t)&__heap_base + bytes + page - 1) / page, have = __builtin_wasm_memory_size(0);
	if (want > have && __builtin_wasm_memory_grow(0, want - have) == (size_t)-1) {
		__builtin_trap();
	}
	return &__heap_base;
}
