/* SPDX-License-Identifier: BSD-3-Clause */
/* Reasons of failed completions, in more detail than their status: numbers, names and texts. */
#ifndef URN_ABI_VENDOR_ERR_H
#define URN_ABI_VENDOR_ERR_H

#include <stdint.h>

/*
 * X(NAME, number, name, text). Numbers travel between processes that may be built apart: a number
 * keeps its meaning, and new ones come last.
 */
/* clang-format off */
#define URN_VENDOR_ERR_LIST(X) \
	X(NONE,        0, "none",       "no further reason") \
	X(BAD_LKEY,    1, "bad-lkey",   "no region has that key, or it belongs to another protection domain") \
	X(RANGE,       2, "range",      "the addresses lie outside their region") \
	X(ACCESS,      3, "access",     "the region does not allow the access") \
	X(BAD_WQE,     4, "bad-wqe",    "the request makes no sense") \
	X(RECV_SHORT,  5, "recv-short", "the message is longer than its receive") \
	X(TIMEOUT,     6, "timeout",    "no acknowledgement came in time") \
	X(SEQ,         7, "sequence",   "sequence errors without progress") \
	X(RNR,         8, "rnr",        "the receiver was not ready for too long") \
	X(NAK,         9, "nak",        "the peer refused") \
	X(RESPONSE,   10, "response",   "a response does not fit its request") \
	X(MEMORY,     11, "memory",     "memory could not be read or written") \
	X(AH,         12, "ah",         "there is no such address handle") \
	X(STATE,      13, "state",      "the queue pair was in the wrong state") \
	X(WINDOW,     14, "window",     "the memory window may not be bound or invalidated in this way") \
	X(GONE,       15, "gone",       "the dataplane died first") /* made up by the library */ \
	X(FAULT,      16, "fault",      "a fault on demand") /* made up by the library */ \
	X(UNKNOWN,    17, "unknown",    "nobody knows if the atomic was carried out") /* ... by sessions */
/* clang-format on */

enum urn_abi_vendor_err {
#define X(NAME, number, name, text) URN_VE_##NAME = (number),
	URN_VENDOR_ERR_LIST(X)
#undef X
};

/* The name of a reason, "timeout"; "?" for a number that this release does not know. */
static inline const char *
urn_abi_vendor_err_name(uint32_t ve)
{
	switch (ve) {
#define X(NAME, number, name, text) \
	case number:                \
		return name;
		URN_VENDOR_ERR_LIST(X)
#undef X
	}
	return "?";
}

/* The clause for people; "" for a number that this release does not know. */
static inline const char *
urn_abi_vendor_err_text(uint32_t ve)
{
	switch (ve) {
#define X(NAME, number, name, text) \
	case number:                \
		return text;
		URN_VENDOR_ERR_LIST(X)
#undef X
	}
	return "";
}

#endif
