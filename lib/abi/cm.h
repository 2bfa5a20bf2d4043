/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management between a program and its dataplane: the fields of its
 * control requests and of its events. Service ids, and the 36 bytes that
 * RDMA-CM puts in front of a request's private data (IBTA annex A11, "IP CM").
 *
 * An id is the program's name for a listener, a connection or a look-up of a
 * service; the dataplane gives ids out. The dataplane keeps the events of an id in
 * order until the program fetches them with URN_CTL_CM_EVENT. Each event is announced
 * by one struct urn_abi_event in the pipe that the id was made with: type URN_EVENT_CM,
 * handle the id, cookie as it was given.
 *
 * Programs see these structs through <urnic/cm.h>, in C and in C++, so this header includes no
 * other of lib/abi.
 */
#ifndef URN_ABI_CM_H
#define URN_ABI_CM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Private data of each message, bytes (IBTA 12.6). */
enum {
	URN_CM_REQ_DATA = 92,
	URN_CM_MRA_DATA = 222,
	URN_CM_REJ_DATA = 148,
	URN_CM_REP_DATA = 196,
	URN_CM_RTU_DATA = 224,
	URN_CM_DREQ_DATA = 220,
	URN_CM_DREP_DATA = 224,
	URN_CM_SIDR_REQ_DATA = 216,
	URN_CM_SIDR_REP_DATA = 136,
	URN_CM_DATA_MAX = 224,
	URN_CM_INFO = 72, /* additional information of REJ and SIDR_REP */
};

/* Reasons of a REJ (IBTA 12.6.7.2). A peer may send other reasons: they are passed on. */
enum urn_cm_reason {
	URN_CM_REJ_NO_QP = 1,
	URN_CM_REJ_NO_RESOURCES = 3,
	URN_CM_REJ_TIMEOUT = 4,
	URN_CM_REJ_UNSUPPORTED = 5,
	URN_CM_REJ_INVALID_COMM_ID = 6,
	URN_CM_REJ_INVALID_SERVICE_ID = 8,
	URN_CM_REJ_INVALID_TRANSPORT = 9,
	URN_CM_REJ_STALE_CONN = 10,
	URN_CM_REJ_INVALID_MTU = 26,
	URN_CM_REJ_CONSUMER = 28, /* the program's own: its private data says why */
	URN_CM_REJ_CLASS_VERSION = 31,
};

/* Status of a SIDR_REP (IBTA 12.11.2.2). */
enum urn_cm_sidr_status {
	URN_CM_SIDR_VALID = 0,
	URN_CM_SIDR_UNSUPPORTED = 1, /* no such service */
	URN_CM_SIDR_REJECT = 2,
	URN_CM_SIDR_NO_QP = 3,
	URN_CM_SIDR_REDIRECT = 4,
	URN_CM_SIDR_VERSION = 5,
	URN_CM_SIDR_STATUSES,
};

/* Types of events. */
enum urn_cm_event_type {
	URN_CM_EVENT_NONE,
	URN_CM_EVENT_REQUEST,      /* at a listener: `id` is new; accept or reject it */
	URN_CM_EVENT_REPLY,        /* the peer accepts; bring up the queue pair, then establish */
	URN_CM_EVENT_ESTABLISHED,  /* the peer is ready */
	URN_CM_EVENT_REJECTED,     /* by the peer, with a reason */
	URN_CM_EVENT_UNREACHABLE,  /* no answer to a request or a reply, nor to any retry of it */
	URN_CM_EVENT_DISCONNECT,   /* the peer wants to end the connection; disconnect answers */
	URN_CM_EVENT_DISCONNECTED, /* the peer agreed to end the connection, or did not answer (status 1) */
	URN_CM_EVENT_TIMEWAIT,     /* the last packets are gone: the queue pair's number is free */
	URN_CM_EVENT_SIDR_REQUEST, /* at a listener: `id` is new; answer it */
	URN_CM_EVENT_SIDR_REPLY,   /* status, and if 0 qpn and qkey */
	URN_CM_EVENTS,
};

