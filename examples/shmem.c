/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small OpenSHMEM over active messages and remote memory access: processes, called PEs, on two
 * nodes share a symmetric heap by put and get, atomics and barriers.
 *
 *   shmem [PES [SOCKET]]   PES processes (4), by turns on nodes a and b of urnicd at SOCKET
 *
 * The heap of each PE is a region of its endpoint: put and get name a place of the own heap, and
 * reach the same place of another PE's. The target's dataplane serves them, whatever its program
 * does meanwhile, and so are atomics. A barrier is active messages, served by a PE that waits.
 *
 * PEs learn addresses and keys from a table that their parent shares with them. On several hosts a
 * launcher (PMI) would hand these around.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <urnic/am.h>
#include <urnic/attach.h>

enum {
	PES_MAX = 64,	   /* processes */
	ROUNDS = 6,	   /* at most, in a barrier: log2(PES_MAX) */
	ADDS = 50,	   /* additions of each PE in the demonstration */
	BLOCK = 100000,	   /* bytes that each PE puts and gets: many packets */
	ANSWER_MS = 60000, /* a PE that is not run for so long is taken for dead */
};

enum { TOLD = 1 }; /* handler of active messages */

/* The symmetric heap: the same variables in each PE. */
struct heap {
	uint64_t counter[2], owner[2];
	uint8_t in[BLOCK], out[BLOCK], got[BLOCK];
};

/* The parent's table, in memory that all PEs share. */
struct world {
	_Atomic int there; /* PEs that filled in their entry */
	_Atomic int left;  /* PEs that will ask no more */
	_Atomic bool dead; /* a PE failed: the others end, too */
	struct {
		struct urn_am_address address;
		uint64_t heap, key; /* address and access key of the heap */
	} pe[PES_MAX];
};

static struct {
	struct world *world;
	int me, pes;
	struct urn_msg_dev *dev;
	struct urn_am_endpoint *ep;
	struct heap *heap;
	struct urn_am_memory memory; /* the heap */
	uint64_t told[ROUNDS];	     /* messages of each round of barriers, all barriers together */
	uint64_t barriers;	     /* barriers of this PE so far */
} me;

static void
check_or(bool ok, const char *what, const char *why)
{
	if (ok)
		return;
	fprintf(stderr, "shmem: PE %d: %s failed: %s\n", me.me, what, why);
	_exit(1);
}
#define check(ok, what) check_or(ok, what, urn_attach_error())

/* Let messages and operations move on. */
static void
turn(void)
{
	check_or(!me.world->dead, "waiting", "another PE died");
	if (urn_am_progress(me.ep) == 0)
		sched_yield();
}

/* ---- handlers */

/* Argument: the round of a barrier. */
static void
told(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)ep, (void)arg;
	me.told[m->arg[0] % ROUNDS]++;
}

static void
failed(struct urn_am_endpoint *ep, const struct urn_am_failure *f, void *arg)
{
	(void)ep, (void)arg;
	check_or(false, "a request", f->text);
}

static void
ask(int pe, const uint64_t *round)
{
	int rc;

	while ((rc = urn_am_request(me.ep, &me.world->pe[pe].address, TOLD, round, 1, NULL, 0,
				    NULL)) == EAGAIN)
		turn();
	check(rc == 0, "a request");
}

/* ---- the library: names as in OpenSHMEM */

static void
moved(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg)
{
	(void)ep, (void)bytes, (void)arg;
	check_or(code == URN_AM_DONE, "a put, get or atomic", urn_am_code_text(code));
}

/* Begin to write or read n bytes. there: place of the own heap; the same of another PE's is meant.
 */
static void
move(bool write, void *here, const void *there, size_t n, int pe)
{
	struct urn_rma op = {
		.to = &me.world->pe[pe].address,
		.remote = me.world->pe[pe].heap + (uint64_t)((const char *)there - (char *)me.heap),
		.key = me.world->pe[pe].key,
		.memory = &me.memory,
		.local = here,
		.len = (uint32_t)n,
		.done = moved,
	};
	int rc;

	while ((rc = write ? urn_rma_write(me.ep, &op) : urn_rma_read(me.ep, &op)) == EAGAIN)
		turn();
	check(rc == 0, write ? "a put" : "a get");
}

/* Wait until all puts and gets of this PE are done. */
static void
shmem_quiet(void)
{
	while (urn_rma_pending(me.ep) != 0)
		turn();
}

#define shmem_putmem_nbi(dst, src, n, pe) move(true, src, dst, n, pe)
#define shmem_getmem(dst, src, n, pe) (move(false, dst, src, n, pe), shmem_quiet())

static uint64_t
shmem_atomic(uint8_t kind, uint64_t *word, uint64_t value, uint64_t compare, int pe)
{
	uint64_t old = 0;
	struct urn_rma_atomic op = {
		.to = &me.world->pe[pe].address,
		.remote = me.world->pe[pe].heap + (uint64_t)((char *)word - (char *)me.heap),
		.key = me.world->pe[pe].key,
		.value = value,
		.compare = compare,
		.old = &old,
		.op = kind,
		.size = sizeof(*word),
		.done = moved,
	};
	int rc;

	while ((rc = urn_rma_atomic(me.ep, &op)) == EAGAIN)
		turn();
	check(rc == 0, "an atomic");
	shmem_quiet();
	return old;
}

