/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests and replies: create a QP, register memory, and so on.
 * Fixed structs that travel by function call when the dataplane is embedded
 * and by socket message when it is a process. The dataplane's control part
 * validates every field; it is the one validator.
 */
#ifndef URN_ABI_CONTROL_H
#define URN_ABI_CONTROL_H

#include "abi/agree.h"
#include "abi/align.h"
#include "abi/am.h"
#include "abi/cm.h"
#include "abi/event.h"
#include "abi/explain.h"
#include "abi/msg.h"
#include "abi/urn_abi.h"

/*
 * All control operations, a row each, in the order of their numbers. A row and a handler
 * urn_ctl_WORD() are all that an operation needs: numbers, handlers, checks, quotas and names in
 * messages come from here (dataplane/control/ctl.c).
 *
 * X(OP, word, part, from, fds_in, fds_out, feature, quotas)
 *   part     field of struct urn_abi_req that the handler reads; handle: nothing beyond the handle
 *   from     ANY program, or only one in another process than the dataplane (REMOTE)
 *   fds_in   descriptors that a request of another process may bring, 0 or 1: urn_abi_req.fd
 *   fds_out  descriptors that its reply brings when the operation succeeds
 *   feature  bit of enum urn_abi_feature (abi/agree.h) that both ends must know; 0: every peer has
 *            the operation
 *   quotas   kinds of enum urn_quota of which the operation makes one or takes one back, and
 *            the object whose bytes count (BYTES); only the dataplane knows these words
 */