/* Connect request: the peer, and the parameters of the connection. */
struct urn_abi_cm_connect {
	uint64_t service_id;
	uint64_t cookie;
	int32_t channel_fd;      /* write end of the pipe for notices; another process: a channel's handle; -1 */
	uint32_t qpn;            /* the program's own queue pair; SIDR: 0 */
	uint32_t psn;            /* first PSN that the peer is to send: the queue pair's rq_psn */
	uint8_t dgid[16];        /* the peer's GID; IPv4 as ::ffff:a.b.c.d */
	uint8_t sgid_index;
	uint8_t responder_resources; /* READs and atomics that the queue pair takes at once */
	uint8_t initiator_depth; /* ... and asks for at once */
	uint8_t retry_count;     /* 0..7 */
	uint8_t rnr_retry;       /* 0..7 */
	uint8_t flow_control;    /* 0 or 1 */
	uint8_t srq;             /* 0 or 1 */
	uint8_t mtu;             /* code 1..5 */
	uint8_t timeout;         /* wait for an answer: 4.096 us * 2^timeout; 0: 20 */
	uint8_t max_retries;     /* 0..15 retries */
	uint8_t ack_timeout;     /* the queue pairs' ACK timeout, as code: 0..31 */
	uint8_t traffic_class;
	uint32_t flow_label;
	uint16_t pkey;           /* 0: 0xffff */
	uint8_t hop_limit;       /* 0: 64 */
	uint8_t data_len;
	uint8_t data[URN_CM_SIDR_REQ_DATA]; /* for a connection at most URN_CM_REQ_DATA bytes */
};

/*
 * Bits of a listener's backlog, with URN_ABI_FEATURE_HEIRS. Processes that fork() has made share a
 * service: each has a listener with URN_CM_SHARED, all with one cookie that nobody else knows; one
 * that is not 0 lets processes of another user in, as an inherited descriptor does. A request comes
 * to one of them; to one with URN_CM_HEIR, if there is any: the process that listened first may
 * sleep for good.
 *
 * URN_CM_TAKE makes no listener: service_id is the id of a request that came to another of these
 * processes, which has fetched it and given no answer. From now on the id is the caller's.
 */
#define URN_CM_SHARED 0x80000000u
#define URN_CM_HEIR 0x40000000u
#define URN_CM_TAKE 0x20000000u
#define URN_CM_BACKLOG_BITS (~(URN_CM_SHARED | URN_CM_HEIR | URN_CM_TAKE))

struct urn_abi_cm_listen {
	uint64_t service_id;
	uint64_t cookie;
	int32_t channel_fd;      /* like urn_abi_cm_connect's, for notices of the listener and of its requests */
	uint32_t backlog; /* requests that may wait to be accepted, 0: 128; and the bits above */
};

/* Accept a connect request, or answer a SIDR request. */
struct urn_abi_cm_accept {
	uint32_t qpn;
	uint32_t psn;            /* like urn_abi_cm_connect's; SIDR: the Q_Key */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t rnr_retry;
	uint8_t flow_control;
	uint8_t srq;
	uint8_t ack_delay;       /* code 0..31 */
	uint8_t status;          /* enum urn_cm_sidr_status, SIDR only */
	uint8_t data_len;
	uint8_t data[URN_CM_REP_DATA]; /* for SIDR at most URN_CM_SIDR_REP_DATA bytes */
};

struct urn_abi_cm_reject {
	uint16_t reason;         /* enum urn_cm_reason */
	uint8_t info_len;
	uint8_t data_len;
	uint8_t info[URN_CM_INFO];
	uint8_t data[URN_CM_REJ_DATA];
};

/* Private data alone: establish, disconnect. */
struct urn_abi_cm_data {
	uint32_t data_len;
	uint8_t data[URN_CM_DATA_MAX];
};

/* A whole event. Fields that its type does not use are 0. */
struct urn_abi_cm_event {
	uint32_t type;           /* enum urn_cm_event_type */
	uint32_t id;             /* id of the event; a request's: the new id */
	uint32_t listen_id;      /* listener at which a request came */
	uint32_t qpn;            /* the peer's queue pair */
	uint64_t cookie;
	uint64_t service_id;
	uint32_t psn;            /* first PSN that this side is to send: the queue pair's sq_psn */
	uint32_t qkey;
	uint8_t gid[16];         /* the peer's GID */
	uint8_t own_gid[16];     /* this side's GID that the peer sent to */
	uint16_t reason;         /* REJECTED: enum urn_cm_reason; SIDR_REPLY and DISCONNECTED: status */
	uint16_t pkey;
	uint8_t responder_resources; /* the peer's values, from here to mtu */
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t flow_control;
	uint8_t srq;
	uint8_t mtu;
	uint8_t ack_timeout;     /* REQUEST: for the queue pair; REPLY: the peer's delay */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t info_len;        /* bytes of info, which follow the bytes of data */
	uint8_t data_len;        /* bytes of data: all that the message has room for */
	uint32_t flow_label;
	uint8_t data[URN_CM_DATA_MAX];
};

