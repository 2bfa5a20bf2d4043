/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of test programs that know nothing of urnic: the program ends at the first difference. */
#ifndef TEST_E2E_CHECK_H
#define TEST_E2E_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* End the program unless a condition holds. */
#define CHECK(cond)                                                                           \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			fprintf(stderr, "%s:%d: not %s (errno %d: %s)\n", __FILE__, __LINE__, \
				#cond, errno, strerror(errno));                               \
			exit(1);                                                              \
		}                                                                             \
	} while (0)
/* End the program unless two numbers are equal. */
#define EQUAL(got, want)                                                                          \
	do {                                                                                      \
		long long got_ = (long long)(got), want_ = (long long)(want);                     \
		if (got_ != want_) {                                                              \
			fprintf(stderr, "%s:%d: %s is %lld, not %s (%lld)\n", __FILE__, __LINE__, \
				#got, got_, #want, want_);                                        \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#endif
