/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile_msg.h"

#include "control/adapter.h"
#include "control/objects.h"
#include "msg/msg.h"
#include "transport/flow_priv.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = 65534, LIFE_S = 300, QUIET_S = 20 };

void
hostile_msg_fail(struct hostile_page *page, uint32_t line)
{
	page->line = line;
	_exit(1);
}

struct urn_msg_dev *
hostile_msg_connect(struct hostile_page *page, const char *path)
{
	bool root = geteuid() == 0;
	struct urn_msg_dev *dev;

	alarm(LIFE_S);
	/* Another user, who may use the socket all the same: files are looked up for root until the
	 * process is attached. */
	HOSTILE_HOLD(page, !root || (seteuid(NOBODY) == 0 && setfsuid(0) >= 0));
	dev = urn_msg_dev_connect(path, "a");
	HOSTILE_HOLD(page, dev != NULL);
	HOSTILE_HOLD(page, !root || (seteuid(0) == 0 && setuid(NOBODY) == 0));
	return dev;
}

struct hostile_page *
hostile_page_new(void)
{
	void *p = mmap(NULL, sizeof(struct hostile_page), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

pid_t
hostile_msg_start(struct rig *r, struct hostile_page *page,
		  void (*body)(struct hostile_page *page, const char *path))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	hostile_attacking = true;
	body(page, r->path);
	_exit(1);
}

/* The hostile process works, and none of its checks failed. */
static void
is_alive(const struct hostile_page *page, pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, WNOHANG) != 0)
		fail_msg("the hostile process ended with status 0x%x: its check in line %u",
			 (unsigned int)status, page->line);
}

void
hostile_msg_wait(struct hostile_page *page, pid_t pid, uint32_t n)
{
	while (page->rounds < n) {
		is_alive(page, pid);
		usleep(1000);
	}
}

void
hostile_msg_kill(struct hostile_page *page, const struct rig *r, pid_t pid, uint64_t n)
{
	int status;

	is_alive(page, pid);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(hostile_clients(r, n), n);
}

/* ---- registers by hand */

uint32_t
hostile_ring(struct urn_register_set *s, uint64_t addr, uint32_t size, const uint8_t node[16],
	     uint64_t qid)
{
	struct urn_abi_msg_send *l = &s->regs->send;
	uint32_t seq = atomic_load(&l->seq) + 1;

	l->addr = addr;
	l->size = size;
	memcpy(l->node, node, 16);
	l->qid = qid;
	atomic_store_explicit(&l->seq, seq, memory_order_release);
	urn_dev_ring(&s->dev->dev, s->engine, s->db);
	return seq;
}

uint8_t
hostile_answer(struct urn_register_set *s, uint32_t seq)
{
	uint64_t a;

	do {
		sched_yield();
		a = atomic_load_explicit(&s->regs->sstat.answer, memory_order_acquire);
	} while (urn_msg_answer_seq(a) != seq || urn_msg_answer_code(a) == URN_MSG_PENDING);
	return urn_msg_answer_code(a);
}

uint32_t
hostile_configure(struct urn_register_set *s, uint64_t base, uint32_t entries, uint32_t entry_size)
{
	struct urn_abi_msg_conf *c = &s->regs->conf;
	uint32_t seq = atomic_load(&c->seq) + 1;

	c->base = base;
	c->entries = entries;
	c->entry_size = entry_size;
	atomic_store_explicit(&c->seq, seq, memory_order_release);
	urn_dev_ring(&s->dev->dev, s->engine, s->db);
	while (atomic_load_explicit(&s->regs->rstat.conf_seq, memory_order_acquire) != seq)
		sched_yield();
	return atomic_load_explicit(&s->regs->rstat.state, memory_order_acquire);
}

/* ---- amounts */

struct looking {
	const struct urn_tp *tp;
	const struct urn_msg_regs *regs;
	struct hostile_have *h;
};

/* In the engine's thread. */
static void
look(void *arg)
{
	const struct looking *l = arg;

	l->h->sets += urn_msg_count(l->regs);
	l->h->wholes += l->tp->flows->wholes;
	l->h->work += l->tp->left.work;
}

void
hostile_have(struct rig *r, struct hostile_have *h)
{
	memset(h, 0, sizeof(*h));
	for (unsigned int i = 0; i < r->dp->adapters_n; i++) {
		struct urn_adapter *a = r->dp->adapter[i];
		const struct urn_client *c;

		for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++) {
			struct looking l = {.h = h};

			if (!a->shard[e])
				continue;
			l.tp = a->shard[e]->tp;
			l.regs = a->shard[e]->msg;
			urn_engine_call(a->shard[e]->engine, look, &l);
		}
		pthread_mutex_lock(&a->lock);
		c = LIST_FIRST(&a->clients);
		if (i == 0 && c && c->quota.account) { /* one ledger for all */
			pthread_mutex_lock(&c->quota.account->ledger->lock);
			memcpy(h->used, c->quota.account->ledger->used, sizeof(h->used));
			pthread_mutex_unlock(&c->quota.account->ledger->lock);
		}
		pthread_mutex_unlock(&a->lock);
	}
}

void
hostile_have_again(struct rig *r, const struct hostile_have *before)
{
	time_t end = time(NULL) + QUIET_S;
	struct hostile_have now;

	do {
		sched_yield();
		hostile_have(r, &now);
	} while (memcmp(&now, before, sizeof(now)) != 0 && time(NULL) < end);
	assert_int_equal(now.sets, before->sets);
	assert_int_equal(now.wholes, before->wholes);
	assert_int_equal(now.work, before->work);
	for (unsigned int i = 0; i < URN_QUOTAS; i++)
		if (now.used[i] != before->used[i])
			fail_msg("quota %u: %llu, before %llu", i, (unsigned long long)now.used[i],
				 (unsigned long long)before->used[i]);
}
