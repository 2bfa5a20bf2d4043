/* SPDX-License-Identifier: BSD-3-Clause */
/* Classic pcap files in memory, read whole or written, for tests. */
#ifndef URN_TEST_PCAP_H
#define URN_TEST_PCAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct test_frame {
	const uint8_t *data; /* points into the file's bytes */
	uint32_t len;        /* bytes */
};

struct test_pcap {
	uint8_t *bytes;            /* the file; owner: this struct */
	struct test_frame *frame;  /* frames of the file, in order */
	unsigned int frames;
};

/*
 * Read a little-endian microsecond pcap of Ethernet frames, by its name in the
 * folder of test data. returns 0, or -1 when it cannot be read or is cut short
 */
int test_pcap_load(struct test_pcap *p, const char *name);
void test_pcap_free(struct test_pcap *p);

/* Start a pcap file and add frames to it. The caller closes it. NULL: no file. */
FILE *test_pcap_create(const char *path);
int test_pcap_add(FILE *f, const uint8_t *data, uint32_t len);

#endif
