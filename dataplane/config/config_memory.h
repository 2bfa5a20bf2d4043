/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that this process may have. */
#ifndef URN_CONFIG_MEMORY_H
#define URN_CONFIG_MEMORY_H

#include <stdint.h>

/*
 * The smallest memory limit of a control group and its parents, v2 (memory.max) and v1
 * (memory.limit_in_bytes).
 *
 * list: /proc/self/cgroup, or a file like it
 * root: folder where control groups are mounted, /sys/fs/cgroup
 * returns: bytes; UINT64_MAX: no limit, or none that can be read
 */
uint64_t urn_config_cgroup_memory(const char *list, const char *root);

/* returns: bytes, the machine's memory or less; UINT64_MAX: the system does not tell */
uint64_t urn_config_memory(void);

#endif
