/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/test_pcap.h"

#include <stdlib.h>
#include <string.h>

struct file_hdr {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snaplen, link;
};

struct rec_hdr {
	uint32_t sec, usec, captured, len;
};

#define MAGIC 0xa1b2c3d4u
#define LINK_ETHERNET 1u

static uint8_t *
slurp(const char *name, size_t *size)
{
	const char *dir = getenv("URNIC_TEST_DATA");
	uint8_t *bytes = NULL;
	char path[4096];
	long end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir != NULL ? dir : "test/data", name);
	f = fopen(path, "rb");
	if (f == NULL)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) > 0 && fseek(f, 0, SEEK_SET) == 0) {
		*size = (size_t)end;
		bytes = malloc(*size);
		if (bytes != NULL && fread(bytes, 1, *size, f) != *size) {
			free(bytes);
			bytes = NULL;
		}
	}
	fclose(f);
	return bytes;
}

/* Count the frames, and record them when p->frame is there. -1: the file is cut short. */
static int
walk(struct test_pcap *p, size_t size)
{
	size_t at = sizeof(struct file_hdr);
	struct rec_hdr rec;

	for (p->frames = 0; at < size; p->frames++) {
		if (size - at < sizeof(rec))
			return -1;
		memcpy(&rec, p->bytes + at, sizeof(rec));
		at += sizeof(rec);
		if (size - at < rec.captured)
			return -1;
		if (p->frame != NULL)
			p->frame[p->frames] = (struct test_frame){ p->bytes + at, rec.captured };
		at += rec.captured;
	}
	return 0;
}

int
test_pcap_load(struct test_pcap *p, const char *name)
{
	struct file_hdr hdr;
	size_t size = 0;

	memset(p, 0, sizeof(*p));
	p->bytes = slurp(name, &size);
	if (p->bytes == NULL || size < sizeof(hdr))
		goto fail;
	memcpy(&hdr, p->bytes, sizeof(hdr));
	if (hdr.magic != MAGIC || hdr.link != LINK_ETHERNET || walk(p, size) != 0)
		goto fail;
	p->frame = calloc(p->frames + 1, sizeof(*p->frame));
	if (p->frame == NULL || walk(p, size) != 0)
		goto fail;
	return 0;
fail:
	fprintf(stderr, "test_pcap: cannot read %s; set URNIC_TEST_DATA to test/data\n", name);
	test_pcap_free(p);
	return -1;
}

void
test_pcap_free(struct test_pcap *p)
{
	free(p->bytes);
	free(p->frame);
	memset(p, 0, sizeof(*p));
}

FILE *
test_pcap_create(const char *path)
{
	struct file_hdr hdr = { MAGIC, 2, 4, 0, 0, 65535, LINK_ETHERNET };
	FILE *f = fopen(path, "wb");

	if (f != NULL && fwrite(&hdr, sizeof(hdr), 1, f) != 1) {
		fclose(f);
		return NULL;
	}
	return f;
}

int
test_pcap_add(FILE *f, const uint8_t *data, uint32_t len)
{
	struct rec_hdr rec = { 0, 0, len, len };

	if (fwrite(&rec, sizeof(rec), 1, f) != 1 || fwrite(data, 1, len, f) != len)
		return -1;
	return 0;
}
