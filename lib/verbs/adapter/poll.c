/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading completions, and arming a completion queue.
 *
 * A completion is there when its phase is that of the reader's lap. The library
 * keeps its own read index and publishes that index, once a call for each queue whose
 * completions are read; then their requests' slots are free (polled.h).
 */
#include "verbs/adapter/beside.h"
#include "verbs/adapter/poll.h"
#include "verbs/adapter/polled_run.h"

#include "abi/clock.h"
#include "attach/pipe.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Looks at an empty queue until the reader yields its core. Programs poll without a pause, and on a
 * machine with fewer cores than pollers the peer or the dataplane may wait for this very core: until
 * the scheduler takes it away that is milliseconds. A reader begins with the most, some two
 * microseconds. When a yield took so long that another thread ran, the next comes after the fewest
 * looks, for the answer cannot come before the other has run; when it came back at once, after twice
 * as many.
 */
enum { URN_LOOKS_FEWEST = 4, URN_LOOKS_MOST = 255, URN_YIELD_RAN_NS = 1500 };

/* The service level that ConnectX adapters report of a datagram in IPv4. */
enum { URN_WC_SL_IPV4 = 2 };

/* Completion that a reader sees while a queue is being resized: a phase of no lap. */
static struct urn_abi_cqe urn_no_cqe = {.phase = URN_CQE_WHOLE};

void
urn_cq_map(struct urn_adapter_cq *cq, const struct urn_dev *dev, uint64_t off, uint32_t entries)
{
	cq->hdr = urn_dev_at(dev, off);
	cq->cqe = urn_dev_at(dev, off + URN_ABI_CQ_SLOTS);
	cq->entries = entries;
	cq->mask = entries - 1;
	cq->cons = atomic_load_explicit(&cq->hdr->cons, memory_order_acquire);
	if (cq->beside != NULL)
		cq->beside = urn_cq_beside(cq);
}

/* Flags that programs see. */
static inline unsigned int
urn_wc_flags(const struct urn_abi_cqe *cqe)
{
	return cqe->wc_flags & ~(unsigned int)URN_WCF_IPV4;
}

/*
 * Ethernet has no service levels. The field says of a datagram that its header is IPv4's, which
 * ConnectX adapters do, too: UCX drops datagrams of IPv4 otherwise.
 */
static inline uint8_t
urn_wc_sl(const struct urn_abi_cqe *cqe)
{
	return cqe->wc_flags & URN_WCF_IPV4 ? URN_WC_SL_IPV4 : 0;
}

static inline void
urn_wc_fill(struct ibv_wc *wc, const struct urn_abi_cqe *cqe)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = urn_wc_flags(cqe);
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = urn_wc_sl(cqe);
	wc->dlid_path_bits = 0;
}

struct urn_abi_cqe *
urn_cq_next(const struct urn_adapter_cq *cq)
{
	return urn_cq_at(cq, cq->cons);
}

void
urn_cq_blind(struct urn_adapter_cq *cq)
{
	cq->cqe = &urn_no_cqe;
	cq->mask = 0;
}

/* Acquire: completions that the dataplane wrote before it died are there. */
static inline enum urn_cq_gone
urn_cq_gone(const struct urn_adapter_cq *cq)
{
	return (enum urn_cq_gone)atomic_load_explicit(&cq->gone, memory_order_acquire);
}

/*
 * Read up to n completions; the locks of the queue are held. run: notes whose slots are free; NULL:
 * the completions are made up, after the dataplane's end. returns: their number
 */
static inline int
urn_cq_read(struct urn_adapter_cq *cq, int n, struct ibv_wc *wc, struct urn_polled_run *run)
{
	const struct urn_abi_cqe *cqe;
	uint32_t cons = cq->cons;
	int got = 0;

	while (got < n && (cqe = urn_cq_at(cq, cons)) != NULL) {
		urn_beside_take(cq, cons);
		if (run != NULL) {
			if (run->queue != urn_polled_queue(cqe))
				urn_polled_turn(cq, cons, run, cqe);
			run->end = (uint16_t)(cqe->wqe + 1);
		}
		urn_wc_fill(&wc[got++], cqe);
		cons++;
	}
	cq->cons = cons;
	return got;
}

/*
 * Poll a queue that was found empty, and whose dataplane is gone; its lock is held, and is given
 * back. Like urn_poll_cq().
 */
