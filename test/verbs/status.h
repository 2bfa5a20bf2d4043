/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every completion status that applies, each reached in test_status_local.c or
 * test_status_remote.c by its cause:
 *
 *   SUCCESS            every other test
 *   LOC_LEN_ERR        receive too short; send of more than 2^31 bytes; atomic not of 8 bytes
 *                      (datagrams: test_ud.c)
 *   LOC_QP_OP_ERR      more elements than the queue has, more inline data, unknown opcode, READ
 *                      without max_rd_atomic, misaligned atomic, invalidating an unbound window
 *   LOC_PROT_ERR       unknown key, key of another PD, key of a region that is gone, outside
 *                      the region, READ into memory without local write, memory that fails
 *   WR_FLUSH_ERR       both queues in order; receives posted after the error
 *   MW_BIND_ERR        region that allows no windows, outside it (more: test_mw.c)
 *   LOC_ACCESS_ERR     SEND with invalidate of a window that is not bound
 *   REM_INV_REQ_ERR    receive too short, operation the QP does not allow, too many READs
 *   REM_ACCESS_ERR     unknown key, wrong right, outside the region, other PD
 *   REM_OP_ERR         memory of the peer fails; its receive has a bad key
 *   RETRY_EXC_ERR      QP gone or in RESET, engine not polled, address unreachable
 *   RNR_RETRY_EXC_ERR  no receive
 *   BAD_RESP_ERR       needs a peer that lies: test/packet
 *   the others         (LOC_EEC_OP_ERR, REM_ABORT_ERR, RD errors, FATAL_ERR ...) belong to
 *                      services that urnic does not have
 */
#ifndef URN_TEST_STATUS_H
#define URN_TEST_STATUS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

/* A request of end 0 fails, and the next one is flushed behind it. */
void fails(struct rig *r, struct ibv_send_wr *wr, enum ibv_wc_status status, uint32_t vendor_err);

/* Part of the buffer of end e, from byte `off` on. */
static inline struct ibv_sge
sge_of(struct rig *r, int e, size_t off, uint32_t len)
{
	return (struct ibv_sge){(uintptr_t)(r->end[e].buf + off), len, r->end[e].mr->lkey};
}

#endif
