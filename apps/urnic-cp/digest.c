/* SPDX-License-Identifier: BSD-3-Clause */
#include "digest.h"

#include <openssl/evp.h>
#include <stdio.h>

static int
check(int ok, struct urn_err *err)
{
	if (ok == 1)
		return 0;
	urn_err_set(err, "libcrypto cannot compute SHA-256 here; check its configuration, or say "
			 "--no-check.");
	return -1;
}

int
cp_digest_begin(struct cp_digest *d, struct urn_err *err)
{
	if (d->ctx == NULL)
		d->ctx = EVP_MD_CTX_new();
	return check(d->ctx != NULL && EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) == 1, err);
}

int
cp_digest_add(struct cp_digest *d, const void *data, size_t len, struct urn_err *err)
{
	return check(EVP_DigestUpdate(d->ctx, data, len), err);
}

int
cp_digest_end(struct cp_digest *d, uint8_t out[CP_DIGEST], struct urn_err *err)
{
	return check(EVP_DigestFinal_ex(d->ctx, out, NULL), err);
}

void
cp_digest_free(struct cp_digest *d)
{
	EVP_MD_CTX_free(d->ctx);
	d->ctx = NULL;
}

const char *
cp_digest_text(char buf[2 * CP_DIGEST + 1], const uint8_t digest[CP_DIGEST])
{
	for (unsigned int i = 0; i < CP_DIGEST; i++)
		snprintf(buf + (size_t)2 * i, 3, "%02x", digest[i]);
	return buf;
}