#ifndef __cplusplus
_Static_assert(sizeof(struct urn_abi_cm_connect) == 280, "connect");
_Static_assert(offsetof(struct urn_abi_cm_connect, dgid) == 28, "connect");
_Static_assert(offsetof(struct urn_abi_cm_connect, flow_label) == 56, "connect");
_Static_assert(offsetof(struct urn_abi_cm_connect, data) == 64, "connect");
_Static_assert(sizeof(struct urn_abi_cm_listen) == 24, "listen");
_Static_assert(sizeof(struct urn_abi_cm_accept) == 212, "accept");
_Static_assert(sizeof(struct urn_abi_cm_reject) == 224, "reject");
_Static_assert(sizeof(struct urn_abi_cm_data) == 228, "data");
_Static_assert(sizeof(struct urn_abi_cm_event) == 320, "event");
_Static_assert(offsetof(struct urn_abi_cm_event, gid) == 40, "event");
_Static_assert(offsetof(struct urn_abi_cm_event, data) == 92, "event");
_Static_assert(URN_CM_REJ_DATA + URN_CM_INFO <= URN_CM_DATA_MAX, "rejected, with information");
_Static_assert(URN_CM_SIDR_REP_DATA + URN_CM_INFO <= URN_CM_DATA_MAX, "answered, with information");
#endif

/* ---- RDMA-CM: ports and addresses in service ids and private data */

/* Port spaces; equal to enum rdma_port_space. */
enum { URN_CM_PS_TCP = 0x0106, URN_CM_PS_UDP = 0x0111 };

/* Service id of a port, host order. */
static inline uint64_t
urn_cm_service(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

/*
 * Services of session layers (doc/inside/failover.md): "URNS", then the number of a queue pair.
 * Only the program that owns the queue pair may listen.
 */
#define URN_CM_SESSION_SERVICE 0x55524e5300000000ull

static inline uint64_t
urn_cm_session_service(uint32_t qpn)
{
	return URN_CM_SESSION_SERVICE | qpn;
}

/* True when a service is of a session layer; its low 32 bits are the number of the queue pair. */
static inline int
urn_cm_is_session_service(uint64_t service)
{
	return (service & ~0xffffffffull) == URN_CM_SESSION_SERVICE;
}

/* Bytes in front of the program's private data in a REQ or SIDR_REQ. */
enum { URN_CM_IP_BYTES = 36 };

/* Addresses of the two sides of a connection, in RDMA-CM's form. */
struct urn_cm_ip {
	uint8_t version;  /* 4 or 6 */
	uint16_t port;    /* the asking side's, host order */
	uint8_t src[16];  /* IPv4 as ::ffff:a.b.c.d */
	uint8_t dst[16];
};

/* Write the addresses in front of private data. */
static inline void
urn_cm_ip_write(uint8_t out[URN_CM_IP_BYTES], const struct urn_cm_ip *ip)
{
	memset(out, 0, URN_CM_IP_BYTES);
	out[1] = (uint8_t)(ip->version << 4);
	out[2] = (uint8_t)(ip->port >> 8);
	out[3] = (uint8_t)ip->port;
	if (ip->version == 4) {
		memcpy(out + 16, ip->src + 12, 4);
		memcpy(out + 32, ip->dst + 12, 4);
	} else {
		memcpy(out + 4, ip->src, 16);
		memcpy(out + 20, ip->dst, 16);
	}
}

/* Read the addresses. returns: 0, or -1: the data are no such addresses, or of another version */
static inline int
urn_cm_ip_read(const uint8_t *data, size_t len, struct urn_cm_ip *ip)
{
	memset(ip, 0, sizeof(*ip));
	if (len < URN_CM_IP_BYTES || data[0] != 0)
		return -1;
	ip->version = data[1] >> 4;
	ip->port = (uint16_t)(data[2] << 8 | data[3]);
	if (ip->version == 4) {
		memset(ip->src + 10, 0xff, 2);
		memset(ip->dst + 10, 0xff, 2);
		memcpy(ip->src + 12, data + 16, 4);
		memcpy(ip->dst + 12, data + 32, 4);
		return 0;
	}
	memcpy(ip->src, data + 4, 16);
	memcpy(ip->dst, data + 20, 16);
	return ip->version == 6 ? 0 : -1;
}

#endif
