/* SPDX-License-Identifier: BSD-3-Clause */
#include "msg_fake.h"

#include "abi/agree.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MSG_FAKE_AREA ((size_t)1 << 30)

static void *
msg_fake_at(struct msg_fake *f, uint64_t off)
{
	return (uint8_t *)f->channel.area + off;
}

static uint64_t
msg_fake_alloc(struct msg_fake *f, uint64_t bytes)
{
	uint64_t off = f->used;

	f->used += (bytes + 4095) & ~4095ull;
	assert_true(f->used <= MSG_FAKE_AREA);
	return off;
}

/* ---- the engine; the lock is held */

static struct msg_fake_set *
msg_fake_find(struct msg_fake *f, uint64_t qid)
{
	unsigned int i;

	for (i = 0; i < MSG_FAKE_SETS; i++) {
		struct msg_fake_set *s = &f->set[i];

		if (s->used && (urn_msg_qid_is_named(qid) ? s->name != 0 && s->name == (uint32_t)qid
							  : s->number == qid))
			return s;
	}
	return NULL;
}

static void
msg_fake_fire(struct msg_fake *f, struct msg_fake_set *s)
{
	struct urn_abi_msg_set *r = msg_fake_at(f, s->off);
	struct urn_abi_event ev = {
		.type = URN_EVENT_MSG, .handle = (uint32_t)(s - f->set) + 1, .cookie = s->cookie};

	if (!atomic_exchange(&r->conf.arm, 0))
		return;
	atomic_fetch_add(&r->rstat.pending, 1);
	if (s->fd >= 0)
		assert_int_equal(write(s->fd, &ev, sizeof(ev)), sizeof(ev));
	atomic_fetch_add(&f->events, 1);
}

static uint8_t
msg_fake_put(struct msg_fake *f, uint64_t qid, const uint8_t node[16], uint64_t from,
	     const void *data, uint32_t len)
{
	struct msg_fake_set *s = msg_fake_find(f, qid);
	struct urn_abi_msg_set *r;
	struct urn_abi_msg_entry *e;
	uint32_t tail;

	if (s == NULL || s->conf.entries == 0)
		return URN_MSG_NO_QUEUE;
	r = msg_fake_at(f, s->off);
	tail = atomic_load(&r->rstat.tail);
	if (len + sizeof(*e) > s->conf.entry_size)
		return URN_MSG_TOO_LONG;
	if (tail - atomic_load(&r->ctrl.head) == s->conf.entries)
		return URN_MSG_QUEUE_FULL;
	e = msg_fake_at(f, s->arena_off + s->conf.base +
				   (uint64_t)(tail & (s->conf.entries - 1)) * s->conf.entry_size);
	*e = (struct urn_abi_msg_entry){.len = len, .qid = from};
	memcpy(e->node, node, 16);
	memcpy(e + 1, data, len);
	atomic_store(&r->rstat.tail, tail + 1);
	msg_fake_fire(f, s);
	return URN_MSG_DONE;
}

static uint8_t
msg_fake_answer(struct msg_fake *f, struct msg_fake_set *s, const struct urn_abi_msg_send *send)
{
	static const uint8_t far[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9};
	uint64_t from = s->name ? URN_MSG_NAME(s->name) : s->number;
	int own = memcmp(send->node, f->gid[0], 16) == 0   ? 0
		  : memcmp(send->node, f->gid[1], 16) == 0 ? 1
							   : -1;

	if (f->force)
		return f->force;
	if (own < 0)
		return memcmp(send->node, far, 16) == 0 ? URN_MSG_UNREACHABLE | URN_MSG_MAY_BE_THERE
							: URN_MSG_NO_NODE;
	return msg_fake_put(f, send->qid, f->gid[own], from,
			    msg_fake_at(f, s->arena_off + send->addr), send->size);
}

/* Answer a send doorbell, or leave it for the next round when the retry policy says so. */
static void
msg_fake_send(struct msg_fake *f, struct msg_fake_set *s)
{
	struct urn_abi_msg_set *r = msg_fake_at(f, s->off);
	uint32_t seq = atomic_load(&r->send.seq);
	uint8_t code;

	if (seq == s->answered || atomic_load(&f->hold))
		return;
	code = msg_fake_answer(f, s, &r->send);
	if (urn_msg_code_kind(code) & r->send.retry_kinds && s->tries++ < r->send.retries)
		return;
	s->tries = 0;
	s->answered = seq;
	atomic_store(&f->try_us, (uint64_t)r->send.retry_us * r->send.retries);
	atomic_fetch_add(&f->sends, 1);
	atomic_store(&r->sstat.answer, URN_MSG_ANSWER(seq, code));
}

static void
msg_fake_conf(struct msg_fake *f, struct msg_fake_set *s)
{
	struct urn_abi_msg_set *r = msg_fake_at(f, s->off);
	uint32_t seq = atomic_load(&r->conf.seq);

	if (seq == s->conf_seq)
		return;
	s->conf_seq = seq;
	memcpy(&s->conf, &r->conf, sizeof(s->conf));
	atomic_store(&r->rstat.tail, 0);
	atomic_store(&r->rstat.state, URN_MSGQ_OPEN);
	atomic_store(&r->rstat.conf_seq, seq);
}