static __attribute__((noinline)) int
urn_poll_gone(struct urn_adapter_cq *cq, int n, struct ibv_wc *wc)
{
	int got = 0;

	if (urn_cq_gone(cq) == URN_CQ_FORKED) {
		urn_cq_unlock(cq);
		errno = EIO;
		return -1;
	}
	while (got < n && urn_gone_fill(cq)) {
		urn_beside_lock(cq);
		got += urn_cq_read(cq, n - got, wc + got, NULL);
		urn_beside_unlock(cq);
	}
	urn_cq_unlock(cq);
	return got;
}

/* Count a look that found nothing; the queue's lock is held. returns: true when the reader yields
 * now */
static inline bool
urn_cq_look(struct urn_adapter_cq *cq)
{
	if (++cq->looks < atomic_load_explicit(&cq->patience, memory_order_relaxed))
		return false;
	cq->looks = 0;
	return true;
}

/* Let others have the core, and note whether one ran; the queue's lock is not held. */
static __attribute__((noinline)) void
urn_cq_yield(struct urn_adapter_cq *cq)
{
	unsigned int looks = 2u * atomic_load_explicit(&cq->patience, memory_order_relaxed);
	uint64_t before = urn_clock_ns();

	sched_yield();
	if (urn_clock_ns() - before > URN_YIELD_RAN_NS)
		looks = URN_LOOKS_FEWEST;
	else if (looks > URN_LOOKS_MOST)
		looks = URN_LOOKS_MOST;
	atomic_store_explicit(&cq->patience, (uint8_t)looks, memory_order_relaxed);
}

/* Poll a queue that has completions; its lock is held, and is given back. Like urn_poll_cq(). */
static __attribute__((noinline)) int
urn_poll_some(struct urn_adapter_cq *cq, int n, struct ibv_wc *wc)
{
	struct urn_polled_run run = {0};
	int got;

	urn_beside_lock(cq);
	got = urn_cq_read(cq, n, wc, &run);
	urn_cq_publish(cq);
	urn_beside_unlock(cq);
	urn_polled_end(&run);
	cq->looks = 0;
	__builtin_prefetch(&cq->cqe[cq->cons & cq->mask]);
	urn_cq_unlock(cq);
	return got;
}

/* Programs poll empty queues most of the time: so that way saves no registers. */
URN_FAST int
urn_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urn_adapter_cq *cq = urn_cq(ibcq);
	bool yields;

	urn_cq_lock(cq);
	if (urn_cq_at(cq, cq->cons) != NULL)
		return urn_poll_some(cq, n, wc);
	if (URN_UNLIKELY(urn_cq_gone(cq) != URN_CQ_THERE))
		return urn_poll_gone(cq, n, wc);
	yields = urn_cq_look(cq);
	urn_cq_unlock(cq);
	if (URN_UNLIKELY(yields))
		urn_cq_yield(cq);
	return 0;
}

/* ---- extended polling: ibv_start_poll() and so on */

/*
 * Show the completion at the read index. A program posts while it reads: so the request's slot and
 * the completion's are both free at once, and the program reads a copy.
 */
static inline void
urn_cq_show(struct urn_adapter_cq *cq, const struct urn_abi_cqe *cqe)
{
	struct urn_polled_run run = {.end = (uint16_t)(cqe->wqe + 1)};

	urn_beside_lock(cq);
	urn_beside_take(cq, cq->cons);
	memcpy(&cq->shown, cqe, sizeof(cq->shown));
	cq->cur = &cq->shown;
	cq->ex.wr_id = cqe->wr_id;
	cq->ex.status = cqe->status;
	urn_polled_turn(cq, cq->cons, &run, cqe);
	/* Release: the slot may be overwritten from now on. */
	atomic_store_explicit(&cq->hdr->cons, cq->cons + 1, memory_order_release);
	urn_beside_unlock(cq);
	urn_polled_end(&run);
}

static int
urn_start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct urn_adapter_cq *cq = (struct urn_adapter_cq *)ex;
	struct urn_abi_cqe *cqe;
	bool yields;

	if (attr != NULL && attr->comp_mask != 0)
		return EINVAL;
	urn_cq_lock(cq);
	cqe = urn_cq_at(cq, cq->cons);
	if (URN_UNLIKELY(cqe == NULL && urn_cq_gone(cq) != URN_CQ_THERE && urn_gone_fill(cq)))
		cqe = urn_cq_at(cq, cq->cons);
	if (cqe == NULL) {
		yields = urn_cq_look(cq);
		urn_cq_unlock(cq);
		if (URN_UNLIKELY(yields))
			urn_cq_yield(cq);
		return ENOENT;
	}
	cq->looks = 0;
	urn_cq_show(cq, cqe);
	return 0;
}

