/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with an endpoint on node a and one on node b, whose dataplane is killed and started
 * again: am_kill.py says when, by a line on the standard input. A line on the standard output tells
 * what each step found.
 *
 * Usage: am-lives SOCKET
 */
#include <urnic/am.h>
#include <urnic/attach.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/select.h>
#include <unistd.h>

enum { MEM = 1 << 20, LEN = 60000, SLOTS = 16, WAIT_S = 20, HANDLER = 3 };

/* An endpoint with its device and its memory. */
struct end {
	struct urn_msg_dev *dev;
	struct urn_am_endpoint *ep;
	struct urn_am_address address;
	struct urn_am_memory memory;
	uint8_t *buf;
	uint64_t key;
};

/* Numbers of what was issued and of what ended. */
struct tally {
	uint64_t operations, done, failed; /* operations that were taken, and that ended */
	uint64_t requests, answered, unanswered;
	uint8_t code; /* the last operation's that failed */
	int err;      /* the last request's that failed */
};

static struct tally tally;

static void __attribute__((noreturn)) die(const char *what)
{
	printf("%s: %s\n", what, urn_attach_error());
	exit(1);
}

static void
say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static void
on_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)ep;
	(void)bytes;
	(void)arg;
	if (code == URN_AM_DONE) {
		tally.done++;
	} else {
		tally.failed++;
		tally.code = code;
	}
}

static void
on_failure(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)ep;
	(void)arg;
	tally.unanswered++;
	tally.err = f->err;
}

/* The handler of requests; the reply goes to the same number. */
static void
on_message(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	if (m->token == 0)
		tally.answered++;
	else if (urn_am_reply(ep, m->token, HANDLER, NULL, 0, NULL, 0) != 0)
		die("reply");
}

static void
open_end(struct end *e, const char *socket, const char *node)
{
	struct urn_am_part all;

	memset(e, 0, sizeof(*e));
	e->dev = urn_msg_dev_connect(socket, node);
	e->ep = e->dev ? urn_am_endpoint_create(e->dev, NULL) : NULL;
	e->buf = urn_alloc(MEM);
	if (!e->ep || !e->buf || urn_am_memory_add(e->ep, e->buf, MEM, &e->memory) != 0 ||
	    urn_am_address(e->ep, 1, &e->address) != 0)
		die(node);
	all = (struct urn_am_part){&e->memory, e->buf, MEM};
	if (urn_am_region_create(e->ep, &all, 1, URN_AM_ACCESS_ALL, &e->key) != 0)
		die("region");
	urn_am_handle(e->ep, HANDLER, on_message, NULL);
	urn_am_on_failure(e->ep, on_failure, NULL);
}

static void
close_end(struct end *e)
{
	(void)urn_am_memory_remove(e->ep, &e->memory);
	urn_am_endpoint_destroy(e->ep);
	urn_msg_dev_close(e->dev);
	urn_free(e->buf);
}

/* Issue a write or a read. returns: as urn_rma_write() */
static int
operate(struct end *from, const struct urn_am_address *to, const struct end *mem, bool write)
{
	struct urn_rma op = {.to = to,
			     .remote = (uintptr_t)mem->buf,
			     .key = mem->key,
			     .memory = &from->memory,
			     .local = from->buf,
			     .len = LEN,
			     .done = on_done};
	int err = write ? urn_rma_write(from->ep, &op) : urn_rma_read(from->ep, &op);

	tally.operations += err == 0;
	return err;
}

static int
request(struct end *from, const struct end *to)
{
	int err = urn_am_request(from->ep, &to->address, HANDLER, NULL, 0, NULL, 0, NULL);

	tally.requests += err == 0;
	return err;
}

/* True when a line waits on the standard input, or its end. */
static bool
told(void)
{
	fd_set in;
	struct timeval now = {0};

	FD_ZERO(&in);
	FD_SET(0, &in);
	return select(1, &in, NULL, NULL, &now) == 1;
}

