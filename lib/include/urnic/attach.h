/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaching to a dataplane: how a program gets a verbs context.
 *
 * A channel (lib/abi/control.h) is the way to one adapter of one dataplane.
 * An embedded dataplane makes one with urn_dp_attach(). There are three ways to a
 * verbs context:
 *
 *   - urn_attach_connect(path, node) for a dataplane that is a process of its
 *     own. The adapters of a dataplane at the usual path are in the list of
 *     ibv_get_device_list() too.
 *
 *   - urn_attach_open(channel) gives the context at once. Nothing is global: a
 *     program may hold any number of contexts on any number of dataplanes.
 *
 *   - urn_attach_offer(make, arg) puts a device into the list that
 *     ibv_get_device_list() returns, for programs and tests that find their
 *     device there. ibv_open_device() calls make(arg) for each open.
 *
 * All calls may be made from any thread.
 */
#ifndef URNIC_ATTACH_H
#define URNIC_ATTACH_H

#include <urnic/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

struct urn_abi_channel;

/*
 * Open a verbs context over a channel.
 *
 * channel: taken over: ibv_close_device() closes it, and so does this call
 *          when it fails
 * returns: the context; NULL with errno set on failure (EINVAL without a
 *          channel, EPROTO for a dataplane of another version, ENOMEM, or what
 *          the dataplane answered), and urn_attach_error() says why
 */
struct ibv_context *urn_attach_open(struct urn_abi_channel *channel);

/*
 * Attach to a dataplane that is a process of its own (urnicd), and open a verbs
 * context on one of its adapters.
 *
 * path: the dataplane's socket; NULL: URNIC_SOCKET of the environment, or else
 *       $XDG_RUNTIME_DIR/urnic/urnicd.sock, or else /run/urnic/urnicd.sock
 * node: the node or the adapter, by name; NULL: URNIC_NODE of the environment, or
 *       else the first adapter
 * returns: the context; NULL with errno set on failure (ENOENT, ECONNREFUSED: no
 *          dataplane there; EACCES; EPROTO: of another version; ENODEV: no such
 *          adapter; ETIMEDOUT: the dataplane did not answer within URNIC_TIMEOUT
 *          seconds of the environment, or 10), and urn_attach_error() says why
 */
struct ibv_context *urn_attach_connect(const char *path, const char *node);

/*
 * Allocate memory that is shared with dataplanes in other processes: they reach regions in
 * shared memory at the speed of memory, all other regions through the kernel (doc/reference/urnicd.md).
 * The memory is zeroed, on pages of its own. Embedded dataplanes reach any memory; shared
 * memory does no harm there. A child of fork() shares the memory with its parent.
 *
 * The first dataplane process with which a region in shared memory is registered has that
 * memory alone: regions in it of other dataplanes, or of the same one after all its devices
 * were closed, are reached through the kernel, as in other memory. Memory allocated after
 * that is new.
 *
 * returns: NULL with errno set when there is none
 */
void *urn_alloc(size_t bytes);
/* Give memory of urn_alloc() back; its regions have been deregistered before. NULL is allowed. */
void urn_free(void *p);

/*
 * The reason why this thread's last failed control call failed: a sentence for
 * people. Control calls are those that make, change, query and destroy
 * objects; posting and polling leave no text.
 *
 * returns: the text, never NULL, "" before the first failure; good until the
 *          thread's next control call that fails
 */
const char *urn_attach_error(void);

/* Makes a channel for a device on offer. returns: NULL with errno set on failure */
typedef struct urn_abi_channel *(*urn_attach_make_fn)(void *arg);

/*
 * Offer a device to ibv_get_device_list().
 *
 * make(arg) is called once now, to learn the device's name and GUID (that
 * channel is closed again), and at each ibv_open_device(); from any thread.
 * returns: 0, or an errno value; urn_attach_error() says why
 */
int urn_attach_offer(urn_attach_make_fn make, void *arg);

/*
 * Take back all offers made with `make` and `arg`. Device lists got before still name the
 * device until they are freed, but ibv_open_device() fails on it with ENODEV;
 * contexts that are open stay open. No call of make(arg) begins after this call
 * returns, so the target of `arg` may then be freed; this call waits for a make(arg) in
 * progress, and therefore must not be called from within `make`.
 * returns: 0; ENOENT when there was no such offer
 */
int urn_attach_withdraw(urn_attach_make_fn make, void *arg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