static void *
msg_fake_run(void *arg)
{
	struct msg_fake *f = arg;
	const struct timespec nap = {.tv_nsec = 20000};
	unsigned int i;

	while (!atomic_load(&f->stop)) {
		pthread_mutex_lock(&f->lock);
		for (i = 0; i < MSG_FAKE_SETS; i++) {
			struct msg_fake_set *s = &f->set[i];
			struct urn_abi_msg_set *r = msg_fake_at(f, s->off);
			uint64_t bit = 1ull << (i + 1) % 64;

			if (!s->used)
				continue;
			msg_fake_conf(f, s);
			msg_fake_send(f, s);
			/* A doorbell with messages in the queue makes the engine look at `arm`. */
			if (atomic_fetch_and(&f->db->leaf[(i + 1) / 64], ~bit) & bit &&
			    atomic_load(&r->rstat.tail) != atomic_load(&r->ctrl.head))
				msg_fake_fire(f, s);
		}
		pthread_mutex_unlock(&f->lock);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* ---- control calls */

static int
msg_fake_open(struct msg_fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	static uint32_t generation = 77;
	unsigned int i = 0;

	while (i < MSG_FAKE_SETS && f->set[i].used)
		i++;
	if (i == MSG_FAKE_SETS)
		return EDQUOT;
	f->set[i] = (struct msg_fake_set){
		.used = true,
		.off = msg_fake_alloc(f, sizeof(struct urn_abi_msg_set)),
		.arena_off = msg_fake_alloc(f, req->msg_open.arena),
		.arena = req->msg_open.arena,
		.cookie = req->msg_open.cookie,
		.number = URN_MSG_QID(generation++, 0, i),
		.fd = req->msg_open.channel_fd,
	};
	rep->handle = i + 1;
	rep->msg.off = f->set[i].off;
	rep->msg.arena_off = f->set[i].arena_off;
	rep->msg.arena = f->set[i].arena;
	rep->msg.qid = f->set[i].number;
	rep->msg.db = i + 1;
	atomic_fetch_add(&f->opens, 1);
	return 0;
}

static int
msg_fake_bind(struct msg_fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	uint32_t name = req->msg_bind.name;
	bool any = (req->msg_bind.flags & URN_MSG_BIND_ANY) != 0;

	while (any && name < req->msg_bind.end && msg_fake_find(f, URN_MSG_NAME(name)) != NULL)
		name++;
	if ((any && name == req->msg_bind.end) ||
	    (!any && name && msg_fake_find(f, URN_MSG_NAME(name)) != NULL))
		return EADDRINUSE;
	f->set[req->handle - 1].name = name;
	rep->msg.qid = URN_MSG_NAME(name);
	return 0;
}

static int
msg_fake_serve(struct msg_fake *f, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	switch (req->op) {
	case URN_CTL_HELLO:
		rep->device = (struct urn_abi_device){
			.version = URN_ABI_VERSION,
			.engines = 1,
			.gids = 3,
			.features = (uint32_t)URN_ABI_FEATURES &
				    ~(f->old ? (uint32_t)URN_ABI_FEATURE_MSG : 0),
			.area_size = MSG_FAKE_AREA,
			.name = "fake0",
		};
		return 0;
	case URN_CTL_QUERY_GID:
		if (req->gid.index > 0)
			memcpy(rep->gid.gid, f->gid[req->gid.index - 1], 16);
		return 0;
	case URN_CTL_MSG_OPEN:
		return msg_fake_open(f, req, rep);
	case URN_CTL_MSG_BIND:
		return msg_fake_bind(f, req, rep);
	case URN_CTL_MSG_CLOSE:
		f->set[req->handle - 1].used = false;
		atomic_fetch_add(&f->closes, 1);
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

static void
msg_fake_call(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct msg_fake *f = ctx;

	pthread_mutex_lock(&f->lock);
	rep->err = msg_fake_serve(f, req, rep);
	if (rep->err != 0)
		snprintf(rep->why, sizeof(rep->why), "the fake says no");
	pthread_mutex_unlock(&f->lock);
}

static void
msg_fake_wake(void *ctx, uint32_t engine)
{
	(void)ctx;
	(void)engine;
}

static void
msg_fake_close(void *ctx)
{
	(void)ctx;
}

/* ---- the test's side */

static void *
msg_fake_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

struct msg_fake *
msg_fake_new(void)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
	static const uint8_t v6[16] = {[0] = 0xfd, [15] = 1};
	struct msg_fake *f = msg_fake_map(sizeof(*f));
	pthread_mutexattr_t attr;

	f->channel = (struct urn_abi_channel){
		.ctx = f,
		.call = msg_fake_call,
		.wake = msg_fake_wake,
		.close = msg_fake_close,
		.area = msg_fake_map(MSG_FAKE_AREA),
	};
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&f->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	f->db = msg_fake_at(f, msg_fake_alloc(f, sizeof(*f->db)));
	memcpy(f->gid[0], v4, 16);
	memcpy(f->gid[1], v6, 16);
	assert_int_equal(pthread_create(&f->thread, NULL, msg_fake_run, f), 0);
	return f;
}

void
msg_fake_free(struct msg_fake *f)
{
	atomic_store(&f->stop, true);
	pthread_join(f->thread, NULL);
	munmap(f->channel.area, MSG_FAKE_AREA);
	munmap(f, sizeof(*f));
}

uint8_t
msg_fake_deliver(struct msg_fake *f, uint64_t qid, const uint8_t node[16], uint64_t from,
		 const void *data, uint32_t len)
{
	uint8_t code;

	pthread_mutex_lock(&f->lock);
	code = msg_fake_put(f, qid, node, from, data, len);
	pthread_mutex_unlock(&f->lock);
	return code;
}

unsigned int
msg_fake_open_sets(struct msg_fake *f)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&f->lock);
	for (i = 0; i < MSG_FAKE_SETS; i++)
		n += f->set[i].used;
	pthread_mutex_unlock(&f->lock);
	return n;
}
