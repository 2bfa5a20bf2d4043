/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers for names of libibverbs.so.1 that have nothing behind them (names.txt). Programs link
 * provider libraries such as libmlx5.so.1, which need all names of rdma-core's private interface to
 * be there. These libraries call the functions only for devices of their own, of which there are
 * none.
 */
#include "dropin/ibverbs/dropin.h"

#include <errno.h>
#include <stddef.h>

int
urn_dropin_error(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

int
urn_dropin_minus(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

void *
urn_dropin_null(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

void
urn_dropin_none(void)
{
}

uint64_t
urn_dropin_zero(void)
{
	return 0;
}