static int
urn_next_poll(struct ibv_cq_ex *ex)
{
	struct urn_adapter_cq *cq = (struct urn_adapter_cq *)ex;
	struct urn_abi_cqe *cqe = urn_cq_at(cq, cq->cons + 1);

	/* The completion shown stays readable until the next is shown, or the poll ends. */
	if (cqe == NULL)
		return ENOENT;
	cq->cons++;
	urn_cq_show(cq, cqe);
	return 0;
}

static void
urn_end_poll(struct ibv_cq_ex *ex)
{
	struct urn_adapter_cq *cq = (struct urn_adapter_cq *)ex;

	cq->cons++;
	cq->cur = NULL;
	urn_beside_lock(cq);
	urn_cq_publish(cq);
	urn_beside_unlock(cq);
	urn_cq_unlock(cq);
}

/* The completion that an extended poll shows. */
static inline const struct urn_abi_cqe *
urn_cq_shown(struct ibv_cq_ex *ex)
{
	return ((struct urn_adapter_cq *)ex)->cur;
}

static enum ibv_wc_opcode
urn_read_opcode(struct ibv_cq_ex *ex)
{
	return urn_cq_shown(ex)->opcode;
}

static uint32_t
urn_read_vendor_err(struct ibv_cq_ex *ex)
{
	return urn_cq_shown(ex)->vendor_err;
}

static uint32_t
urn_read_byte_len(struct ibv_cq_ex *ex)
{
	return urn_cq_shown(ex)->byte_len;
}

static __be32
urn_read_imm_data(struct ibv_cq_ex *ex)
{
	return urn_cq_shown(ex)->imm;
}

static uint32_t
urn_read_qp_num(struct ibv_cq_ex *ex)
{
	return urn_cq_shown(ex)->qp_num;
}

static uint32_t
urn_read_src_qp(struct ibv_cq_ex *ex)
{
	return urn_cq_shown(ex)->src_qp;
}

static unsigned int
urn_read_wc_flags(struct ibv_cq_ex *ex)
{
	return urn_wc_flags(urn_cq_shown(ex));
}

static uint8_t
urn_read_sl(struct ibv_cq_ex *ex)
{
	return urn_wc_sl(urn_cq_shown(ex));
}

