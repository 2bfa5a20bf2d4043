/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreign.h"

#include "../../shared_page.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

struct end ends[2];

static struct {
	unsigned int done;
	uint8_t code;
} last;

void
ends_open(bool wakes)
{
	struct urn_am_attr attr = {.payload = 20000, .wakes = wakes, .answer_ms = 200000};

	for (unsigned int i = 0; i < 2; i++) {
		struct end *e = &ends[i];

		e->dev = urn_msg_dev_connect(NULL, i == 0 ? "a" : "b");
		CHECK(e->dev != NULL);
		e->ep = urn_am_endpoint_create(e->dev, &attr);
		CHECK(e->ep != NULL);
		EQUAL(urn_am_address(e->ep, 1, &e->address), 0);
	}
}

void
ends_close(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		urn_am_endpoint_destroy(ends[i].ep);
		urn_msg_dev_close(ends[i].dev);
	}
}

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, urn_attach_error());
	exit(1);
}

/* Add memory. A thread that starts or ends may block the signal that stops threads for longer than
 * the library waits, on a busy machine: then once more. returns: as urn_am_memory_add() */
static int
try_to_add(struct end *end, void *p, size_t len, struct urn_am_memory *memory)
{
	int err;

	while ((err = urn_am_memory_add(end->ep, p, len, memory)) == EOPNOTSUPP &&
	       strstr(urn_attach_error(), "a thread of the program") != NULL)
		usleep(20000);
	return err;
}

void
add(struct own *o, struct end *end, void *p, size_t len)
{
	struct urn_am_part all = {&o->memory, p, len};

	o->end = end;
	if (try_to_add(end, p, len, &o->memory) != 0)
		die("adding memory");
	if (urn_am_region_create(end->ep, &all, 1, URN_AM_ACCESS_ALL, &o->key) != 0)
		die("a region");
}

void
take(struct own *o)
{
	EQUAL(urn_am_region_destroy(o->end->ep, o->key), 0);
	EQUAL(urn_am_memory_remove(o->end->ep, &o->memory), 0);
}

void
refused(struct end *end, void *p, size_t len, int err, const char *words)
{
	struct urn_am_memory memory;

	EQUAL(try_to_add(end, p, len, &memory), err);
	EQUAL(errno, err);
	if (urn_attach_error()[0] == '\0' ||
	    (words != NULL && strstr(urn_attach_error(), words) == NULL))
		die(words != NULL ? words : "no sentence");
	if (err == EOPNOTSUPP && strstr(urn_attach_error(), "take memory of urn_alloc()") == NULL)
		die("no advice");
}

static void
on_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)ep;
	(void)bytes;
	(void)arg;
	last.code = code;
	last.done++;
}

void
until(const unsigned int *number, unsigned int value)
{
	while (*(const volatile unsigned int *)number < value) {
		(void)urn_am_progress(ends[0].ep);
		(void)urn_am_progress(ends[1].ep);
		sched_yield();
	}
}

static uint8_t
operate(const struct own *local, void *p, const struct own *remote, const void *at, size_t len,
	uint8_t way, bool write)
{
	struct urn_rma op = {.to = &remote->end->address,
			     .remote = (uintptr_t)at,
			     .key = remote->key,
			     .memory = &local->memory,
			     .local = p,
			     .len = (uint32_t)len,
			     .way = way,
			     .done = on_done};
	unsigned int before = last.done;
	struct urn_am_endpoint *ep = local->end->ep;

	EQUAL(write ? urn_rma_write(ep, &op) : urn_rma_read(ep, &op), 0);
	until(&last.done, before + 1);
	return last.code;
}

uint8_t
put(const struct own *from, const void *local, const struct own *to, void *at, size_t len,
    uint8_t way)
{
	return operate(from, (void *)(uintptr_t)local, to, at, len, way, true);
}

uint8_t
get(const struct own *to, void *local, const struct own *from, const void *at, size_t len,
    uint8_t way)
{
	return operate(to, local, from, at, len, way, false);
}

uint64_t
change(const struct own *to, void *at, uint8_t op, uint8_t size, uint64_t value, uint64_t compare)
{
	uint64_t old = ~UINT64_C(0);
	struct urn_rma_atomic a = {.to = &to->end->address,
				   .remote = (uintptr_t)at,
				   .key = to->key,
				   .value = value,
				   .compare = compare,
				   .old = &old,
				   .op = op,
				   .size = size,
				   .done = on_done};
	unsigned int before = last.done;

	EQUAL(urn_rma_atomic(ends[0].ep, &a), 0);
	until(&last.done, before + 1);
	EQUAL(last.code, URN_AM_DONE);
	return old;
}

bool
shared(const void *p)
{
	return page_is_shared(p) == 1;
}

void *
fresh(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}
