/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that another process shares with us, and that is to stand still though it lives. */
#ifndef URN_ATTACH_STILL_H
#define URN_ATTACH_STILL_H

#include <stddef.h>

/*
 * Replace shared memory by a copy that only this process has, at the same addresses. Threads may
 * read the memory meanwhile: they see the one or the other. Stores of other threads meanwhile may
 * be lost.
 *
 * at: start of the mapping, of `size` bytes, both multiples of a page
 * fd: the memfd that is mapped there from its start on
 * returns: 0; an errno value: the memory is as it was
 */
int urn_still(void *at, size_t size, int fd);

#endif
