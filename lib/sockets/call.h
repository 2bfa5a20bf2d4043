/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of every file that puts functions in the C library's place. */
#ifndef URN_SOCKETS_CALL_H
#define URN_SOCKETS_CALL_H

// NOLINTBEGIN(clang-diagnostic-reserved-macro-identifier): both names are the C library's
/* The C library's checked inline functions would define these names, too. */
#undef _FORTIFY_SOURCE
/* The macro would make fcntl() another name of fcntl64(). */
#undef _FILE_OFFSET_BITS
// NOLINTEND(clang-diagnostic-reserved-macro-identifier)

#include "sockets/twin.h"

/* A function that liburnic-sockets.so shows. */
#define URN_CALL __attribute__((visibility("default")))

#endif
