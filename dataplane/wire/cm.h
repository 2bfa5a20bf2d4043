/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of connection management: MADs of class 0x07, version 2 (IBTA 12.6), as RDMA-CM uses
 * them over RoCEv2. Messages are read into a plain struct, and written from it.
 */
#ifndef URN_WIRE_CM_H
#define URN_WIRE_CM_H

#include "abi/cm.h"
#include "wire/mad.h"

#include <stdbool.h>

enum {
	URN_CM_CLASS_VERSION = 2,
	URN_CM_METHOD_SEND = 0x03,
};

/* Kind of a message: the attribute. */
enum urn_cm_attr {
	URN_CM_REQ = 0x10,  /* request for communication */
	URN_CM_MRA,         /* message receipt acknowledgement: the answer takes longer */
	URN_CM_REJ,         /* reject */
	URN_CM_REP,         /* reply */
	URN_CM_RTU,         /* ready to use */
	URN_CM_DREQ,        /* disconnection request */
	URN_CM_DREP,        /* disconnection reply */
	URN_CM_SIDR_REQ,    /* service id resolution request: asks which QP serves datagrams */
	URN_CM_SIDR_REP,
	URN_CM_LAP,         /* load alternate path */
	URN_CM_APR,         /* alternate path response */
	URN_CM_ATTR_END,
};

/* Transport service of a REQ. */
enum { URN_CM_RC = 0, URN_CM_UC = 1, URN_CM_RD = 2, URN_CM_OTHER = 3 };

/* The message that an MRA or a REJ is about. */
enum { URN_CM_ABOUT_REQ = 0, URN_CM_ABOUT_REP = 1, URN_CM_ABOUT_OTHER = 2 };

/* Status of an APR: urnic supports no alternate paths. */
enum { URN_CM_APR_UNSUPPORTED = 2 };

/* A path in a REQ. */
struct urn_cm_path {
	uint8_t sgid[16], dgid[16];
	uint16_t slid, dlid;   /* RoCE: 0xffff */
	uint32_t flow_label;
	uint8_t rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t subnet_local;
	uint8_t ack_timeout;
};

/*
 * A message, host order. Behind each field: the messages that have it. A field that the message
 * does not have is 0 after reading, and is ignored when writing.
 */
struct urn_cm_msg {
	uint16_t attr;            /* enum urn_cm_attr */
	uint64_t tid;             /* transaction id */
	uint32_t local_id;        /* all: the sender's communication id; SIDR: request id */
	uint32_t remote_id;       /* all but REQ, SIDR: the receiver's */
	uint64_t service_id;      /* REQ, SIDR_REQ, SIDR_REP */
	uint64_t ca_guid;         /* REQ, REP */
	uint32_t qpn;             /* REQ, REP, SIDR_REP: the sender's; DREQ: the receiver's */
	uint32_t qkey;            /* REQ, REP, SIDR_REP */
	uint32_t psn;             /* REQ, REP: first PSN that the receiver is to send */
	uint16_t pkey;            /* REQ, SIDR_REQ */
	uint16_t reason;          /* REJ: enum urn_cm_reason */
	uint8_t responder_resources; /* REQ, REP */
	uint8_t initiator_depth;  /* REQ, REP */
	uint8_t service;          /* REQ: URN_CM_RC ... */
	uint8_t flow_control;     /* REQ, REP */
	uint8_t srq;              /* REQ, REP */
	uint8_t retry_count;      /* REQ */
	uint8_t rnr_retry;        /* REQ, REP */
	uint8_t mtu;              /* REQ: code, 0 to 15 */
	uint8_t rdc;              /* REQ */
	uint8_t extended;         /* REQ: extended transport type */
	uint8_t max_retries;      /* REQ */
	uint8_t remote_timeout;   /* REQ: code; time that the receiver may take to answer */
	uint8_t local_timeout;    /* REQ: code; time that the sender may take */
	uint8_t ack_delay;        /* REP: code */
	uint8_t failover;         /* REP */
	uint8_t about;            /* MRA, REJ: URN_CM_ABOUT_ */
	uint8_t service_timeout;  /* MRA: code */
	uint8_t status;           /* SIDR_REP, APR */
	uint8_t info_len;         /* REJ, SIDR_REP: bytes of info */
	struct urn_cm_path path[2]; /* REQ: primary, alternate */
	uint8_t info[URN_CM_INFO]; /* REJ, SIDR_REP */
	uint8_t data[URN_CM_DATA_MAX]; /* all but LAP, APR; the first urn_cm_data_bytes() of it are valid */
};

/* Bytes of private data that a message has room for; 0: none, or no such attribute. */
unsigned int urn_cm_data_bytes(unsigned int attr);

/* Write all URN_MAD_BYTES of a message. Fields are cut to their width. */
void urn_cm_write(uint8_t *mad, const struct urn_cm_msg *msg);

/*
 * Read a MAD of base version 1 and the class of connection management, sent by queue pair sqpn.
 * returns: CM_RX with *msg filled in, or the reason to drop the MAD: DROP_CM_VERSION with attr, tid
 * and local_id filled in all the same, DROP_MAD_METHOD, DROP_CM_SOURCE, DROP_CM_FIELD: an
 * impossible value
 */
enum urn_counter urn_cm_read(const uint8_t *mad, uint32_t sqpn, struct urn_cm_msg *msg);

/* Nanoseconds of a timeout code: 4.096 us * 2^code, code 0 to 31. */
static inline uint64_t
urn_cm_ns(unsigned int code)
{
	return 4096ull << (code & 31);
}

#endif
