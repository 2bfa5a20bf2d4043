/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 of a file, computed while it is transferred. */
#ifndef URN_CP_DIGEST_H
#define URN_CP_DIGEST_H

#include "pmd_glue/port.h"
#include "proto.h"

#include <stddef.h>
#include <stdint.h>

struct evp_md_ctx_st;

struct cp_digest {
	struct evp_md_ctx_st *ctx; /* owner: this struct; NULL when not in use */
};

/* Begin a new digest. returns: 0, or -1 with *err */
int cp_digest_begin(struct cp_digest *d, struct urn_err *err);
/* Add bytes. returns: 0, or -1 with *err */
int cp_digest_add(struct cp_digest *d, const void *data, size_t len, struct urn_err *err);
/* The SHA-256 of all bytes added. returns: 0, or -1 with *err */
int cp_digest_end(struct cp_digest *d, uint8_t out[CP_DIGEST], struct urn_err *err);
void cp_digest_free(struct cp_digest *d);

/* Print a digest in hexadecimal digits. returns buf */
const char *cp_digest_text(char buf[2 * CP_DIGEST + 1], const uint8_t digest[CP_DIGEST]);

#endif
