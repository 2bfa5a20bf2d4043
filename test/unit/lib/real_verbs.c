/* SPDX-License-Identifier: BSD-3-Clause */
/* The other half of test_names.c: calls the real libibverbs. */
#include <infiniband/verbs.h>

const char *real_node_type_str(void);
void *real_function(void);

const char *
real_node_type_str(void)
{
	return ibv_node_type_str(IBV_NODE_RNIC);
}

void *
real_function(void)
{
	return (void *)(uintptr_t)ibv_node_type_str;
}
