/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving datagrams, and the sleep until one comes. */
#include "msg/sock.h"

#include "abi/clock.h"
#include "msg/pause.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/* Nanoseconds that a reader looks at the ring itself before it sleeps, and of a sleep while an
 * answer is to come. */
enum { URN_SOCK_SPIN_NS = 50000, URN_SOCK_NAP_NS = 1000000 };

/* Copy a datagram out. returns: bytes that found room */
static size_t
urn_sock_scatter(const struct iovec *iov, size_t n, const uint8_t *from, size_t len)
{
	size_t i, done = 0;

	for (i = 0; i < n && done < len; i++) {
		size_t part = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (part > 0)
			memcpy(iov[i].iov_base, from + done, part);
		done += part;
	}
	return done;
}

/* True when a program with a socket of this family, and this peer, gets to see a datagram of that
 * source. */
static bool
urn_sock_takes(const struct urn_sock *s, const struct urn_addr *from)
{
	if (s->family == AF_INET && !urn_addr_is_v4(from->gid))
		return false;
	return !s->connected || (from->port == s->peer.port &&
				 memcmp(from->gid, s->peer.gid, sizeof(from->gid)) == 0);
}

/* The oldest datagram for the program; others are taken away. The socket's lock is held. returns:
 * 1, or 0: none */
static int
urn_sock_next(struct urn_sock *s, struct urn_msg *m, struct urn_addr *from)
{
	struct urn_register_set *set = &s->outlet[0].set;

	while (urn_msg_set_poll(set, m)) {
		from->port = urn_addr_port(m->qid);
		memcpy(from->gid, m->node, sizeof(from->gid));
		if (urn_sock_takes(s, from))
			return 1;
		urn_msg_set_release(set);
	}
	return 0;
}

/* The socket's lock is held: tell sleepers, and pollers that the library does not see, how things
 * are. */
static void
urn_sock_tell(struct urn_sock *s)
{
	if (atomic_load(&s->waiters) != 0 || atomic_load(&s->eager))
		(void)urn_msg_set_show(&s->outlet[0].set);
}

int
urn_sock_recv(struct urn_sock *s, const struct iovec *iov, size_t n, bool peek,
	      struct urn_sock_got *got)
{
	struct urn_msg m;
	int err = 0;

	(void)urn_sock_expects(s);
	(void)urn_msg_mutex_take(&s->lock);
	if (atomic_load(&s->error) != 0)
		err = (int)atomic_exchange(&s->error, 0);
	if (err == 0 && urn_sock_next(s, &m, &got->from)) {
		got->len = m.len;
		got->copied = urn_sock_scatter(iov, n, m.data, m.len);
		if (!peek)
			urn_msg_set_release(&s->outlet[0].set);
	} else if (err == 0) {
		err = urn_dev_gone(&urn_socks_dev(s->socks)->dev) != URN_DEV_THERE ? EIO : EAGAIN;
	}
	urn_sock_tell(s);
	pthread_mutex_unlock(&s->lock);
	return err;
}

size_t
urn_sock_next_len(struct urn_sock *s)
{
	struct urn_addr from;
	struct urn_msg m = {0};
	size_t len = 0;

	(void)urn_msg_mutex_take(&s->lock);
	if (urn_sock_next(s, &m, &from))
		len = m.len;
	pthread_mutex_unlock(&s->lock);
	return len;
}

int
urn_sock_show(struct urn_sock *s)
{
	struct urn_register_set *set = &s->outlet[0].set;
	int err = 0;

	(void)urn_msg_mutex_take(&s->lock);
	atomic_store(&s->eager, 1);
	/* A channel that hung up is readable for ever: its poller must hear why. */
	if (urn_msg_set_waiting(set) == 0)
		err = urn_msg_set_drain(set);
	(void)urn_msg_set_show(set);
	pthread_mutex_unlock(&s->lock);
	return err;
}

