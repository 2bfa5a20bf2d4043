/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of faults on demand (doc/reference/faults.md): the parser, which the library and
 * urnic-run share. The parser has no side effects.
 *
 *   FAULT  = SITE [@OBJECT] [:WHEN] =WHAT  |  kill-peer [:WHEN]
 *   OBJECT = qp, cq or srq, and a number from 1 or *
 *   WHEN   = N | N+ | every N | P% | TIME
 *
 * Faults of a list have semicolons between them.
 */
#ifndef URN_VERBS_FAULT_PARSE_H
#define URN_VERBS_FAULT_PARSE_H

#include <stdint.h>

/* Variables that carry the faults from urnic-run to the library. */
#define URN_FAULT_ENV "URNIC_FAULT"
#define URN_FAULT_SEED_ENV "URNIC_FAULT_SEED"

/* Kinds of queues, bits. */
enum urn_fault_queue {
	URN_FAULT_QP = 1 << 0,
	URN_FAULT_CQ = 1 << 1,
	URN_FAULT_SRQ = 1 << 2,
};

/*
 * All places where a fault can be.
 *
 * X(SITE, word, queues): queues: kinds that the place may be narrowed to
 */
/* clang-format off */
#define URN_FAULT_SITES(X) \
	X(OPEN_DEVICE,          "open_device",          0) \
	X(QUERY_DEVICE,         "query_device",         0) \
	X(QUERY_PORT,           "query_port",           0) \
	X(QUERY_GID,            "query_gid",            0) \
	X(ALLOC_PD,             "alloc_pd",             0) \
	X(DEALLOC_PD,           "dealloc_pd",           0) \
	X(REG_MR,               "reg_mr",               0) \
	X(REREG_MR,             "rereg_mr",             0) \
	X(DEREG_MR,             "dereg_mr",             0) \
	X(ALLOC_MW,             "alloc_mw",             0) \
	X(DEALLOC_MW,           "dealloc_mw",           0) \
	X(BIND_MW,              "bind_mw",              URN_FAULT_QP) \
	X(CREATE_AH,            "create_ah",            0) \
	X(DESTROY_AH,           "destroy_ah",           0) \
	X(CREATE_COMP_CHANNEL,  "create_comp_channel",  0) \
	X(DESTROY_COMP_CHANNEL, "destroy_comp_channel", 0) \
	X(GET_CQ_EVENT,         "get_cq_event",         0) \
	X(GET_ASYNC_EVENT,      "get_async_event",      0) \
	X(CREATE_CQ,            "create_cq",            0) \
	X(RESIZE_CQ,            "resize_cq",            URN_FAULT_CQ) \
	X(REQ_NOTIFY_CQ,        "req_notify_cq",        URN_FAULT_CQ) \
	X(POLL_CQ,              "poll_cq",              URN_FAULT_CQ) \
	X(DESTROY_CQ,           "destroy_cq",           URN_FAULT_CQ) \
	X(CREATE_SRQ,           "create_srq",           0) \
	X(MODIFY_SRQ,           "modify_srq",           URN_FAULT_SRQ) \
	X(QUERY_SRQ,            "query_srq",            URN_FAULT_SRQ) \
	X(POST_SRQ_RECV,        "post_srq_recv",        URN_FAULT_SRQ) \
	X(DESTROY_SRQ,          "destroy_srq",          URN_FAULT_SRQ) \
	X(CREATE_QP,            "create_qp",            0) \
	X(MODIFY_QP,            "modify_qp",            URN_FAULT_QP) \
	X(QUERY_QP,             "query_qp",             URN_FAULT_QP) \
	X(POST_SEND,            "post_send",            URN_FAULT_QP) \
	X(POST_RECV,            "post_recv",            URN_FAULT_QP) \
	X(DESTROY_QP,           "destroy_qp",           URN_FAULT_QP) \
	/* those above are calls, which fail with an errno value */ \
	X(WC,                   "wc",                   URN_FAULT_QP | URN_FAULT_CQ) \
	X(WC_SEND,              "wc_send",              URN_FAULT_QP | URN_FAULT_CQ) \
	X(WC_RECV,              "wc_recv",              URN_FAULT_QP | URN_FAULT_CQ) \
	X(EVENT,                "event",                URN_FAULT_QP | URN_FAULT_CQ | URN_FAULT_SRQ) \
	X(KILL_PEER,            "kill-peer",            0)
/* clang-format on */

enum urn_fault_site {
#define X(site, ...) URN_FAULT_##site,
	URN_FAULT_SITES(X)
#undef X
		URN_FAULT_SITE_COUNT,
};

enum urn_fault_when {
	URN_FAULT_NTH,	   /* the nth, from 1 */
	URN_FAULT_FROM,	   /* the nth and all after that */
	URN_FAULT_EVERY,   /* each nth */
	URN_FAULT_PERCENT, /* each with a probability: n of 2^32 */
	URN_FAULT_AFTER,   /* n nanoseconds after the start; events and peers only */
};

/* The number of a queue that means each queue, counted by itself. */
#define URN_FAULT_EACH UINT32_MAX

struct urn_fault_spec {
	enum urn_fault_site site;
	uint32_t queue;	 /* enum urn_fault_queue; 0: wherever it is */
	uint32_t number; /* with queue: the nth one that the program made, from 1; URN_FAULT_EACH */
	enum urn_fault_when when;
	uint64_t n; /* number of `when` */
	int what;   /* errno value, enum ibv_wc_status or enum ibv_event_type */
};

enum {
	URN_FAULT_MAX = 32,    /* faults of a list, at most */
	URN_FAULT_TEXT = 160,  /* bytes of an error's sentence, with the 0 at its end */
	URN_FAULT_LIST = 4096, /* bytes of a list, at most */
};

struct urn_fault_error {
	uint32_t at; /* the character that is wrong, from 1 */
	char why[URN_FAULT_TEXT];
};

/*
 * Parse a list.
 *
 * text: faults with semicolons between them; empty ones are skipped
 * spec: room for URN_FAULT_MAX
 * n: set to the number of faults
 * returns: 0; EINVAL with *error filled in
 */
int urn_fault_parse(const char *text, struct urn_fault_spec *spec, uint32_t *n,
		    struct urn_fault_error *error);

/* Parse a seed: a number, decimal or with 0x in front. returns: 0 or EINVAL */
int urn_fault_seed(const char *text, uint64_t *seed);

/* The word of a place. */
const char *urn_fault_word(enum urn_fault_site site);

/* True when only the requester of an operation can get a completion with this status. */
int urn_fault_is_requesters(int status);

/* ---- names (names.c); len: bytes of the word. returns: true and *value; false: no such name */

int urn_fault_errno(const char *word, uint32_t len, int *value);
int urn_fault_status(const char *word, uint32_t len, int *value);
/* queue: set to the kind of queue that the event is about; 0: the device or the port */
int urn_fault_event(const char *word, uint32_t len, int *value, uint32_t *queue);
/* The name of an event that urn_fault_event() knows. */
const char *urn_fault_event_word(int event);

#endif
