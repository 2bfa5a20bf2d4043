/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One verbs context for a program: embedded, on a dataplane of the program's own with one port and
 * one adapter, or attached to a dataplane in another process.
 */
#ifndef URN_APPS_COMMON_NODE_H
#define URN_APPS_COMMON_NODE_H

#include "common/rig.h"

#include <urnic/verbs.h>

#include <pthread.h>

struct urn_node_config {
	const char *attach; /* socket of a dataplane, or "auto"; NULL: embedded */
	const char *name;   /* name of the node; attached: NULL is allowed, the default one */
	bool session; /* attached: to the virtual device (common/session.h); attach is not NULL */
	/* The rest is for an embedded node only. */
	struct urn_port_config port;	   /* name, queues and mbufs are filled in */
	struct urn_adapter_config adapter; /* addresses and switches; area_size: 0: 64 MiB; the rest is filled in */
	enum urn_idle idle;		   /* idle policy of the engine */
	const char *capture;		   /* pcapng file, or NULL */
	bool thread; /* a thread of the node's own polls the engine, not the caller by
			urn_node_turn() */
};

struct urn_node {
	struct ibv_context *ctx;   /* owner: this struct */
	struct urn_engine *engine; /* NULL: attached, or not open */
	struct urn_port *port;	   /* the rig's port; NULL: attached, or not open */
	struct urn_rig rig;	   /* embedded: the port and the dataplane */
	struct urn_config cfg;	   /* configuration of the rig, with one of each: */
	struct urn_config_port cfg_port;
	struct urn_config_adapter cfg_adapter;
	unsigned int empty;  /* turns in a row with nothing to do */
	pthread_t thread;    /* polls the engine, when threaded */
	bool threaded, stop; /* thread runs; it is to end (atomic) */
	bool held;	     /* urn_node_link() holds the EAL's interrupt thread still */
};

/*
 * Start the EAL for an embedded node, which must not move from here on. urn_node_close() in
 * either case, here and below. program: argv[0] of the EAL, kept. returns: 0, or -1 with *err
 */
int urn_node_start(struct urn_node *n, const char *program, struct urn_err *err);
/* Open the port (after urn_node_start()), or nothing when attached, then the context. returns: 0,
 * or -1 with *err */
int urn_node_open(struct urn_node *n, const struct urn_node_config *cfg, struct urn_err *err);
/*
 * Open a context: of adapter `index` of dp, or when dp is NULL of the dataplane at socket `attach`
 * ("auto" or NULL: where it usually is), node or adapter `name` (NULL: the default one). returns:
 * NULL with *err
 */
struct ibv_context *urn_node_context(struct urn_dp *dp, unsigned int index, const char *attach,
				     const char *name, struct urn_err *err);

/* Say that a call of verbs failed: "cannot WHAT: " and the library's reason. returns: -1, with *err
 */
int urn_node_failed(const char *what, struct urn_err *err);

/* Run one turn of the engine. returns: amount of work that the engine did; attached: 0 */
unsigned int urn_node_turn(struct urn_node *n);
/* Run one turn, and the engine's idle policy when there was nothing to do. */
void urn_node_turn_idle(struct urn_node *n);
/*
 * True when the link is up; attached: always. hold: a memif is only polled from then on, so that
 * its rings stay when the peer dies. Call about once a millisecond.
 */
bool urn_node_link(struct urn_node *n, bool hold);
/* The counters of the adapter; attached: zeroes, for the dataplane's are not this node's alone. */
void urn_node_counters(const struct urn_node *n, struct urn_counters *out);

/*
 * Take the node down, the EAL too, at any stage; objects on the context are gone by now. lost:
 * frames that the capture misses. returns: 0, or -1 with *err: the capture is not whole
 */
int urn_node_close(struct urn_node *n, uint64_t *lost, struct urn_err *err);

#endif
