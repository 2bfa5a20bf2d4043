/* SPDX-License-Identifier: BSD-3-Clause */
/* Poison memory where the address sanitizer is built in; nothing elsewhere. */
#ifndef URN_TEST_ASAN_H
#define URN_TEST_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define TEST_WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_WITH_ASAN 1
#endif
#endif

#ifdef TEST_WITH_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#endif
