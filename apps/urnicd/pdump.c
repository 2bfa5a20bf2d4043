/* SPDX-License-Identifier: BSD-3-Clause */
#include "pdump.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <rte_ethdev.h>

typedef int remove_fn(uint16_t port, uint16_t queue, const struct rte_eth_rxtx_callback *cb);

static struct {
	pthread_mutex_t lock;	    /* for the fields below, and held while quiesce runs */
	void (*quiesce)(void *arg); /* NULL: no port is polled */
	void *arg;		    /* its argument */
} pdump = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
nicd_pdump_quiesce(void (*quiesce)(void *arg), void *arg)
{
	pthread_mutex_lock(&pdump.lock);
	pdump.quiesce = quiesce;
	pdump.arg = arg;
	pthread_mutex_unlock(&pdump.lock);
}

/* Call ethdev's function of that name, then wait until no thread is in the callback. */
static int
remove_and_wait(const char *name, uint16_t port, uint16_t queue,
		const struct rte_eth_rxtx_callback *cb)
{
	union {
		void *symbol;
		remove_fn *fn;
	} next = {.symbol = dlsym(RTLD_NEXT, name)};
	int ret = next.symbol != NULL ? next.fn(port, queue, cb) : -ENOTSUP;

	if (ret != 0)
		return ret;
	pthread_mutex_lock(&pdump.lock);
	if (pdump.quiesce != NULL)
		pdump.quiesce(pdump.arg);
	pthread_mutex_unlock(&pdump.lock);
	return 0;
}

int
rte_eth_remove_rx_callback(uint16_t port, uint16_t queue, const struct rte_eth_rxtx_callback *cb)
{
	return remove_and_wait(__func__, port, queue, cb);
}

int
rte_eth_remove_tx_callback(uint16_t port, uint16_t queue, const struct rte_eth_rxtx_callback *cb)
{
	return remove_and_wait(__func__, port, queue, cb);
}
