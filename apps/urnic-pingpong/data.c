/* SPDX-License-Identifier: BSD-3-Clause */
#include "pp.h"

#include <string.h>

/* Byte j of message 0: the bytes do not repeat with any packet size. */
static inline uint8_t
byte_of(uint32_t j)
{
	return (uint8_t)((j * 0x9e3779b1u >> 24) + 1);
}

void
pp_data_make(uint8_t *buf, uint32_t size, uint32_t n)
{
	uint8_t step = (uint8_t)(n * 3);

	for (uint32_t j = 0; j < size; j++)
		buf[j] = (uint8_t)(byte_of(j) + step);
}

bool
pp_data_is_fill(const uint8_t *buf, uint32_t size)
{
	for (uint32_t j = 0; j < size; j++) {
		if (buf[j] != PP_FILL && (buf[j] != 0 || j % PP_FILL_PAGE != 0))
			return false;
	}
	return true;
}

int
pp_data_compare(const uint8_t *got, const uint8_t *want, uint32_t size, uint32_t n,
		struct urn_err *err)
{
	uint32_t first = size, wrong = 0;

	if (memcmp(got, want, size) == 0)
		return 0;
	for (uint32_t j = size; j-- > 0;) {
		if (got[j] != want[j]) {
			first = j;
			wrong++;
		}
	}
	urn_err_set(err, "message %u did not come back as it was sent: %u of %u bytes differ, the first "
			 "at %u: 0x%02x instead of 0x%02x", n + 1, wrong, size, first, got[first],
		    want[first]);
	return -1;
}
