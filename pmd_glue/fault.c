/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/fault.h"

#include "pmd_glue/bond.h"
#include "pmd_glue/plug.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

/* The point that a thread returns to from a burst that faults. */
static _Thread_local struct {
	sigjmp_buf back;
	volatile sig_atomic_t armed; /* the thread is in such a burst */
} way;

static const int fault_signals[] = {SIGSEGV, SIGBUS};
/* Handlers that were there before; owner: urn_fault_setup(). */
static struct sigaction before[RTE_DIM(fault_signals)];

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	unsigned int i = sig == SIGBUS;

	if (way.armed) {
		way.armed = 0;
		siglongjmp(way.back, 1);
	}
	/* The fault is not ours: do what would have happened without this handler. */
	if ((before[i].sa_flags & SA_SIGINFO) != 0 && before[i].sa_sigaction != NULL) {
		before[i].sa_sigaction(sig, info, context);
	} else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
		before[i].sa_handler(sig);
	} else {
		/* The instruction runs again, now with the default action. */
		signal(sig, SIG_DFL);
	}
}

static int setup_errno;

static void
setup_once(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	unsigned int i;

	sigemptyset(&sa.sa_mask);
	for (i = 0; i < RTE_DIM(fault_signals); i++)
		if (sigaction(fault_signals[i], &sa, &before[i]) != 0)
			setup_errno = errno;
}

int
urn_fault_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, setup_once);
	errno = setup_errno;
	return setup_errno == 0 ? 0 : -1;
}

static void
mark(const struct urn_port *port)
{
	/* The only field of a port that its pollers write. */
	__atomic_store_n(&((struct urn_port *)(uintptr_t)port)->faulted, true, __ATOMIC_RELEASE);
}

uint16_t
urn_fault_rx(const struct urn_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got;

	memset(m, 0, n * sizeof(*m));
	if (sigsetjmp(way.back, 0) != 0) {
		mark(port);
		/* Packets that were complete are valid. */
		for (got = 0; got < n && m[got] != NULL; got++)
			;
		return got;
	}
	way.armed = 1;
	got = rte_eth_rx_burst(port->id, queue, m, n);
	way.armed = 0;
	return got;
}

uint16_t
urn_fault_tx(const struct urn_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t sent;

	if (sigsetjmp(way.back, 0) != 0) {
		mark(port);
		/* Some packets are freed and some are not: none is the caller's any more. */
		return n;
	}
	way.armed = 1;
	sent = rte_eth_tx_burst(port->id, queue, m, n);
	way.armed = 0;
	return sent;
}

uint16_t
urn_port_rx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t got;

	p = urn_bond_active(p);
	got = urn_port_may_poll(p) ? urn_fault_rx(p, queue, m, n) : 0;
	if (urn_port_plugged(p) == URN_PORT_UP)
		return got;
	/* The cable is out: drop the packets, as if none had come. */
	rte_pktmbuf_free_bulk(m, got);
	return 0;
}

uint16_t
urn_port_tx_slow(const struct urn_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	p = urn_bond_active(p);
	if (urn_port_plugged(p) != URN_PORT_UP)
		return 0;
	return urn_port_may_poll(p) ? urn_fault_tx(p, queue, m, n) : 0;
}
