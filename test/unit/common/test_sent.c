/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/test_sent.h"
#include "common/test_pcap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *file;
static unsigned long left = ~0ul; /* frames that are written still */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A capture that is not whole must not be taken for one. */
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
	if (getenv("URNIC_TEST_PCAP_FRAMES"))
		left = strtoul(getenv("URNIC_TEST_PCAP_FRAMES"), NULL, 10);
}

bool
test_sent_wanted(void)
{
	pthread_once(&once, start);
	return file != NULL;
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
	if (left && (!bytes || test_pcap_add(file, bytes, m->pkt_len) != 0 || fflush(file) != 0))
		die("the capture");
	left -= left != 0;
	pthread_mutex_unlock(&lock);
}
