/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An mbuf without pool or EAL around bytes of the test's own, with nothing readable
 * behind them: for parsers, which must not read past a frame.
 */
#ifndef URN_TEST_MBUF_H
#define URN_TEST_MBUF_H

#include <rte_mbuf.h>

enum { TEST_MBUF_MAX = 16384 }; /* bytes of the longest frame */

/*
 * The frame's copy ends where an unreadable page begins; under the address
 * sanitizer the bytes before it are poisoned too. One mbuf at a time: the next
 * call reuses it. Private bytes are filled with 0xa5.
 */
struct rte_mbuf *test_mbuf_wrap(const uint8_t *frame, uint32_t len);

#endif