/* clang-format off */
#define URN_CTL_LIST(X) \
	X(HELLO,           hello,           hello,      ANY,    0, 0, 0, NO_QUOTA) \
	X(QUERY_PORT,      query_port,      handle,     ANY,    0, 0, 0, NO_QUOTA) /* -> port */ \
	X(QUERY_GID,       query_gid,       gid,        ANY,    0, 0, 0, NO_QUOTA) /* index -> gid */ \
	X(ALLOC_PD,        alloc_pd,        handle,     ANY,    0, 0, 0, MAKES(Q(PD))) /* -> handle */ \
	X(DEALLOC_PD,      dealloc_pd,      handle,     ANY,    0, 0, 0, ENDS(Q(PD))) \
	X(REG_MR,          reg_mr,          reg_mr,     ANY,    0, 0, 0, MAKES(Q(MR) | Q(PINNED)), BYTES(reg_mr)) /* -> mr */ \
	X(DEREG_MR,        dereg_mr,        handle,     ANY,    0, 0, 0, ENDS(Q(MR) | Q(PINNED)), BYTES(dereg_mr)) /* handle = lkey */ \
	X(ALLOC_MW,        alloc_mw,        alloc_mw,   ANY,    0, 0, 0, MAKES(Q(MR))) /* -> mr (rkey) */ \
	/* handle = rkey as first given; the index counts, binds change the rest */ \
	X(DEALLOC_MW,      dealloc_mw,      handle,     ANY,    0, 0, 0, ENDS(Q(MR))) \
	X(CREATE_CQ,       create_cq,       create_cq,  ANY,    0, 0, 0, MAKES(Q(CQ))) /* -> queue */ \
	X(RESIZE_CQ,       resize_cq,       resize_cq,  ANY,    0, 0, 0, NO_QUOTA) /* handle -> queue */ \
	X(DESTROY_CQ,      destroy_cq,      handle,     ANY,    0, 0, 0, ENDS(Q(CQ))) \
	X(CREATE_SRQ,      create_srq,      create_srq, ANY,    0, 0, 0, MAKES(Q(SRQ))) /* -> queue */ \
	X(MODIFY_SRQ,      modify_srq,      modify_srq, ANY,    0, 0, 0, NO_QUOTA) \
	X(QUERY_SRQ,       query_srq,       handle,     ANY,    0, 0, 0, NO_QUOTA) /* -> srq_attr */ \
	X(DESTROY_SRQ,     destroy_srq,     handle,     ANY,    0, 0, 0, ENDS(Q(SRQ))) \
	X(CREATE_QP,       create_qp,       create_qp,  ANY,    0, 0, 0, MAKES(Q(QP))) /* -> qp */ \
	X(MODIFY_QP,       modify_qp,       modify_qp,  ANY,    0, 0, 0, NO_QUOTA) /* handle = qpn */ \
	X(QUERY_QP,        query_qp,        handle,     ANY,    0, 0, 0, NO_QUOTA) /* handle = qpn -> qp_attr */ \
	X(DESTROY_QP,      destroy_qp,      handle,     ANY,    0, 0, 0, ENDS(Q(QP))) /* handle = qpn */ \
	X(CREATE_AH,       create_ah,       create_ah,  ANY,    0, 0, 0, MAKES(Q(AH))) /* -> handle */ \
	X(DESTROY_AH,      destroy_ah,      handle,     ANY,    0, 0, 0, ENDS(Q(AH))) \
	/* \
	 * fd: where async events are written (struct urn_abi_event). Another process names \
	 * no descriptor, and is given [both ends: to read from and to write to]. \
	 */ \
	X(ASYNC_FD,        async_fd,        async_fd,   ANY,    0, 2, 0, NO_QUOTA) \
	/* memory of a client in another process -> handle */ \
	X(SHARE,           share,           share,      REMOTE, 1, 0, URN_ABI_FEATURE_SHARE, MAKES(Q(SHARE) | Q(SHARED)), BYTES(share)) \
	X(UNSHARE,         unshare,         handle,     ANY,    0, 0, URN_ABI_FEATURE_SHARE, ENDS(Q(SHARE) | Q(SHARED)), BYTES(unshare)) \
	/* -> handle, [both ends, as of ASYNC_FD] */ \
	X(CREATE_CHANNEL,  create_channel,  handle,     REMOTE, 0, 2, 0, MAKES(Q(CHANNEL) | Q(FD))) \
	X(DESTROY_CHANNEL, destroy_channel, handle,     ANY,    0, 0, 0, ENDS(Q(CHANNEL) | Q(FD))) \
	X(CM_LISTEN,       cm_listen,       cm_listen,  ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) /* -> handle; cm/ counts ids */ \
	X(CM_CONNECT,      cm_connect,      cm_connect, ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) /* -> handle */ \
	/* -> handle; looks up the queue pair that serves a service's datagrams */ \
	X(CM_RESOLVE,      cm_resolve,      cm_connect, ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	X(CM_ACCEPT,       cm_accept,       cm_accept,  ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	X(CM_REJECT,       cm_reject,       cm_reject,  ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	X(CM_ESTABLISH,    cm_establish,    cm_data,    ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	X(CM_DISCONNECT,   cm_disconnect,   cm_data,    ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	X(CM_DESTROY,      cm_destroy,      handle,     ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	/* handle, 0: any -> cm_event, the oldest; EAGAIN: there is none */ \
	X(CM_EVENT,        cm_event,        handle,     ANY,    0, 0, URN_ABI_FEATURE_CM, NO_QUOTA) \
	/* handle = qpn -> handle: on failure 1 if the QP is in RTR now, else 0 */ \
	X(CONNECT_QP,      connect_qp,      connect_qp, ANY,    0, 0, URN_ABI_FEATURE_CONNECT_QP, NO_QUOTA) \
	X(MSG_OPEN,        msg_open,        msg_open,   ANY,    0, 0, URN_ABI_FEATURE_MSG, MAKES(Q(MSG))) /* -> msg */ \
	/* handle, name -> msg.qid. A name is bound to one register set of the adapter at a time */ \
	X(MSG_BIND,        msg_bind,        msg_bind,   ANY,    0, 0, URN_ABI_FEATURE_MSG, NO_QUOTA) \
	X(MSG_CLOSE,       msg_close,       handle,     ANY,    0, 0, URN_ABI_FEATURE_MSG, ENDS(Q(MSG))) \
	X(AM_OPEN,         am_open,         am_open,    ANY,    0, 0, URN_ABI_FEATURE_AM, MAKES(Q(MSG))) /* -> am */ \
	X(AM_CLOSE,        am_close,        handle,     ANY,    0, 0, URN_ABI_FEATURE_AM, ENDS(Q(MSG))) \
	/* handle, ranges in the endpoint's list -> am.key */ \
	X(AM_REG,          am_reg,          am_reg,     ANY,    0, 0, URN_ABI_FEATURE_AM, NO_QUOTA) \
	X(AM_DEREG,        am_dereg,        am_dereg,   ANY,    0, 0, URN_ABI_FEATURE_AM, NO_QUOTA) \
	/* handle = qpn of a UD queue pair, with a multicast GID. Attaching twice is attaching once */ \
	X(ATTACH_MCAST,    attach_mcast,    mcast,      ANY,    0, 0, URN_ABI_FEATURE_MCAST, NO_QUOTA) \
	X(DETACH_MCAST,    detach_mcast,    mcast,      ANY,    0, 0, URN_ABI_FEATURE_MCAST, NO_QUOTA) \
	/* handle = lkey: the region gets the memory, domain and rights of another one, which ends. EBUSY: windows are bound */ \
	X(REPLACE_MR,      replace_mr,      replace_mr, ANY,    0, 0, URN_ABI_FEATURE_REPLACE_MR, ENDS(Q(MR) | Q(PINNED)), BYTES(replace_mr)) \
	/* fd: urn_abi_channel.proof of another client. The two share objects by handle, once imported. ENOENT: no such client */ \
	X(JOIN,            join,            fd,         REMOTE, 1, 0, URN_ABI_FEATURE_IMPORT, NO_QUOTA) \
	/* A domain of a joined client's. EOPNOTSUPP: there were windows in it; there will be none */ \
	X(IMPORT_PD,       import_pd,       handle,     ANY,    0, 0, URN_ABI_FEATURE_IMPORT, NO_QUOTA) \
	X(IMPORT_MR,       import_mr,       handle,     ANY,    0, 0, URN_ABI_FEATURE_IMPORT, NO_QUOTA) /* handle = lkey -> region */ \
	/* The same as DEALLOC_PD and DEREG_MR, on an object that any of the joined clients made; its maker's quotas are given back */ \
	X(END_PD,          end_pd,          handle,     ANY,    0, 0, URN_ABI_FEATURE_IMPORT, NO_QUOTA) \
	X(END_MR,          end_mr,          handle,     ANY,    0, 0, URN_ABI_FEATURE_IMPORT, NO_QUOTA) /* handle = lkey */ \
	X(ALIGN_QP,        align_qp,        align_qp,   ANY,    0, 0, URN_ABI_FEATURE_ALIGN, NO_QUOTA) /* handle = qpn, of RC */ \
	/* handle = lkey -> stores. EOPNOTSUPP: the adapter does not count them */ \
	X(QUERY_STORES,    query_stores,    handle,     ANY,    0, 0, URN_ABI_FEATURE_ALIGN, NO_QUOTA) \
	/* handle = qpn, also of a queue pair that is gone -> explained */ \
	X(EXPLAIN,         explain,         explain,    ANY,    0, 0, URN_ABI_FEATURE_EXPLAIN, NO_QUOTA)

enum urn_ctl_op {
	URN_CTL_NONE, /* no operation has the number 0 */
#define X(op, ...) URN_CTL_##op,
	URN_CTL_LIST(X)
#undef X
	URN_CTL_OPS,
};
/* clang-format on */
/* Numbers travel between processes that may be built apart: new operations come last. */
_Static_assert(URN_CTL_HELLO == 1 && URN_CTL_CREATE_QP == 17 && URN_CTL_CONNECT_QP == 37 &&
		       URN_CTL_MSG_OPEN == 38 && URN_CTL_MSG_CLOSE == 40 &&
		       URN_CTL_AM_DEREG == 44 && URN_CTL_DETACH_MCAST == 46 &&
		       URN_CTL_REPLACE_MR == 47 && URN_CTL_END_MR == 52 &&
		       URN_CTL_QUERY_STORES == 54 && URN_CTL_EXPLAIN == 55,
	       "numbers");

/* Descriptors that a request of another process may bring: 0 or 1. op: any number */
static inline unsigned int
urn_ctl_fds_in(uint32_t op)
{
	static const uint8_t fds[URN_CTL_OPS] = {
#define X(op, word, part, from, fds_in, ...) [URN_CTL_##op] = fds_in,
		URN_CTL_LIST(X)
#undef X
	};

	return op < URN_CTL_OPS ? fds[op] : 0;
}

/* Descriptors of the reply to another process when the operation succeeds. op: any number */
static inline unsigned int
urn_ctl_fds_out(uint32_t op)
{
	static const uint8_t fds[URN_CTL_OPS] = {
#define X(op, word, part, from, fds_in, fds_out, ...) [URN_CTL_##op] = fds_out,
		URN_CTL_LIST(X)
#undef X
	};

	return op < URN_CTL_OPS ? fds[op] : 0;
}

/* The feature that an operation belongs to; 0: every peer has the operation. op: any number */
static inline uint32_t
urn_ctl_feature(uint32_t op)
{
	static const uint32_t feature[URN_CTL_OPS] = {
#define X(op, word, part, from, fds_in, fds_out, needs, ...) [URN_CTL_##op] = needs,
		URN_CTL_LIST(X)
#undef X
	};

	return op < URN_CTL_OPS ? feature[op] : 0;
}

/* Access rights; equal to enum ibv_access_flags. */
enum urn_abi_access {
	URN_ACCESS_LOCAL_WRITE = 1 << 0,
	URN_ACCESS_REMOTE_WRITE = 1 << 1,
	URN_ACCESS_REMOTE_READ = 1 << 2,
	URN_ACCESS_REMOTE_ATOMIC = 1 << 3,
	URN_ACCESS_MW_BIND = 1 << 4,
	URN_ACCESS_ZERO_BASED = 1 << 5,
	URN_ACCESS_RELAXED = 1 << 20,
};

/* Equal to enum ibv_qp_type. */
enum urn_abi_qp_type { URN_QPT_RC = 2, URN_QPT_UC = 3, URN_QPT_UD = 4 };

/* Equal to enum ibv_qp_state. */
enum urn_abi_qp_state {
	URN_QPS_RESET,
	URN_QPS_INIT,
	URN_QPS_RTR,
	URN_QPS_RTS,
	URN_QPS_SQD,
	URN_QPS_SQE,
	URN_QPS_ERR,
	URN_QP_STATES,
};

/* Equal to enum ibv_qp_attr_mask. */
enum urn_abi_qp_mask {
	URN_QPM_STATE = 1 << 0,
	URN_QPM_CUR_STATE = 1 << 1,
	URN_QPM_EN_SQD_NOTIFY = 1 << 2,
	URN_QPM_ACCESS = 1 << 3,
	URN_QPM_PKEY_INDEX = 1 << 4,
	URN_QPM_PORT = 1 << 5,
	URN_QPM_QKEY = 1 << 6,
	URN_QPM_AV = 1 << 7,
	URN_QPM_PATH_MTU = 1 << 8,
	URN_QPM_TIMEOUT = 1 << 9,
	URN_QPM_RETRY_CNT = 1 << 10,
	URN_QPM_RNR_RETRY = 1 << 11,
	URN_QPM_RQ_PSN = 1 << 12,
	URN_QPM_MAX_RD_ATOMIC = 1 << 13,
	URN_QPM_ALT_PATH = 1 << 14,
	URN_QPM_MIN_RNR_TIMER = 1 << 15,
	URN_QPM_SQ_PSN = 1 << 16,
	URN_QPM_MAX_DEST_RD_ATOMIC = 1 << 17,
	URN_QPM_PATH_MIG_STATE = 1 << 18,
	URN_QPM_CAP = 1 << 19,
	URN_QPM_DEST_QPN = 1 << 20,
};

/* Limits of multicast; a dataplane with URN_ABI_FEATURE_MCAST has at least these. */
enum {
	URN_ABI_MCAST_GROUPS = 256, /* groups of an adapter with queue pairs attached */
	URN_ABI_MCAST_CLIENT = 128, /* attachments of a client on an engine */
};

/* Address vector: the destination of a QP or of an address handle. */
struct urn_abi_av {
	uint8_t dgid[16];    /* IPv4 as ::ffff:a.b.c.d */
	uint8_t sgid_index;
	uint8_t hop_limit;   /* 0: 64 */
	uint8_t traffic_class;
	uint8_t port_num;    /* 1 */
	uint32_t flow_label;
};

struct urn_abi_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
};

struct urn_abi_qp_attr {
	uint8_t state;         /* enum urn_abi_qp_state */
	uint8_t cur_state;
	uint8_t path_mtu;      /* code 1..5 */
	uint8_t en_sqd_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint16_t pkey_index;
	uint16_t rsvd;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access;       /* enum urn_abi_access */
	struct urn_abi_av av;
	struct urn_abi_qp_cap cap;
};

struct urn_abi_req {
	uint32_t op;           /* enum urn_ctl_op */
	uint32_t handle;       /* the object, where one is named */
	union {
		struct {
			/* Versions of the library, and the features that it knows, like struct urn_abi_offer. */
			uint32_t oldest, newest;
			uint64_t area; /* address at which the client has its area mapped; 0: not told */
			uint32_t features;
		} hello;
		struct { uint32_t index; } gid;
		struct {
			uint32_t pd;
			uint32_t access;
			uint64_t addr;   /* start of the region, in the client's address space */
			uint64_t length; /* bytes */
			uint64_t iova;   /* start of the region, in addresses used with its keys */
		} reg_mr;
		struct { uint32_t pd; uint32_t type; /* 1 or 2 */ } alloc_mw;
		struct {
			uint32_t by; /* lkey of the other region */
		} replace_mr;
		struct {
			uint32_t cqe;          /* entries wanted, at least */
			uint32_t comp_vector;  /* picks the engine */
			/*
			 * The channel's pipe to write to, or -1. Another process gives the handle of
			 * URN_CTL_CREATE_CHANNEL, because the reader of a pipe can make its writer wait.
			 */
			int32_t channel_fd;
			uint32_t beside;       /* 1: the client reads messages beside completions
						  (queue.h) */
			uint64_t cookie;       /* handed back in struct urn_abi_event */
		} create_cq;
		struct { uint32_t cqe; } resize_cq;
		struct {
			uint32_t pd, max_wr, max_sge, limit;
			uint32_t cq_hint;      /* a CQ whose engine is to own the SRQ, or 0 */
			uint32_t rsvd;
			uint64_t cookie;
		} create_srq;
		struct { uint32_t set_limit, limit; } modify_srq;
		struct {
			uint32_t pd, type;       /* enum urn_abi_qp_type */
			uint32_t send_cq, recv_cq;
			uint32_t srq;            /* 0: none */
			uint32_t sq_sig_all;
			struct urn_abi_qp_cap cap;
			uint32_t rsvd;
			uint64_t cookie;
		} create_qp;
		struct { uint32_t mask; struct urn_abi_qp_attr attr; } modify_qp;
		/* Masks and attributes of two URN_CTL_MODIFY_QP in one: from INIT to RTR, and on to RTS. */
		struct { uint32_t rtr_mask, rts_mask; struct urn_abi_qp_attr rtr, rts; } connect_qp;
		struct { uint32_t pd; struct urn_abi_av av; } create_ah;
		struct {
			uint8_t gid[16];
		} mcast; /* IPv4 groups as ::ffff:224.0.0.0/100, IPv6 as ff00::/8 */
		struct { int32_t fd; } async_fd;
		struct {
			/*
			 * A memfd that can shrink no more (F_SEAL_SHRINK) and may be sealed further, open for
			 * reading and writing, and mapped by the client. The dataplane maps the memfd and seals
			 * it with F_SEAL_FUTURE_WRITE and F_SEAL_SEAL: no other dataplane can map it any more,
			 * nor can this one once all connections have ended that it was shared over. EPERM: the
			 * memfd was sealed before, and can't be shared; its regions may be foreign memory.
			 */
			int32_t fd;
			uint32_t rsvd;
			uint64_t addr;   /* address at which the client has the memfd mapped */
			uint64_t length; /* bytes, from the memfd's start on */
		} share;
		struct urn_abi_cm_listen cm_listen;
		struct urn_abi_cm_connect cm_connect;
		struct urn_abi_cm_accept cm_accept;
		struct urn_abi_cm_reject cm_reject;
		struct urn_abi_cm_data cm_data;
		struct {
			uint32_t comp_vector; /* picks the engine; with URN_MSG_OPEN_NAMED it is the adapter's first */
			uint32_t flags;       /* enum urn_msg_open_flag */
			uint64_t arena;       /* bytes wanted, at most URN_MSG_ARENA_MAX */
			int32_t channel_fd;   /* like that of create_cq: URN_EVENT_MSG is written there; -1: none */
			uint32_t rsvd;
			uint64_t cookie;      /* handed back in struct urn_abi_event */
		} msg_open;
		struct {
			uint32_t name;        /* 0: none any more; with URN_MSG_BIND_ANY: the first that may be taken */
			uint32_t flags;       /* enum urn_msg_bind_flag */
			uint32_t end;         /* with URN_MSG_BIND_ANY: one past the last that may be taken */
		} msg_bind;
		struct {
			uint32_t comp_vector; /* picks the engine */
			uint32_t entries;     /* slots of a ring, a power of two up to
						 URN_AM_ENTRIES_MAX */
			uint32_t ranges;      /* room for ranges, at most URN_AM_RANGES_MAX */
			uint32_t pd; /* protection domain of the memory that the endpoint moves, and
					offers */
			int32_t channel_fd; /* like that of create_cq: URN_EVENT_AM is written
					       there; -1: none */
			uint32_t rsvd;
			uint64_t cookie; /* handed back in struct urn_abi_event */
			/* Bytes from which operations of the way AUTO are pipelined, and go under a
			 * tag; 0: as the adapter's configuration says */
			uint32_t pipelined_from, tagged_from;
		} am_open;
		struct {
			uint32_t access; /* enum urn_am_access, at least one */
			uint32_t flags;	 /* enum urn_am_reg_flag */
			uint32_t ranges; /* number of ranges at the start of the endpoint's list */
		} am_reg;
		struct {
			uint32_t rsvd;
			uint64_t key; /* 0: the memory that is reached without a key */
		} am_dereg;
		struct {
			uint32_t line; /* enum urn_abi_align, or bytes: 64, 128 or 256 */
		} align_qp;
		struct urn_abi_explain explain;
		int32_t fd; /* an operation with fds_in: its descriptor, first in its part */
	};
};

struct urn_abi_device {
	uint32_t version;        /* the version agreed on */
	uint32_t engines;        /* comp_vectors */
	uint64_t node_guid;      /* host order */
	uint64_t max_mr_size;
	uint32_t max_qp, max_cq, max_mr, max_mw, max_pd, max_ah, max_srq;
	uint32_t max_wr, max_sge, max_cqe, max_rd_atomic, max_inline;
	uint32_t gids;           /* entries of the GID table */
	uint32_t features;       /* the features agreed on, enum urn_abi_feature; of version 6: 0 */
	uint64_t area_size;      /* bytes of the client's area */
	uint64_t db_off[URN_ABI_MAX_ENGINES]; /* doorbells of each engine, in the area */
	char name[64];           /* device name, such as urnic0 */
	char fw_ver[64];         /* version of the dataplane */
};

struct urn_abi_port {
	uint8_t state;           /* 1 down, 4 active (enum ibv_port_state) */
	uint8_t max_mtu, active_mtu; /* codes 1..5 */
	uint8_t rsvd;
	uint32_t mtu_bytes;      /* MTU of the Ethernet port */
	uint64_t speed;          /* bits a second; 0 unknown */
};

struct urn_abi_rep {
	int32_t err;             /* 0, or an errno value */
	uint32_t handle;         /* the object that was made */
	char why[120];           /* when err: a sentence for people */
	union {
		struct urn_abi_device device;
		struct urn_abi_port port;
		struct { uint8_t gid[16]; } gid;
		struct { uint32_t lkey, rkey; } mr;
		struct {
			uint32_t lkey, rkey;
			uint64_t length; /* bytes */
		} region;
		struct {
			uint64_t off;    /* bytes from the start of the client's area to the queue header */
			uint32_t entries; /* a power of two */
			uint32_t stride;  /* bytes of a slot */
			uint32_t engine;  /* owner */
			uint32_t events;  /* destroy_cq: completion events written so far */
			uint32_t beside;  /* create_cq: 1: the queue has a struct urn_abi_beside an
					     entry */
		} queue;
		struct {
			uint64_t sq_off, rq_off; /* rq_off with an SRQ: queue of taken receives (URN_ABI_TAKEN) */
			uint32_t sq_entries, rq_entries; /* powers of two; 0 with an SRQ */
			uint32_t sq_stride, rq_stride;
			uint32_t db;      /* doorbell id */
			uint32_t engine;
			struct urn_abi_qp_cap cap; /* granted capabilities */
		} qp;
		struct { uint32_t max_wr, max_sge, limit; } srq_attr;
		struct urn_abi_qp_attr qp_attr;
		struct urn_abi_stores stores;
		struct urn_abi_explained explained;
		struct urn_abi_cm_event cm_event;
		struct {
			uint64_t off;       /* bytes from the start of the client's area to the register set */
			uint64_t arena_off; /* ... and to the set's arena */
			uint64_t arena;     /* bytes of the arena */
			uint64_t qid;       /* number of the set's receive queue; msg_bind: its name (URN_MSG_NAME()) */
			uint32_t db;        /* doorbell id */
			uint32_t engine;    /* vector of the engine that owns the set */
		} msg;
		struct {
			uint64_t off;	 /* bytes from the start of the client's area to struct
					    urn_abi_am_ep */
			uint64_t qid;	 /* number of the endpoint */
			uint64_t key;	 /* am_reg: access key; 0 for the memory that is reached
					    without */
			uint32_t db;	 /* doorbell id */
			uint32_t engine; /* vector of the engine that owns the endpoint */
			uint32_t chunk;	 /* bytes of memory in one packet, at most */
		} am;
	};
};

/*
 * These structs travel between processes that may be built apart: a change of one
 * gives URN_ABI_VERSION a new value, and URN_ABI_VERSION_OLDEST too unless the older layout still works.
 */
_Static_assert(sizeof(struct urn_abi_av) == 24, "address vector");
_Static_assert(sizeof(struct urn_abi_qp_cap) == 20, "capabilities");
_Static_assert(sizeof(struct urn_abi_qp_attr) == 80, "attributes");
_Static_assert(offsetof(struct urn_abi_qp_attr, qkey) == 16, "attributes");
_Static_assert(offsetof(struct urn_abi_qp_attr, av) == 36, "attributes");
_Static_assert(offsetof(struct urn_abi_qp_attr, cap) == 60, "attributes");
_Static_assert(sizeof(struct urn_abi_req) == 288, "request");
_Static_assert(offsetof(struct urn_abi_req, hello) == 8, "request");
_Static_assert(offsetof(struct urn_abi_req, hello.area) == 16, "request");
_Static_assert(offsetof(struct urn_abi_req, share.fd) == offsetof(struct urn_abi_req, fd),
	       "request");
_Static_assert(offsetof(struct urn_abi_req, hello.features) == 24, "request");
_Static_assert(offsetof(struct urn_abi_req, reg_mr.addr) == 16, "request");
_Static_assert(offsetof(struct urn_abi_req, create_cq.cookie) == 24, "request");
_Static_assert(offsetof(struct urn_abi_req, create_srq.cookie) == 32, "request");
_Static_assert(offsetof(struct urn_abi_req, create_qp.cookie) == 56, "request");
_Static_assert(offsetof(struct urn_abi_req, modify_qp.attr) == 12, "request");
_Static_assert(offsetof(struct urn_abi_req, connect_qp.rts) == 96, "request");
_Static_assert(offsetof(struct urn_abi_req, msg_open.cookie) == 32, "request");
_Static_assert(offsetof(struct urn_abi_req, am_open.pd) == 20, "request");
_Static_assert(offsetof(struct urn_abi_req, am_open.cookie) == 32, "request");
_Static_assert(offsetof(struct urn_abi_req, am_open.tagged_from) == 44, "request");
_Static_assert(offsetof(struct urn_abi_req, am_dereg.key) == 16, "request");
_Static_assert(offsetof(struct urn_abi_req, align_qp.line) == 8, "request");
_Static_assert(sizeof(struct urn_abi_device) == 344, "device");
_Static_assert(offsetof(struct urn_abi_device, max_qp) == 24, "device");
_Static_assert(offsetof(struct urn_abi_device, features) == 76, "device");
_Static_assert(offsetof(struct urn_abi_device, area_size) == 80, "device");
_Static_assert(offsetof(struct urn_abi_device, name) == 216, "device");
_Static_assert(sizeof(struct urn_abi_port) == 16, "port");
_Static_assert(sizeof(struct urn_abi_rep) == 472, "reply");
_Static_assert(offsetof(struct urn_abi_rep, device) == 128, "reply");
_Static_assert(offsetof(struct urn_abi_rep, msg.db) == 160, "reply");
_Static_assert(offsetof(struct urn_abi_rep, am.db) == 152, "reply");

/*
 * A client's way to one adapter of one dataplane. The embedded dataplane makes
 * one kind of channel (dataplane/control), a socket client another; lib/attach
 * takes either.
 */
struct urn_abi_channel {
	void *ctx;   /* owner: the maker of the channel */
	/* Send one request, wait for its reply. May be called from any thread. */
	void (*call)(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep);
	/* Wake an engine whose doorbells say that it sleeps. */
	void (*wake)(void *ctx, uint32_t engine);
	/* Give the channel and everything made over it back. */
	void (*close)(void *ctx);
	void *area;  /* the client's area, mapped in this process */
	/*
	 * Get a pipe for events from a dataplane in another process, by URN_CTL_CREATE_CHANNEL
	 * or URN_CTL_ASYNC_FD. NULL: the dataplane is in this process, and takes any pipe.
	 * returns: 0, or an errno value with rep->why; fd: the ends to read from and to write to
	 */
	int (*pipe)(void *ctx, enum urn_ctl_op op, struct urn_abi_rep *rep, int fd[2]);
	/*
	 * Fetch several events with one question, the oldest first, like URN_CTL_CM_EVENT of
	 * any id. NULL: the dataplane is in this process, where a call for each event costs little.
	 * returns: 0, *n: how many, fewer than one question can bring when there are no more; or
	 * an errno value with rep->why, and nothing else of *rep
	 */
	int (*cm_events)(void *ctx, struct urn_abi_cm_event *ev, uint32_t max, uint32_t *n,
			 struct urn_abi_rep *rep);
	/*
	 * Let a dataplane in another process reach this memory, as far as the memory was made to
	 * be shared; other memory is left to the control call that registers it.
	 * NULL: there is no need. returns: 0, or an errno value with rep->why
	 */
	int (*share)(void *ctx, const void *addr, size_t length, struct urn_abi_rep *rep);
	/*
	 * Call died(arg) once when the dataplane in the other process is gone, from a thread
	 * of the channel's own; never after close() has begun to return. NULL: the
	 * dataplane is in this process. returns: 0, or an errno value
	 */
	int (*watch)(void *ctx, void (*died)(void *arg), void *arg);
	/*
	 * Called in a child that fork() made, where the channel is the parent's: let go of
	 * this copy and tell the dataplane nothing; close() is to follow. With watch.
	 */
	void (*forked)(void *ctx);
	/* The dataplane in the other process is gone, as the caller has found: its memory counts as
	 * shared no more. Waits for nothing. NULL: the dataplane is in this process. */
	void (*gone)(void *ctx);
	/*
	 * Say to the dataplane in the other process that this client is at its end: the dataplane
	 * takes everything of the client's back and is gone for it, which watch() then tells. NULL:
	 * the dataplane is in this process.
	 */
	void (*hang_up)(void *ctx);
	/* The channel's descriptor that names this client (URN_CTL_JOIN). NULL: none */
	int (*proof)(void *ctx);
	/* True when the dataplane in the other process was given up, and may live all the same.
	 * NULL: the dataplane is in this process. */
	int (*given_up)(void *ctx);
	/*
	 * After died(): from here on the area stays as it is, even if the dataplane was given up
	 * alive. NULL: the dataplane is in this process. returns: 0, or an errno value: the area
	 * is shared still
	 */
	int (*still)(void *ctx);
};

#endif
