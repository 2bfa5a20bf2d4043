/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of a pcapng file (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3 and 4.6), each written
 * into memory. A block is: type, length, body, length again; a body ends in options: code, length,
 * value, padded to 4 bytes. Numbers are in the byte order of the machine, which the section tells.
 *
 * rte_pcapng is not used: it lists all ports of the process in each file, under its own names, and
 * has one unlocked clock for the process, whose arithmetic breaks when time runs backwards.
 */
#ifndef URN_PMD_GLUE_PCAPNG_H
#define URN_PMD_GLUE_PCAPNG_H

#include <rte_mbuf.h>

#include <stddef.h>
#include <stdint.h>

enum {
	URN_PCAPNG_IN = 1, /* direction of a frame: epb_flags, bits 0 and 1 */
	URN_PCAPNG_OUT = 2,
};

enum {
	URN_PCAPNG_SMALL = 256,	    /* bytes of a block that is no frame's, at most */
	URN_PCAPNG_FRAME_MORE = 64, /* bytes of a frame's block beyond the frame, at most */
};

/* One frame that was captured. */
struct urn_pcapng_frame {
	const struct rte_mbuf *m; /* owner: the caller; the bytes that are kept */
	uint64_t ns;		  /* time since 1970, ns */
	uint32_t iface;		  /* number of its interface: the first in the file is 0 */
	uint32_t len;		  /* bytes of the frame before it was cut */
	uint32_t queue;
	uint32_t direction; /* URN_PCAPNG_IN or URN_PCAPNG_OUT */
};

/*
 * Write the block that begins a file. to: URN_PCAPNG_SMALL bytes. returns: bytes written
 */
size_t urn_pcapng_section(uint8_t *to);
/*
 * Write the block of an interface, which comes before the first of its frames. The frames' times
 * have nanoseconds. to: URN_PCAPNG_SMALL bytes; name: its first 63 bytes are written; mac: 6 bytes;
 * snap: bytes of each frame that are kept, 0: all. returns: bytes written
 */
size_t urn_pcapng_interface(uint8_t *to, const char *name, const uint8_t *mac, uint32_t snap);
/*
 * Write the block of a frame. to: f->m->pkt_len + URN_PCAPNG_FRAME_MORE bytes. returns: bytes
 * written
 */
size_t urn_pcapng_frame(uint8_t *to, const struct urn_pcapng_frame *f);
/*
 * Write the statistics of an interface: frames seen, and how many of those that were wanted are
 * missing. to: URN_PCAPNG_SMALL bytes; ns: time since 1970, ns. returns: bytes written
 */
size_t urn_pcapng_stats(uint8_t *to, uint32_t iface, uint64_t ns, uint64_t seen, uint64_t dropped);

#endif
