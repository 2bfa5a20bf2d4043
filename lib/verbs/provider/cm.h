/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management of a provider (urnic/cm.h): the part of its operations that it may lack.
 * The front finds the table in urn_verbs_ops.cm when it opens an end, and in the end from then on.
 */
#ifndef URN_VERBS_PROVIDER_CM_H
#define URN_VERBS_PROVIDER_CM_H

#include <urnic/cm.h>

#include <stdint.h>

struct urn_verbs_cm_ops;

/* An end as the front has it; a provider's own struct begins with it. */
struct urn_cm_end {
	/* The front's; valid after the context is closed, too. */
	const struct urn_verbs_cm_ops *ops;
	/* The provider's, set by open(), for poll() only: readable when an event waits. */
	int fd;
};

/*
 * All but open() and close() return 0 or an errno value, and on failure have set errno and, except
 * for EAGAIN, the error text. Several threads may call at a time, but only one of them event().
 */
struct urn_verbs_cm_ops {
	/* Open an end. returns: NULL with errno and text set on failure */
	struct urn_cm_end *(*open)(struct ibv_context *c);
	/* Close an end, and free it. The context may be closed already, or be the parent's. */
	void (*close)(struct urn_cm_end *end);

	/* Calls that make an id, *id. The provider may fill p->channel_fd in. With URN_CM_TAKE in
	 * `backlog`, listen() takes over the request whose id `service` is. */
	int (*listen)(struct urn_cm_end *end, uint64_t service, uint64_t cookie, uint32_t backlog,
		      uint32_t *id);
	int (*connect)(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id);
	int (*resolve)(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id);

	/* Answers to a request. */
	int (*accept)(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_accept *p);
	int (*reject)(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_reject *p);
	/* data: `len` bytes, at most URN_CM_DATA_MAX; fewer may be too many for the message */
	int (*establish)(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len);
	int (*disconnect)(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len);
	/* No more events come of the id, and of a listener's requests that were not fetched. */
	int (*destroy)(struct urn_cm_end *end, uint32_t id);

	/* Get the oldest event, without a wait. EAGAIN: there is none */
	int (*event)(struct urn_cm_end *end, struct urn_abi_cm_event *ev);
};

#endif