void
urn_sock_edge(struct urn_sock *s)
{
	/* An area outlives its sets: the word may at worst be that of a set made since, which wakes
	 * once. */
	struct urn_abi_msg_set *regs = __atomic_load_n(&s->outlet[0].set.regs, __ATOMIC_RELAXED);

	if (regs != NULL)
		atomic_store_explicit(&regs->conf.arm, 1, memory_order_seq_cst);
}

uint64_t
urn_sock_end_of(int64_t ns)
{
	return ns < 0 ? 0 : urn_clock_ns() + (uint64_t)ns;
}

const struct timespec *
urn_sock_left(uint64_t end, struct timespec *ts)
{
	uint64_t now, left;

	if (end == 0)
		return NULL;
	now = urn_clock_ns();
	left = end > now ? end - now : 0;
	ts->tv_sec = (time_t)(left / 1000000000u);
	ts->tv_nsec = (long)(left % 1000000000u);
	return ts;
}

const struct timespec *
urn_sock_nap(const struct timespec *left)
{
	static const struct timespec nap = {.tv_nsec = URN_SOCK_NAP_NS};

	return left == NULL || left->tv_sec > 0 || left->tv_nsec > nap.tv_nsec ? &nap : left;
}

bool
urn_sock_spin(const struct urn_poll_ent *ent, nfds_t n, uint64_t end)
{
	uint64_t until = urn_clock_ns() + URN_SOCK_SPIN_NS;
	uint32_t round;
	nfds_t i;

	if (end != 0 && end < until)
		until = end;
	for (round = 0;; round++) {
		for (i = 0; i < n; i++)
			if (ent[i].sock != NULL && urn_sock_readable(ent[i].sock))
				return true;
		if (round % URN_MSG_YIELD != URN_MSG_YIELD - 1) {
			urn_msg_relax();
			continue;
		}
		if (urn_clock_ns() >= until)
			return false;
		sched_yield();
	}
}

bool
urn_sock_sleeper(struct urn_sock *s, bool comes)
{
	bool some = false;

	(void)urn_msg_mutex_take(&s->lock);
	if (comes) {
		atomic_fetch_add(&s->waiters, 1);
		some = urn_msg_set_show(&s->outlet[0].set);
	} else {
		atomic_fetch_sub(&s->waiters, 1);
		if (atomic_load(&s->waiters) == 0 && !atomic_load(&s->eager))
			urn_msg_set_disarm(&s->outlet[0].set);
	}
	pthread_mutex_unlock(&s->lock);
	return some;
}

bool
urn_sock_restarts(void)
{
	struct sigaction sa;
	int sig;

	for (sig = 1; sig < NSIG; sig++) {
		/* The C library refuses to tell of its own signals. */
		if (sigaction(sig, NULL, &sa) != 0)
			continue;
		if (!(sa.sa_flags & SA_SIGINFO) &&
		    (sa.sa_handler == SIG_DFL || sa.sa_handler == SIG_IGN))
			continue;
		if (!(sa.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

int
urn_sock_wait(struct urn_sock *s, uint64_t end, int other)
{
	const struct urn_poll_ent ent = {.sock = s};
	struct pollfd p[2] = {{.fd = urn_sock_fd(s), .events = POLLIN},
			      {.fd = other, .events = POLLIN}};
	const struct timespec *left;
	struct timespec ts;
	int n = 1, err = 0;
	bool answer;

	if (urn_sock_spin(&ent, 1, end))
		return 0;
	if (end != 0 && urn_clock_ns() >= end)
		return EAGAIN;
	/* An answer to a datagram makes no descriptor readable. */
	answer = urn_sock_expects(s);
	if (atomic_load(&s->error) != 0)
		return 0;
	if (!urn_sock_sleeper(s, true)) {
		left = urn_sock_left(end, &ts);
		n = ppoll(p, 2, answer ? urn_sock_nap(left) : left, NULL);
		err = n < 0 ? errno : 0;
	}
	(void)urn_sock_sleeper(s, false);
	if (n > 0 && p[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
		urn_msg_dev_gone(urn_socks_dev(s->socks));
		return urn_sock_readable(s) ? 0 : EIO;
	}
	return n == 0 && !answer ? EAGAIN : err;
}