/* Wait until all PEs are here, by dissemination: each tells the PE 1 ahead, 2 ahead, 4 ... */
static void
shmem_barrier_all(void)
{
	shmem_quiet();
	me.barriers++;
	for (uint64_t k = 0; 1 << k < me.pes; k++) {
		ask((me.me + (1 << k)) % me.pes, &k);
		while (me.told[k] < me.barriers)
			turn();
	}
}

static void
shmem_init(const char *socket)
{
	static const struct urn_am_attr attr = {.queue = 2 * PES_MAX, .answer_ms = ANSWER_MS};
	struct urn_am_part part = {.memory = &me.memory, .len = sizeof(struct heap)};
	uint64_t *key = &me.world->pe[me.me].key;

	me.dev = urn_msg_dev_connect(socket, me.me % 2 == 0 ? "a" : "b");
	check(me.dev != NULL, "attaching to urnicd");
	me.ep = urn_am_endpoint_create(me.dev, &attr);
	check(me.ep != NULL, "making an endpoint");
	part.addr = me.heap = urn_alloc(sizeof(struct heap));
	check(me.heap != NULL, "urn_alloc");
	check(urn_am_memory_add(me.ep, me.heap, part.len, &me.memory) == 0, "sharing the heap");
	check(urn_am_region_create(me.ep, &part, 1, URN_AM_ACCESS_ALL, key) == 0,
	      "making a region");
	memset(me.heap, 0, part.len);
	(void)urn_am_handle(me.ep, TOLD, told, NULL);
	urn_am_on_failure(me.ep, failed, NULL);
	me.world->pe[me.me].heap = (uintptr_t)me.heap;
	check(urn_am_address(me.ep, 1, &me.world->pe[me.me].address) == 0, "finding the address");
	me.world->there++;
	while (me.world->there < me.pes)
		turn();
}

/* Leave when nobody will ask this PE any more. */
static void
shmem_finalize(void)
{
	while (urn_am_pending(me.ep) != 0)
		turn();
	me.world->left++;
	while (me.world->left < me.pes)
		turn();
	urn_am_endpoint_destroy(me.ep);
	urn_msg_dev_close(me.dev);
	urn_free(me.heap);
}

/* ---- a program */

/* True when all bytes of a block are c. */
#define all_are(block, c) ((block)[0] == (c) && memcmp(block, (block) + 1, BLOCK - 1) == 0)

static void
program(void)
{
	int right = (me.me + 1) % me.pes, left = (me.me + me.pes - 1) % me.pes;
	struct heap *h = me.heap;
	uint64_t own = (uint64_t)me.me + 1, sum = 0;

	/* Everybody puts a block to the right, and finds that of the PE to the left. */
	memset(h->out, 'A' + me.me, BLOCK);
	shmem_putmem_nbi(h->in, h->out, BLOCK, right);
	shmem_barrier_all();
	check(all_are(h->in, 'A' + left), "a put");
	shmem_getmem(h->got, h->out, BLOCK, right);
	check(all_are(h->got, 'A' + right), "a get");

	/* Additions to the counter of PE 0 return each number once; one PE becomes the owner. */
	for (int i = 0; i < ADDS; i++)
		sum += shmem_atomic(URN_AM_FETCH_ADD, &h->counter[0], 1, 0, 0);
	if (shmem_atomic(URN_AM_COMPARE_SWAP, &h->owner[0], own, 0, 0) == 0)
		(void)shmem_atomic(URN_AM_SWAP, &h->owner[1], own, 0, 0);
	(void)shmem_atomic(URN_AM_FETCH_ADD, &h->counter[1], sum, 0, 0);
	shmem_barrier_all();
	if (me.me != 0)
		return;
	sum = (uint64_t)me.pes * ADDS;
	check(h->counter[0] == sum, "counting additions");
	check(h->counter[1] == sum * (sum - 1) / 2, "adding up what additions returned");
	check(h->owner[0] != 0 && h->owner[0] == h->owner[1], "choosing one owner");
	printf("%d PEs: blocks of %d bytes put and got, %d additions, one owner\n", me.pes, BLOCK,
	       me.pes * ADDS);
}

int
main(int argc, char **argv)
{
	int flags = MAP_SHARED | MAP_ANONYMOUS, bad = 0, status;

	me.pes = argc > 1 ? atoi(argv[1]) : 4;
	if (me.pes < 1 || me.pes > PES_MAX || argc > 3) {
		fprintf(stderr, "usage: shmem [PES [SOCKET]], 1 to %d PEs\n", PES_MAX);
		return 2;
	}
	me.world = mmap(NULL, sizeof(*me.world), PROT_READ | PROT_WRITE, flags, -1, 0);
	check_or(me.world != MAP_FAILED, "mmap", strerror(errno));
	for (me.me = 0; me.me < me.pes && fork() != 0;)
		me.me++;
	if (me.me < me.pes) {
		shmem_init(argc > 2 ? argv[2] : NULL);
		program();
		shmem_finalize();
		return 0;
	}
	while (wait(&status) > 0)
		me.world->dead = bad |= status != 0;
	return bad;
}
