/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int
urn_seal(int fd, char *why, size_t len)
{
	int rc = fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0 ? 0 : errno;
	int seals = fcntl(fd, F_GET_SEALS);

	/* The client may have sealed the memfd itself, in the same way. */
	if (seals >= 0 && (seals & F_SEAL_FUTURE_WRITE) && (seals & F_SEAL_SHRINK))
		return 0;
	if (rc == EPERM)
		snprintf(why, len, "has its seals sealed (F_SEAL_SEAL), and holes can be punched into it: "
				   "leave that seal to the dataplane");
	else
		snprintf(why, len, "can't be sealed against holes (F_SEAL_FUTURE_WRITE): %s",
			 strerror(rc ? rc : EPERM));
	return rc ? rc : EPERM;
}
