/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interrupt thread runs the handlers of its sources one by one. So a
 * source of our own, whose handler waits, holds the thread. (An alarm would not
 * do: rte_eal_cleanup() waits for alarms to end.)
 */
#include "pmd_glue/intr.h"

#include <rte_interrupts.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* One interrupt thread a process (DPDK): hence static. */
static struct {
	/* lock protects holds, held and fd; change is signalled under lock. */
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned int holds; /* under lock */
	bool held;          /* under lock: the thread waits in park() */
	int fd;             /* under lock: eventfd of our source; 0: not made yet */
} intr = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* Wait, in the interrupt thread, until all holds are released. */
static void
park(void *arg)
{
	uint64_t count;

	(void)arg;
	pthread_mutex_lock(&intr.lock);
	/* There may be nothing to read: the wake-up was for a hold that is over. */
	(void)!read(intr.fd, &count, sizeof(count));
	intr.held = intr.holds > 0;
	pthread_cond_broadcast(&intr.change);
	while (intr.holds > 0)
		pthread_cond_wait(&intr.change, &intr.lock);
	intr.held = false;
	pthread_mutex_unlock(&intr.lock);
}

/* Make our source, once; it stays until the process ends. returns: 0 or -1 */
static int
source_make(void)
{
	struct rte_intr_handle *handle;
	int fd, rc;

	if (intr.fd > 0)
		return 0;
	handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (handle == NULL || fd <= 0)
		goto fail;
	(void)rte_intr_fd_set(handle, fd);
	(void)rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT);
	rc = rte_intr_callback_register(handle, park, NULL);
	if (rc < 0)
		goto fail;
	/* The EAL has a copy of the handle. */
	rte_intr_instance_free(handle);
	intr.fd = fd;
	return 0;
fail:
	rte_intr_instance_free(handle);
	if (fd >= 0)
		close(fd);
	return -1;
}

int
urn_intr_hold(void)
{
	const uint64_t one = 1;
	int rc;

	if (rte_thread_is_intr())
		return 0;
	pthread_mutex_lock(&intr.lock);
	rc = source_make();
	/* When the thread was released and has not left park() yet, it stays there. */
	if (rc == 0 && intr.holds == 0 && !intr.held)
		rc = write(intr.fd, &one, sizeof(one)) == (ssize_t)sizeof(one) ? 0 : -1;
	if (rc == 0) {
		intr.holds++;
		while (!intr.held)
			pthread_cond_wait(&intr.change, &intr.lock);
	}
	pthread_mutex_unlock(&intr.lock);
	return rc;
}

void
urn_intr_release(void)
{
	if (rte_thread_is_intr())
		return;
	pthread_mutex_lock(&intr.lock);
	if (intr.holds > 0 && --intr.holds == 0)
		pthread_cond_broadcast(&intr.change);
	pthread_mutex_unlock(&intr.lock);
}
