/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of control requests, their table, and the function that calls them. */
#ifndef URN_CONTROL_CTL_H
#define URN_CONTROL_CTL_H

#include "control/lock.h"

/* Carry an operation out; the adapter's lock is held. returns 0 or an errno value */
typedef int urn_ctl_fn(struct urn_client *c, const struct urn_abi_req *req,
		       struct urn_abi_rep *rep);
/* The handlers: urn_ctl_hello() and so on, in ctl_*.c, except urn_ctl_{share,unshare}() in shm.c */
#define X(op, word, ...) urn_ctl_fn urn_ctl_##word;
URN_CTL_LIST(X)
#undef X

enum {
	URN_CTL_REPLY_FDS = 2
}; /* both ends of a pipe: no operation brings other descriptors back */

/* An operation as the dispatcher knows it: a row of URN_CTL_LIST (abi/control.h). All constant. */
struct urn_ctl_row {
	const char *word; /* its name in messages */
	urn_ctl_fn *run;  /* its handler; NULL: no operation has this number */
	uint16_t bytes;	  /* bytes of the request, from its start on, that the handler may read */
	bool remote;	  /* only for programs in another process than the dataplane */
	uint8_t fds_in, fds_out;  /* descriptors of a remote request and of its reply */
	uint32_t feature;	  /* bit of enum urn_abi_feature to agree on first; 0: none */
	struct urn_quota_use use; /* quotas that it needs or gives back */
};

struct urn_ctl_table {
	const struct urn_ctl_row *row; /* by number */
	uint32_t n;		       /* rows; constant */
};

/* The operations of URN_CTL_LIST. */
extern const struct urn_ctl_table urn_ctl_table;

/* A request as it came. */
struct urn_ctl_call {
	struct urn_abi_req *req; /* a copy that nobody else can change; its fd is set from fd */
	size_t bytes;		 /* bytes of the request that came; the others are 0 */
	const int *fd;		 /* descriptors that came along; valid for fds of them */
	unsigned int fds;	 /* descriptors in fd; 0 after the call: the client has them now */
};

/* The row of an operation; NULL: no operation of the table has this number. */
const struct urn_ctl_row *urn_ctl_row(const struct urn_ctl_table *t, uint32_t op);
/*
 * Carry out a request: check the request against its row, charge the quotas, call the handler.
 * *rep is written whole; when c is remote and the row says fds_out, and rep->err is 0, then
 * c->reply_fd and c->reply_write_fd are the descriptors that the reply brings.
 */
void urn_ctl_run(const struct urn_ctl_table *t, struct urn_client *c, struct urn_ctl_call *call,
		 struct urn_abi_rep *rep);
/* The same for a caller in this process: the request is whole, and its descriptor stands in it. */
void urn_ctl_call(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep);
/*
 * Check that the client and the dataplane agreed on a feature; 0: nothing is needed. Between calls
 * of the client, or under the adapter's lock.
 *
 * feature: bit of enum urn_abi_feature
 * why, size: on failure the sentence for people, cut to `size` bytes
 * returns: 0; EOPNOTSUPP: they did not
 */
int urn_ctl_need(const struct urn_client *c, uint32_t feature, char *why, size_t size);

/*
 * Bytes of the object that a call makes or takes back, for quotas that count bytes. The
 * handle or key is not checked yet: 0, if there is no such object. (ctl_mem.c, shm.c)
 */
urn_quota_bytes_fn urn_ctl_reg_mr_bytes, urn_ctl_dereg_mr_bytes, urn_ctl_replace_mr_bytes,
	urn_ctl_share_bytes, urn_ctl_unshare_bytes;

/*
 * Find the descriptor for the events of an object. wanted: the request's channel_fd, the handle of
 * a channel when the client is in another process; fd: -1: no events. returns: 0; EINVAL: no such
 * channel. (ctl_event.c)
 */
int urn_ctl_channel_find(const struct urn_client *c, int32_t wanted, struct urn_abi_rep *rep,
			 int *fd);
/*
 * Count the object as a user of its channel, which was found: it is not destroyed while it has
 * users. returns: handle of the channel, for urn_ctl_channel_leave(); 0: the client has none
 */
uint32_t urn_ctl_channel_use(struct urn_client *c, int32_t wanted);
/* The object goes. channel: by urn_ctl_channel_use() */
void urn_ctl_channel_leave(struct urn_client *c, uint32_t channel);

/*
 * Check the capabilities that a request for a queue pair asks for. returns: 0; EINVAL with the
 * reply: a number is too large (ctl_caps.c)
 */
int urn_ctl_check_caps(const struct urn_client *c, const struct urn_abi_req *req,
		       struct urn_abi_rep *rep);

/* True when the client has a region with this lkey. (ctl_mem.c) */
bool urn_ctl_has_region(const struct urn_client *c, uint32_t lkey);

/*
 * Objects of a client that goes are ended in groups: engines are asked once for a group, because
 * each question takes a turn of theirs. A group takes an engine some 50 microseconds.
 */
enum { URN_CTL_TOGETHER = 32 };

/* n objects of a client that goes were taken back: now and then let other clients' calls in.
 * (client.c) */
void urn_ctl_took_back(struct urn_client *c, unsigned int n);
/*
 * Destroy queue pairs of a client that goes, which are in no group any more. qpn[n]: their numbers,
 * at most URN_CTL_TOGETHER, all of one engine. (ctl_qp.c)
 */
void urn_ctl_end_qps(struct urn_client *c, const uint32_t *qpn, unsigned int n);
/* Take back all completion queues of a client that goes; no object uses them any more. (ctl_cq.c)
 */
void urn_ctl_take_back_cqs(struct urn_client *c);
/* Take back all address handles of a client that goes. (ctl_ah.c) */
void urn_ctl_take_back_ahs(struct urn_client *c);
/* The queues of a client that has handed its memory over are told of it. (ctl_cq.c) */
void urn_ctl_reach_cqs(struct urn_client *c);
/* Take back all keys of a client that goes: windows before the regions that they are bound to. (ctl_mem.c) */
void urn_ctl_take_back_keys(struct urn_client *c);

/*
 * A client goes, and all it made in protection domains has gone: take its domains back. Domains
 * that its family shares go to another client of the family. Engines know nothing of the client's
 * space any more once they have begun another turn. (ctl_import.c)
 */
void urn_ctl_take_back_pds(struct urn_client *c);
/* Deallocate a protection domain, whosever it is. returns: 0, or an errno value with the reply
 * (ctl_mem.c) */
int urn_ctl_remove_pd(struct urn_adapter *a, uint32_t pd, struct urn_abi_rep *rep);

/* Detach a queue pair of a client that goes from its multicast groups. (ctl_mcast.c) */
void urn_ctl_leave_groups(struct urn_client *c, struct urn_qp *qp);

#endif
