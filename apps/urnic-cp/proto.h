/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of the two sides over their queue pair.
 *
 *   sender                                receiver
 *   SEND FILE  (number, name, size) --->
 *   WRITE_WITH_IMM chunk ...        --->  hashes the chunk, writes it to an unnamed file
 *                                   <---  SEND CREDIT (chunks done with, in all)
 *   SEND END   (SHA-256, or gave up)--->  compares, fsyncs, gives it its name
 *                                   <---  SEND VERDICT (stored, or why not)
 *
 * A chunk's immediate is its sequence number, which runs on from file to file;
 * the chunk is in slot (number mod slots) of the receiver's ring. The sender has at
 * most `slots` chunks beyond the last credit in flight, so neither side ever
 * runs out of posted receives. For each FILE there is one END and one VERDICT;
 * a VERDICT before the END means that the receiver has given the file up and
 * ignores the chunks until the END.
 *
 * Messages are of fixed length per kind, fields in network order, and the
 * decoder checks every field: the peer is not trusted.
 */
#ifndef URN_CP_PROTO_H
#define URN_CP_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CP_NAME_MAX 255u   /* bytes of a file's name */
#define CP_TEXT_MAX 255u   /* bytes of a reason */
#define CP_DIGEST 32u      /* bytes of a SHA-256 */
#define CP_MSG_MAX 512u    /* bytes of a message, at most */
#define CP_SIZE_MAX (UINT64_C(1) << 62) /* bytes of a file */

/* Prefix of unfinished files' names, where the file system has no unnamed files. */
#define CP_PART_PREFIX ".urnic-cp-"

enum cp_msg_type {
	CP_MSG_FILE = 1,
	CP_MSG_END = 2,
	CP_MSG_CREDIT = 3,
	CP_MSG_VERDICT = 4,
};

enum cp_verdict {
	CP_STORED = 0,   /* digest right (when compared), on disk under its name */
	CP_REFUSED = 1,  /* not even begun: the text has the reason */
	CP_FAILED = 2,   /* could not be stored: the text has the reason */
	CP_MISMATCH = 3, /* the digest differs */
	CP_GIVEN_UP = 4, /* the sender gave the file up */
	CP_VERDICTS,
};

struct cp_msg {
	enum cp_msg_type type;
	uint32_t file; /* number of the file in this transfer, from 0; unused in CREDIT */
	union {
		struct {
			uint64_t size; /* bytes */
			uint32_t mode; /* permission bits, 0777 at most */
			char name[CP_NAME_MAX + 1];
		} announce;
		struct {
			bool ok;                   /* the whole file was sent; else given up */
			uint8_t digest[CP_DIGEST]; /* zero without checking */
		} end;
		struct {
			uint64_t done; /* chunks finished since the transfer began */
		} credit;
		struct {
			enum cp_verdict verdict;
			uint64_t store_ns; /* time for bringing the file to disk at the end */
			char text[CP_TEXT_MAX + 1];
		} verdict;
	};
};

/* Write a message to buf (CP_MSG_MAX bytes). returns: its length */
size_t cp_msg_encode(const struct cp_msg *msg, uint8_t *buf);
/* Read a message. returns: 0, or -1 with *why, a phrase such as "a name with '/' in it" */
int cp_msg_decode(const uint8_t *buf, size_t len, struct cp_msg *msg, const char **why);

/*
 * Check the name of a received file: 1 to CP_NAME_MAX bytes, no '/',
 * neither "." nor "..", and not one of our unfinished files. returns NULL, or
 * a phrase with the error
 */
const char *cp_name_check(const char *name, size_t len);

/* Copy a peer's text for people: control characters become '?'. returns dst */
char *cp_text_clean(char *dst, size_t n, const char *src);

#endif
