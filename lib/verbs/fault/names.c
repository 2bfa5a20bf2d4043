/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of errno values, statuses and events in the text of faults. */
#include "verbs/fault/parse.h"

#include <urnic/verbs.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct name {
	const char *word;
	int value;
	uint32_t queue; /* for events: enum urn_fault_queue */
};

/* clang-format off */
static const struct name errnos[] = {
#define E(name) {#name, name, 0}
	E(EPERM), E(ENOENT), E(EINTR), E(EIO), E(ENXIO), E(EAGAIN), E(ENOMEM), E(EACCES), E(EFAULT), E(EBUSY), E(EEXIST),
	E(ENODEV), E(EINVAL), E(ENFILE), E(EMFILE), E(ENOSPC), E(EPIPE), E(ERANGE), E(ENOSYS), E(ENODATA), E(ETIME),
	E(EPROTO), E(EOVERFLOW), E(EMSGSIZE), E(EOPNOTSUPP), E(EADDRINUSE), E(ENETDOWN), E(ENETUNREACH), E(ECONNRESET),
	E(ENOBUFS), E(ETIMEDOUT), E(ECONNREFUSED), E(EHOSTUNREACH), E(ESTALE), E(EDQUOT), E(ECANCELED),
#undef E
};

static const struct name statuses[] = {
#define S(name) {#name, IBV_WC_##name, 0}
	S(LOC_LEN_ERR), S(LOC_QP_OP_ERR), S(LOC_EEC_OP_ERR), S(LOC_PROT_ERR), S(WR_FLUSH_ERR), S(MW_BIND_ERR), S(BAD_RESP_ERR),
	S(LOC_ACCESS_ERR), S(REM_INV_REQ_ERR), S(REM_ACCESS_ERR), S(REM_OP_ERR), S(RETRY_EXC_ERR), S(RNR_RETRY_EXC_ERR),
	S(LOC_RDD_VIOL_ERR), S(REM_INV_RD_REQ_ERR), S(REM_ABORT_ERR), S(INV_EECN_ERR), S(INV_EEC_STATE_ERR), S(FATAL_ERR),
	S(RESP_TIMEOUT_ERR), S(GENERAL_ERR), S(TM_ERR), S(TM_RNDV_INCOMPLETE),
#undef S
};

static const struct name events[] = {
#define V(name, queue) {#name, IBV_EVENT_##name, queue}
	V(CQ_ERR, URN_FAULT_CQ), V(QP_FATAL, URN_FAULT_QP), V(QP_REQ_ERR, URN_FAULT_QP), V(QP_ACCESS_ERR, URN_FAULT_QP),
	V(COMM_EST, URN_FAULT_QP), V(SQ_DRAINED, URN_FAULT_QP), V(QP_LAST_WQE_REACHED, URN_FAULT_QP),
	V(SRQ_ERR, URN_FAULT_SRQ), V(SRQ_LIMIT_REACHED, URN_FAULT_SRQ), V(DEVICE_FATAL, 0), V(PORT_ACTIVE, 0),
	V(PORT_ERR, 0), V(LID_CHANGE, 0), V(PKEY_CHANGE, 0), V(SM_CHANGE, 0), V(CLIENT_REREGISTER, 0), V(GID_CHANGE, 0),
#undef V
};
/* clang-format on */

/* True when a word is a name; either may lack `prefix`, and the word may lack `suffix`. */
static bool
matches(const char *word, uint32_t len, const char *name, const char *prefix, const char *suffix)
{
	size_t n = strlen(name), p = strlen(prefix), s = strlen(suffix);

	if (len > p && memcmp(word, prefix, p) == 0) {
		word += p;
		len -= (uint32_t)p;
	}
	if (len == n && memcmp(word, name, n) == 0)
		return true;
	return s != 0 && n > s && len == n - s && memcmp(name + n - s, suffix, s) == 0 &&
	       memcmp(word, name, len) == 0;
}

static const struct name *
find(const struct name *table, size_t n, const char *word, uint32_t len, const char *prefix,
     const char *suffix)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (matches(word, len, table[i].word, prefix, suffix))
			return &table[i];
	return NULL;
}

#define FIND(table, ...) find(table, sizeof(table) / sizeof(table[0]), __VA_ARGS__)

int
urn_fault_errno(const char *word, uint32_t len, int *value)
{
	const struct name *n = FIND(errnos, word, len, "", "");

	if (n != NULL)
		*value = n->value;
	return n != NULL;
}

int
urn_fault_status(const char *word, uint32_t len, int *value)
{
	const struct name *n = FIND(statuses, word, len, "IBV_WC_", "_ERR");

	if (n != NULL)
		*value = n->value;
	return n != NULL;
}

int
urn_fault_event(const char *word, uint32_t len, int *value, uint32_t *queue)
{
	const struct name *n = FIND(events, word, len, "IBV_EVENT_", "");

	if (n != NULL) {
		*value = n->value;
		*queue = n->queue;
	}
	return n != NULL;
}

const char *
urn_fault_event_word(int event)
{
	size_t i;

	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (events[i].value == event)
			return events[i].word;
	return "?";
}

int
urn_fault_is_requesters(int status)
{
	switch (status) {
	case IBV_WC_MW_BIND_ERR:
	case IBV_WC_BAD_RESP_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return 1;
	default:
		return 0;
	}
}