static void
read_line(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static bool
is_open(const struct end *e)
{
	return urn_rma_pending(e->ep) || urn_am_pending(e->ep);
}

/*
 * Keep as much under way as there is room for until both calls of node a say EIO; node b answers
 * requests only until a line comes. returns: seconds from the first EIO until nothing is pending,
 * at most WAIT_S
 */
static time_t
work(struct end *a, struct end *b)
{
	bool serve = true, first = true;
	time_t eio = 0;

	for (uint64_t n = 0; !eio || (is_open(a) && time(NULL) - eio < WAIT_S); n++) {
		int op = operate(a, &b->address, b, n & 1), req = request(a, b);

		if ((op != 0 && op != EAGAIN && op != EIO) ||
		    (req != 0 && req != EAGAIN && req != EIO))
			die("call");
		if (op == EIO && req == EIO && !eio)
			eio = time(NULL);
		(void)urn_am_progress(a->ep);
		if (serve)
			(void)urn_am_progress(b->ep);
		if (first && tally.done > 100 && tally.answered > 100) {
			say("works");
			first = false;
		}
		if (serve && n % 64 == 0 && told()) {
			read_line();
			serve = false; /* from here on requests wait for their answers */
			while (urn_am_pending(a->ep) < 8 && request(a, b) == 0)
				(void)urn_am_progress(a->ep);
			say("waits");
		}
		sched_yield();
	}
	return time(NULL) - eio;
}

/* Tell how the endpoint of a dead dataplane behaves. */
static void
tell_dead(struct end *a, struct end *b, time_t seconds)
{
	struct urn_am_part all = {&a->memory, a->buf, MEM};
	time_t start = time(NULL);
	uint64_t key;

	printf("pending %d, in time %d\n", is_open(a), seconds < 5);
	printf("all ended %d\n", tally.operations == tally.done + tally.failed &&
					 tally.requests == tally.answered + tally.unanswered);
	printf("operation %s, request %s\n", urn_am_code_word(tally.code),
	       strerrorname_np(tally.err));
	printf("region %s\n", strerrorname_np(urn_am_region_create(a->ep, &all, 1, 1, &key)));
	printf("endpoint %d %s\n", urn_am_endpoint_create(a->dev, NULL) != NULL,
	       strerrorname_np(errno));
	/* The server has nothing under way, and learns of the death all the same. */
	while (urn_am_error(b->ep) == 0 && time(NULL) - start < WAIT_S)
		(void)urn_am_progress(b->ep);
	printf("server %s\n", strerrorname_np(urn_am_error(b->ep)));
	say("dead");
}

/* Wait until nothing is pending. */
static void
finish(struct end *a, struct end *b)
{
	time_t start = time(NULL);

	while (is_open(a) && time(NULL) - start < WAIT_S) {
		(void)urn_am_progress(a->ep);
		(void)urn_am_progress(b->ep);
		sched_yield();
	}
	if (is_open(a))
		die("pending");
}

/* Both ends anew, over the next dataplane; the ends of before are dead. */
static void
live_again(struct end *old, const char *socket)
{
	struct end a, b;

	open_end(&a, socket, "a");
	open_end(&b, socket, "b");
	memset(&tally, 0, sizeof(tally));
	memset(a.buf, 0x5a, LEN);
	if (operate(&a, &b.address, &b, true) != 0 || request(&a, &b) != 0)
		die("again");
	finish(&a, &b);
	printf("again %u %u %d\n", (unsigned int)tally.done, (unsigned int)tally.answered,
	       memcmp(a.buf, b.buf, LEN));
	if (operate(&a, &old[1].address, &old[1], true) != 0)
		die("old address");
	finish(&a, &b);
	printf("old address %s\n", urn_am_code_word(tally.code));
	printf("old endpoint %s\n", strerrorname_np(operate(&old[0], &b.address, &b, true)));
	close_end(&old[0]);
	close_end(&old[1]);
	/* The new ends' objects are still there. */
	if (operate(&a, &b.address, &b, false) != 0)
		die("read");
	finish(&a, &b);
	printf("read %u\n", (unsigned int)tally.done);
	close_end(&a);
	close_end(&b);
	say("end");
}

int
main(int argc, char **argv)
{
	struct end end[2];

	if (argc != 2)
		return 2;
	open_end(&end[0], argv[1], "a");
	open_end(&end[1], argv[1], "b");
	tell_dead(&end[0], &end[1], work(&end[0], &end[1]));
	read_line();
	live_again(end, argv[1]);
	return 0;
}
