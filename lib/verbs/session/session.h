/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider of sessions, for the table of providers. */
#ifndef URN_VERBS_SESSION_SESSION_H
#define URN_VERBS_SESSION_SESSION_H

#include "verbs/provider/provider.h"

/* The provider's table. */
extern const struct urn_verbs_ops urn_session_ops;
/* True when URNIC_SESSION names adapters: the program is to see the virtual device alone (FO-1). */
bool urn_session_wanted(void);
/* Keep the locks of virtual devices usable in children of fork() from now on. */
void urn_session_forks(void);

#endif
