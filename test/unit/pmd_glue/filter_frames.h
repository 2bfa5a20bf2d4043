/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for tests of a port's filter, each with the verdict that doc/reference/ports.md "The
 * host's own traffic" asks for. */
#ifndef URN_TEST_PMD_GLUE_FILTER_FRAMES_H
#define URN_TEST_PMD_GLUE_FILTER_FRAMES_H

#include "pmd_glue/filter_rules.h"

#include <stdbool.h>
#include <stdint.h>

#define FILTER_FRAME_MAX 128u

/* The port's addresses in these frames: 10.9.8.7, fe80::aa, fd00:9::7. */
#define FILTER_ADDRESSES 3u
extern const uint8_t filter_gid[FILTER_ADDRESSES][16];

struct filter_frame {
	const char *name;
	bool ours;
	bool news; /* a station announces itself: a filter that gets copies takes it as well */
	uint32_t len;
	uint8_t byte[FILTER_FRAME_MAX];
};

/* The VLAN of an adapter that is in one. */
#define FILTER_VLAN 5u

/* Number of frames below. */
unsigned int filter_frames(void);
/* Fill in frame i; the same each time. The bytes behind the headers are the frame's number. vlan:
 * the adapter's, 0 or FILTER_VLAN, which the verdict is for */
void filter_frame(unsigned int i, unsigned int vlan, struct filter_frame *f);
/* True when the rules say that the frame is urnic's, by addresses that are urnic's alone. */
bool filter_says(const uint8_t *frame, uint32_t len, unsigned int vlan);
/* True when the frame is such an announcement, in that VLAN. */
bool filter_news(const uint8_t *frame, uint32_t len, unsigned int vlan);
/* True when a type of VLANs is there, of IEEE 802.1Q or, of the provider, 802.1ad. */
bool filter_tagged(const struct filter_frame *f);
/* A random number, the next of *seed. */
uint32_t filter_random(uint32_t *seed);
/* Change a frame at random: bytes, length, or both. */
void filter_spoil(struct filter_frame *f, uint32_t *seed);

#endif
