/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef URN_APPS_COMMON_VERBS_H
#define URN_APPS_COMMON_VERBS_H

#if __has_include(<urnic/verbs.h>)
#include <urnic/verbs.h>
#else
#include <infiniband/verbs.h>
#endif

#endif
