/* SPDX-License-Identifier: BSD-3-Clause */
/* A child with memory of LEN bytes that is registered, for tests of operations on it. */
#ifndef TEST_FOREIGN_BENCH_H
#define TEST_FOREIGN_BENCH_H

#include "foreign_child.h"

#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 64, LEN = PAGES * PAGE, RW = PROT_READ | PROT_WRITE };

static inline int
foreign_setup(void **state)
{
	struct ft *f = malloc(sizeof(*f));

	ft_open(f, LEN);
	assert_int_equal(child_do(&f->child, CHILD_MAP, CHILD_AT, LEN, RW), 0);
	ft_reg(f, RIGHTS);
	*state = f;
	return 0;
}

static inline int
foreign_teardown(void **state)
{
	ft_close(*state);
	free(*state);
	return 0;
}

#endif
