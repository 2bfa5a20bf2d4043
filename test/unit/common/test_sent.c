/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/test_sent.h"
#include "common/test_pcap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_jhash.h>

static FILE *file;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Digests of the frames written, when each frame is wanted once; 0: free. Under the lock. */
static uint64_t *known;
static uint64_t known_n,
	known_size; /* digests in it, and its places: a power of two, at most half of them taken */

/* An incomplete capture must not be taken for a complete one. */
static void
die(const char *path)
{
	fprintf(stderr, "test_sent: cannot write %s: %s\n", path, strerror(errno));
	abort();
}

static void
start(void)
{
	const char *folder = getenv("URNIC_TEST_PCAP");
	char path[4096];

	if (!folder || !*folder)
		return;
	snprintf(path, sizeof(path), "%s/%s-%d.pcap", folder, program_invocation_short_name, (int)getpid());
	file = test_pcap_create(path);
	if (!file)
		die(path);
	if (getenv("URNIC_TEST_PCAP_ONCE"))
		known_size = 1024;
	known = calloc(known_size, sizeof(*known));
	if (!known && known_size)
		die(path);
}

bool
test_sent_wanted(void)
{
	pthread_once(&once, start);
	return file != NULL;
}

/* The digest's place, or the free place for it. */
static uint64_t *
find(uint64_t digest)
{
	uint64_t i = digest >> 1;

	while (known[i & (known_size - 1)] && known[i & (known_size - 1)] != digest)
		i++;
	return &known[i & (known_size - 1)];
}

static void
grow(void)
{
	uint64_t *old = known, size = known_size;

	known_size *= 2;
	known = calloc(known_size, sizeof(*known));
	if (!known)
		die("the capture");
	for (uint64_t i = 0; i < size; i++)
		if (old[i])
			*find(old[i]) = old[i];
	free(old);
}

/*
 * True when the frame is new. That two different frames of a million have the same digest
 * is as likely as one in ten million.
 */
static bool
is_new(const void *bytes, uint32_t len)
{
	uint32_t a = len, b = ~len;
	uint64_t digest, *at;

	rte_jhash_2hashes(bytes, len, &a, &b);
	digest = ((uint64_t)a << 32 | b) | 1; /* not 0 */
	at = find(digest);
	if (*at)
		return false;
	*at = digest;
	if (++known_n > known_size / 2)
		grow();
	return true;
}

void
test_sent(const struct rte_mbuf *m)
{
	uint8_t copy[16384];
	const void *bytes;

	if (!test_sent_wanted())
		return;
	bytes = m->pkt_len <= sizeof(copy) ? rte_pktmbuf_read(m, 0, m->pkt_len, copy) : NULL;
	pthread_mutex_lock(&lock);
	if (!bytes || ((!known_size || is_new(bytes, m->pkt_len)) &&
		       (test_pcap_add(file, bytes, m->pkt_len) != 0 || fflush(file) != 0)))
		die("the capture");
	pthread_mutex_unlock(&lock);
}
