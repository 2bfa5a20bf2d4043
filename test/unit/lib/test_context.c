/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing contexts (urnic/attach.h, doc/reference/verbs.md "What programs rely on besides"). */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void
open_context(void **state)
{
	struct env *e = *state;
	struct verbs_context *v = verbs_get_ctx(e->c);

	assert_non_null(v);
	assert_ptr_equal(&v->context, e->c);
	assert_int_equal(v->sz, sizeof(*v));
	assert_ptr_equal(e->c->abi_compat, __VERBS_ABI_IS_EXTENDED);
	assert_non_null(e->c->ops.poll_cq);
	assert_non_null(e->c->ops.req_notify_cq);
	assert_non_null(e->c->ops.post_send);
	assert_non_null(e->c->ops.post_recv);
	assert_non_null(e->c->ops.post_srq_recv);
	assert_non_null(v->query_port);
	assert_non_null(v->query_device_ex);
	assert_non_null(v->create_cq_ex);
	assert_non_null(v->create_qp_ex);
	assert_non_null(v->create_srq_ex);
	assert_int_equal(e->c->num_comp_vectors, 1);
	assert_string_equal(ibv_get_device_name(e->c->device), "fake0");
	assert_int_equal(ibv_get_device_index(e->c->device), -1);
	/* The dataplane has the other end of the async pipe, and never blocks there. */
	assert_int_not_equal(e->f->async_fd, e->c->async_fd);
	assert_int_equal(fcntl(e->f->async_fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}

/* doc/reference/verbs.md: the bytes behind struct ibv_device read as zeros. */
static void
zeros_behind_device(void **state)
{
	struct env *e = *state;
	const uint8_t *p = (const uint8_t *)(e->c->device + 1);
	int i;

	for (i = 0; i < 256; i++)
		assert_int_equal(p[i], 0);
}

static void
expect_open_fails(struct fake *f, int err, const char *why)
{
	unsigned int closed = f->closed;

	errno = 0;
	assert_null(urn_attach_open(&f->channel));
	assert_int_equal(errno, err);
	assert_int_equal(f->closed, closed + 1); /* the call took the channel over, so it is closed */
	assert_non_null(strstr(urn_attach_error(), why));
}

static void
open_fails(void **state)
{
	struct fake *f = fake_new();
	void *area = f->channel.area;

	(void)state;
	errno = 0;
	assert_null(urn_attach_open(NULL));
	assert_int_equal(errno, EINVAL);
	fake_fail_next(f, URN_CTL_HELLO, EACCES, "you may not");
	expect_open_fails(f, EACCES, "you may not");
	fake_fail_next(f, URN_CTL_ASYNC_FD, EBADF, "a bad descriptor");
	expect_open_fails(f, EBADF, "a bad descriptor");
	f->info.version = URN_ABI_VERSION + 1;
	expect_open_fails(f, EPROTO, "version");
	f->info.version = URN_ABI_VERSION;
	f->info.engines = URN_ABI_MAX_ENGINES + 1;
	expect_open_fails(f, EPROTO, "engines");
	f->info.engines = 0;
	expect_open_fails(f, EPROTO, "engines");
	f->info.engines = 1;
	f->channel.area = NULL;
	expect_open_fails(f, EPROTO, "area");
	f->channel.area = area;
	fake_free(f);
}

/* No singletons: several dataplanes in one program. */
static void
open_several(void **state)
{
	struct fake *f[3];
	struct ibv_context *c[3];
	struct ibv_pd *pd[3];
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		f[i] = fake_new();
		f[i]->info.name[4] = (char)('0' + i);
		c[i] = urn_attach_open(&f[i]->channel);
		assert_non_null(c[i]);
	}
	for (i = 0; i < 3; i++) {
		pd[i] = ibv_alloc_pd(c[i]);
		assert_non_null(pd[i]);
		assert_int_equal(f[i]->calls[URN_CTL_ALLOC_PD], 1);
		assert_int_equal(ibv_get_device_name(c[i]->device)[4], '0' + i);
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(ibv_dealloc_pd(pd[i]), 0);
		assert_int_equal(ibv_close_device(c[i]), 0);
		assert_int_equal(f[i]->closed, 1);
		fake_free(f[i]);
	}
}

#define CTX(fn) cmocka_unit_test_setup_teardown(fn, ctx_setup, ctx_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CTX(open_context), CTX(zeros_behind_device), cmocka_unit_test(open_fails), cmocka_unit_test(open_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
