/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

static unsigned int free_before; /* free packets of the pool when the test began */

int
frames_setup(void **state)
{
	(void)state;
	free_before = frames_free();
	return 0;
}

int
frames_teardown(void **state)
{
	(void)state;
	assert_int_equal(frames_free(), free_before);
	return 0;
}