/* Ethernet has no local identifiers or path bits. */
static uint32_t
urn_read_slid(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint8_t
urn_read_zero(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

/* ---- times: the moment in which the program found the completion, on CLOCK_MONOTONIC */

static int
urn_start_poll_timed(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int err = urn_start_poll(ex, attr);

	if (err == 0)
		((struct urn_adapter_cq *)ex)->shown_ns = urn_clock_ns();
	return err;
}

static int
urn_next_poll_timed(struct ibv_cq_ex *ex)
{
	int err = urn_next_poll(ex);

	if (err == 0)
		((struct urn_adapter_cq *)ex)->shown_ns = urn_clock_ns();
	return err;
}

static uint64_t
urn_read_ts(struct ibv_cq_ex *ex)
{
	return ((struct urn_adapter_cq *)ex)->shown_ns;
}

/* The same moment on the wall's clock. */
static uint64_t
urn_read_wallclock(struct ibv_cq_ex *ex)
{
	uint64_t ago = urn_clock_ns() - ((struct urn_adapter_cq *)ex)->shown_ns;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - ago;
}

void
urn_cq_init_poll(struct urn_adapter_cq *cq, uint64_t wc_flags)
{
	atomic_init(&cq->patience, URN_LOOKS_MOST);
	if (wc_flags & URN_WC_EXTRA) {
		cq->ex.read_completion_ts = urn_read_ts;
		cq->ex.read_completion_wallclock_ns = urn_read_wallclock;
	}
	cq->ex.start_poll = wc_flags & URN_WC_EXTRA ? urn_start_poll_timed : urn_start_poll;
	cq->ex.next_poll = wc_flags & URN_WC_EXTRA ? urn_next_poll_timed : urn_next_poll;
	cq->ex.end_poll = urn_end_poll;
	cq->ex.read_opcode = urn_read_opcode;
	cq->ex.read_vendor_err = urn_read_vendor_err;
	cq->ex.read_byte_len = urn_read_byte_len;
	cq->ex.read_imm_data = urn_read_imm_data;
	cq->ex.read_qp_num = urn_read_qp_num;
	cq->ex.read_src_qp = urn_read_src_qp;
	cq->ex.read_wc_flags = urn_read_wc_flags;
	cq->ex.read_slid = urn_read_slid;
	cq->ex.read_sl = urn_read_sl;
	cq->ex.read_dlid_path_bits = urn_read_zero;
}

/* ---- arming */

/*
 * Each completion from `armed_from` on that came since the queue was armed has an event. So a
 * program that took an event, and has read all completions before that index and none from it on,
 * was told of the one that waits there, or its event is on its way.
 */
void
urn_cq_tell(struct urn_adapter_cq *cq)
{
	/* The thread that takes events of such a queue may be another than the one that polls, and
	 * there is no lock. */
	if (cq->single)
		return;
	urn_cq_lock(cq);
	cq->told = cq->armed_next && cq->armed_from == cq->cons;
	urn_cq_unlock(cq);
}

/*
 * Note that the queue is armed. returns: true: exactly one completion waits, and the program was
 * told of it. A program that takes an event, arms, and polls once gets no second event, after which
 * the program would find nothing
 */
static bool
urn_cq_armed(struct urn_adapter_cq *cq, enum urn_abi_cq_arm arm)
{
	bool told = cq->told && cq->armed_from == cq->cons && urn_cq_at(cq, cq->cons) != NULL &&
		    urn_cq_at(cq, cq->cons + 1) == NULL;

	cq->told = false;
	cq->armed_next = arm == URN_CQ_ARM_NEXT;
	cq->armed_from = cq->cons + told;
	return told;
}

/*
 * The dataplane writes a completion, then reads whether the queue is armed; the library
 * arms, then looks for a completion. Both have a full fence between the two steps, so at
 * least one side sees the other; the side that swaps NONE in writes the event, so
 * there is exactly one.
 */
int
urn_cq_arm(struct urn_adapter_cq *cq, enum urn_abi_cq_arm arm)
{
	struct urn_abi_event ev = {.handle = cq->ibv.handle, .cookie = cq->ticket};
	uint32_t none = URN_CQ_ARM_NONE;
	int err;

	if (cq->ibv.channel == NULL)
		return 0;
	if (URN_UNLIKELY(urn_cq_gone(cq) != URN_CQ_THERE)) {
		/* Only completions that are there already are worth an event. */
		atomic_store(&cq->expects, urn_cq_at(cq, cq->cons) != NULL || urn_gone_fill(cq));
		return urn_cq_gone(cq) == URN_CQ_FORKED ? EIO : 0;
	}
	atomic_store_explicit(&cq->expects, true, memory_order_relaxed);
	/* Asking for the next solicited completion does not take back asking for any. */
	if (arm == URN_CQ_ARM_NEXT)
		atomic_store_explicit(&cq->hdr->arm, arm, memory_order_relaxed); /* the fence below */
	else
		atomic_compare_exchange_strong(&cq->hdr->arm, &none, arm);
	atomic_thread_fence(memory_order_seq_cst);
	/*
	 * Programs arm without polling again and expect an event for completions that are there
	 * already. The library does not know which of them were solicited: an event too many
	 * costs a poll, an event too few hangs a program.
	 */
	if (urn_cq_armed(cq, arm) || urn_cq_at(cq, cq->cons) == NULL)
		return 0;
	if (atomic_exchange(&cq->hdr->arm, URN_CQ_ARM_NONE) == URN_CQ_ARM_NONE)
		return 0;
	err = urn_channel_tell((struct urn_channel *)cq->ibv.channel, &ev);
	return err == EPIPE ? 0 : err; /* the dataplane just died, and the channel's reader notices anyhow */
}

int
urn_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	enum urn_abi_cq_arm arm = solicited_only ? URN_CQ_ARM_SOLICITED : URN_CQ_ARM_NEXT;
	struct urn_adapter_cq *cq = urn_cq(ibcq);
	int err = 0;

	urn_cq_lock(cq);
	if (URN_UNLIKELY(cq->resizing))
		cq->arm_later = arm > cq->arm_later ? (uint8_t)arm : cq->arm_later;
	else
		err = urn_cq_arm(cq, arm);
	urn_cq_unlock(cq);
	return err;
}
