/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/record.h"

#include "abi/urn_abi.h"

#include <string.h>

/* The greatest number of an atomic that is believed: no queue pair gets so far. */
#define URN_SV_NUMBERS (UINT64_MAX >> 2)

/* A copy of a log. */
struct urn_sv_log {
	struct urn_abi_atomic entry[URN_ABI_MAX_RD_ATOMIC];
	uint32_t mask; /* entries - 1 */
	uint64_t last; /* number of the newest atomic that was accepted; 0: none was */
	uint64_t top;  /* number of the newest atomic that was begun; 0: none was */
};

static struct urn_abi_atomic
urn_sv_entry(const struct urn_abi_atomic *from)
{
	/* Acquire: the fields were stored before the state that tells of them. */
	uint32_t state = atomic_load_explicit(&from->state, memory_order_acquire);

	return (struct urn_abi_atomic){.addr = from->addr,
				       .old = from->old,
				       .new = from->new,
				       .number = from->number,
				       .psn = from->psn,
				       .state = state};
}

/* Copy a log. returns: false: no dataplane writes such entries */
static bool
urn_sv_log_copy(const struct urn_abi_atomic *from, uint32_t entries, struct urn_sv_log *log)
{
	log->mask = entries - 1;
	log->last = log->top = 0;
	for (uint32_t i = 0; i < entries; i++) {
		struct urn_abi_atomic a = urn_sv_entry(&from[i]);

		if (a.state > URN_ATOMIC_DONE || a.number > URN_SV_NUMBERS ||
		    (a.number == 0 && a.state != URN_ATOMIC_NONE) ||
		    (a.number != 0 && (a.number & log->mask) != i))
			return false;
		if (a.number > log->last)
			log->last = a.number;
		if (a.state != URN_ATOMIC_NONE && a.number > log->top)
			log->top = a.number;
		memcpy(&log->entry[i], &a, sizeof(a));
	}
	return true;
}

enum urn_sv_fate
urn_sv_fate_of(const struct urn_abi_atomic *a, uint64_t now, bool twin)
{
	/* The word keeps its value: with or without the store, the result is right. */
	if (a->new == a->old)
		return URN_SV_CARRIED_OUT;
	if (now == a->old)
		return URN_SV_NOT_CARRIED_OUT;
	return now == a->new && !twin ? URN_SV_CARRIED_OUT : URN_SV_NOBODY_KNOWS;
}

static enum urn_sv_fate
urn_sv_fate_in(const struct urn_sv_log *log, uint64_t number, urn_sv_decide_fn *decide, void *arg)
{
	const struct urn_abi_atomic *a = &log->entry[number & log->mask];

	if (a->number != number || a->state == URN_ATOMIC_NONE)
		return URN_SV_NOT_CARRIED_OUT;
	return a->state == URN_ATOMIC_DONE ? URN_SV_CARRIED_OUT : decide(arg, a);
}

/*
 * Atomics of a queue pair are carried out in order, and an entry is used again when the peer has
 * the result of the one before: so all before the oldest entry were carried out. A gap in
 * front of one that was carried out has no place in a REPORT: it counts as unsure.
 */
static void
urn_sv_record_take(const struct urn_sv_log *log, urn_sv_decide_fn *decide, void *arg,
		   struct urn_sess_record *r)
{
	uint64_t base = r->count, first = log->last > log->mask ? log->last - log->mask : 1;
	enum urn_sv_fate fate;

	r->count = base + first - 1;
	for (uint64_t n = first; n <= log->top; n++) {
		const struct urn_abi_atomic *a = &log->entry[n & log->mask];

		fate = urn_sv_fate_in(log, n, decide, arg);
		if (fate != URN_SV_CARRIED_OUT) {
			r->unsure = fate == URN_SV_NOBODY_KNOWS || n != log->top;
			return;
		}
		r->count = base + n;
		r->old[r->count % URN_SESS_ATOMICS] = a->old;
	}
}

bool
urn_sv_record_read(const struct urn_abi_atomic *from, uint32_t entries, urn_sv_decide_fn *decide,
		   void *arg, struct urn_sess_record *r)
{
	struct urn_sv_log log;

	r->log = r->unsure = false;
	if (from == NULL || !urn_sv_log_copy(from, entries, &log))
		return false;
	/* Results that the log has no room for may be missing. */
	if (entries < URN_SESS_ATOMICS && log.last > entries)
		return false;
	r->log = true;
	urn_sv_record_take(&log, decide, arg, r);
	return true;
}

bool
urn_sv_record_twin(const struct urn_abi_atomic *log, uint32_t entries,
		   const struct urn_abi_atomic *a)
{
	for (uint32_t i = 0; i < entries; i++) {
		struct urn_abi_atomic other = urn_sv_entry(&log[i]);
		bool changed = other.old != other.new, same = a->new == other.new;

		if (other.state != URN_ATOMIC_NONE && other.addr == a->addr && same && changed)
			return true;
	}
	return false;
}
