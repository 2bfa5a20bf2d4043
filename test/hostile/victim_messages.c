/* SPDX-License-Identifier: BSD-3-Clause */
/* A victim with register sets and endpoints: its messages arrive once, whole, and its writes too.
 */
#include "victim.h"

#include <urnic/am.h>
#include <urnic/msg.h>

#include <sched.h>
#include <string.h>

enum { SIZE = 256, LEN = 4096, HANDLER = 3, PATIENCE_MS = 100000 };

struct side {
	struct urn_msg_dev *dev;
	struct urn_register_set *set;
	struct urn_am_endpoint *ep;
	struct urn_am_memory memory;
	struct urn_am_address address;
	uint8_t *buf; /* LEN bytes */
	uint64_t key;
	uint64_t served; /* requests that came */
};

static void
serve(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	struct side *s = arg;

	(void)ep;
	FOE_MUST(m->args == 1 && m->arg[0] == s->served + 1,
		 "a request came twice, or not in turn");
	s->served++;
}

static void
side_open(struct side *s, const struct foe *f, const char *node)
{
	const struct urn_msg_attr attr = {.send_size = SIZE, .recv_size = SIZE, .entries = 8};
	const struct urn_am_attr am = {.answer_ms = PATIENCE_MS};
	struct urn_am_part all;

	memset(s, 0, sizeof(*s));
	s->dev = urn_msg_dev_connect(f->path, node);
	FOE_MUST(s->dev != NULL, "attach");
	s->set = urn_msg_set_create(s->dev, &attr);
	FOE_MUST(s->set != NULL, "register set");
	s->ep = urn_am_endpoint_create(s->dev, &am);
	FOE_MUST(s->ep != NULL, "endpoint");
	s->buf = urn_alloc(LEN);
	FOE_MUST(s->buf != NULL && urn_am_memory_add(s->ep, s->buf, LEN, &s->memory) == 0,
		 "memory");
	all = (struct urn_am_part){&s->memory, s->buf, LEN};
	FOE_MUST(urn_am_region_create(s->ep, &all, 1, URN_AM_ACCESS_ALL, &s->key) == 0, "region");
	FOE_MUST(urn_am_address(s->ep, 1, &s->address) == 0, "address");
	FOE_MUST(urn_am_handle(s->ep, HANDLER, serve, s) == 0, "handler");
}

static void
side_close(struct side *s)
{
	FOE_MUST(urn_am_memory_remove(s->ep, &s->memory) == 0, "memory");
	urn_am_endpoint_destroy(s->ep);
	urn_msg_set_destroy(s->set);
	urn_msg_dev_close(s->dev);
	urn_free(s->buf);
}

/* A message from set to set, which arrives once. */
static void
one_message(struct side s[2], const struct urn_msg_to *to, uint64_t n)
{
	uint8_t bytes[SIZE], code = 0;
	struct urn_msg m;

	memset(bytes, (int)n, sizeof(bytes));
	FOE_MUST(urn_msg_set_send_wait(s[0].set, to, bytes, SIZE, -1, &code) == 0, "send");
	FOE_MUST(code == URN_MSG_DONE, urn_msg_code_word(code));
	FOE_MUST(urn_msg_set_poll(s[1].set, &m) == 1, "a message is not there");
	FOE_MUST(m.qid == urn_msg_set_qid(s[0].set) && m.len == SIZE &&
			 memcmp(m.data, bytes, SIZE) == 0,
		 "the bytes of a message are not there");
	urn_msg_set_release(s[1].set);
	FOE_MUST(urn_msg_set_poll(s[1].set, &m) == 0, "a message came twice");
}

static void
on_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)ep;
	FOE_MUST(code == URN_AM_DONE && bytes == LEN, urn_am_code_word(code));
	*(bool *)arg = true;
}

static void
on_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *failure, void *arg)
{
	(void)ep;
	(void)arg;
	foe_die(failure->text);
}

/* A request that is handled, and a write to the other's memory. */
static void
one_operation(struct side s[2], uint64_t n)
{
	bool done = false;
	struct urn_rma op = {.to = &s[1].address,
			     .remote = (uintptr_t)s[1].buf,
			     .key = s[1].key,
			     .memory = &s[0].memory,
			     .local = s[0].buf,
			     .len = LEN,
			     .done = on_done,
			     .arg = &done};

	memset(s[0].buf, (int)n, LEN);
	FOE_MUST(urn_rma_write(s[0].ep, &op) == 0, "write");
	FOE_MUST(urn_am_request(s[0].ep, &s[1].address, HANDLER, &n, 1, NULL, 0, NULL) == 0,
		 "request");
	while (!done || urn_am_pending(s[0].ep) != 0) {
		(void)urn_am_progress(s[0].ep);
		(void)urn_am_progress(s[1].ep);
		sched_yield();
	}
	FOE_MUST(s[1].served == n, "a request was not handled");
	FOE_MUST(memcmp(s[0].buf, s[1].buf, LEN) == 0, "the bytes of a write are not there");
}

void
victim_messages(const struct foe *f, const struct victim_wish *w)
{
	struct urn_msg_to to = {.retries = UINT16_MAX, .retry_kinds = URN_MSG_RETRY_BUSY};
	struct victim_times t;
	struct side s[2];
	uint64_t from;

	side_open(&s[0], f, "a");
	side_open(&s[1], f, "b");
	urn_am_on_failure(s[0].ep, on_failure, NULL);
	FOE_MUST(urn_msg_dev_gid(s[1].dev, 1, to.node) == 0, "GID");
	to.qid = urn_msg_set_qid(s[1].set);
	one_message(s, &to, 0);
	victim_begin(&t);
	do {
		from = victim_now();
		one_message(s, &to, t.n + 1);
		one_operation(s, t.n + 1);
	} while (victim_count(&t, w, from));
	victim_print(&t, "messages");
	side_close(&s[0]);
	side_close(&s[1]);
}
