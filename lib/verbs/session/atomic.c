/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics across a migration (FO-15). The end that carried them out reads its adapter's log, and
 * REPORT takes the results to the end that asked, which hands them to its program in place of its
 * own adapter.
 */
#include "verbs/adapter/adapter.h"
#include "verbs/session/atomic.h"
#include "verbs/session/log.h"
#include "verbs/session/record.h"
#include "verbs/session/sv.h"

#include "attach/remote.h"

#include <sys/uio.h>
#include <unistd.h>

/* Read a word of the program, which may have unmapped it. returns: false: it can't be read */
static bool
urn_sv_word(const uint8_t *at, uint64_t *word)
{
	struct iovec to = {word, sizeof(*word)}, from = {(void *)(uintptr_t)at, sizeof(*word)};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof(*word);
}

/* Write bytes to memory of the program, which may have unmapped it. returns: false: it can't be
 * written */
static bool
urn_sv_store(uint8_t *at, const void *bytes, uint32_t n)
{
	struct iovec from = {(void *)(uintptr_t)bytes, n}, to = {at, n};

	return n == 0 || process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)n;
}

/*
 * True when another queue pair of the device has written the value that an intended atomic meant to
 * write, to the same word: then the word's value proves nothing.
 */
static bool
urn_sv_has_twin(struct urn_sv_qp *q, const struct urn_abi_atomic *a)
{
	struct urn_sv_qp *other;

	LIST_FOREACH(other, &q->ctx->qps, link) {
		const struct urn_sv_path *p =
			other->mode == URN_SV_SESSION ? urn_sv_used(other) : &other->path[0];
		const struct urn_abi_atomic *log;
		uint32_t entries;

		if (other == q || p->real == NULL)
			continue;
		log = urn_adapter_atomics(p->real, &entries);
		if (log != NULL && urn_sv_record_twin(log, entries, a))
			return true;
	}
	return false;
}

static enum urn_sv_fate
urn_sv_decide_by_word(struct urn_sv_qp *q, const struct urn_abi_atomic *a)
{
	const uint8_t *at = urn_sv_regions_find(&q->pd->regions, a->addr, sizeof(uint64_t),
						IBV_ACCESS_REMOTE_ATOMIC);
	uint64_t now = a->old;

	if (a->new != a->old && (at == NULL || !urn_sv_word(at, &now)))
		return URN_SV_NOBODY_KNOWS;
	return urn_sv_fate_of(a, now, urn_sv_has_twin(q, a));
}

/* Decide the fate of an intended atomic by the word. arg: struct urn_sv_qp */
static enum urn_sv_fate
urn_sv_decide_intent(void *arg, const struct urn_abi_atomic *a)
{
	static const char *const names[] = {
		[URN_SV_CARRIED_OUT] = "carried out",
		[URN_SV_NOT_CARRIED_OUT] = "not carried out",
		[URN_SV_NOBODY_KNOWS] = "nobody knows",
	};
	enum urn_sv_fate fate = urn_sv_decide_by_word(arg, a);

	urn_sv_log(arg, URN_SV_E_ATOMICS,
		   "found an atomic of its peer that was about to be executed: %s\tintent "
		   "atomic=%llu %s",
		   names[fate], (unsigned long long)a->number, names[fate]);
	return fate;
}

void
urn_sv_record(struct urn_sv_qp *q, struct urn_sess_record *record)
{
	struct ibv_qp *real = urn_sv_used(q)->real;
	const struct urn_abi_atomic *log;
	uint32_t entries;

	*record = q->c.record;
	log = urn_adapter_atomics(real, &entries);
	if (!urn_sv_record_read(log, entries, urn_sv_decide_intent, q, record))
		q->unreadable++;
	/* A dataplane that is stopped may have an atomic in hand, and goes on with it later. */
	if (urn_remote_given_up(urn_ctx_dev(real->context)->channel))
		record->unsure = true;
	urn_sv_log(q, URN_SV_E_ATOMICS,
		   "read which atomics of its peer were executed here\trecord atomics=%llu%s%s",
		   (unsigned long long)record->count, record->log ? "" : " unreadable",
		   record->unsure ? " unsure" : "");
}

bool
urn_sv_result(const struct urn_sv_qp *q, const struct ibv_sge *sge, uint32_t n, uint64_t old)
{
	const uint8_t *from = (const uint8_t *)&old;
	uint32_t done = 0;

	for (uint32_t i = 0; i < n && done < sizeof(old); i++) {
		uint32_t left = (uint32_t)sizeof(old) - done;
		uint32_t bytes = sge[i].length < left ? sge[i].length : left;
		uint8_t *to = urn_sv_regions_local(&q->pd->regions, sge[i].lkey, sge[i].addr, bytes,
						   IBV_ACCESS_LOCAL_WRITE);

		if (to == NULL || !urn_sv_store(to, from + done, bytes))
			return false;
		done += bytes;
	}
	return done == sizeof(old);
}
