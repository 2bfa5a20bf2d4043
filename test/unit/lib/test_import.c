/* SPDX-License-Identifier: BSD-3-Clause */
/* Importing devices, protection domains and regions: descriptors, handles, and who ends an object.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 4096 };

/* A dataplane in another process has a descriptor that names the client. */
static int proof_fd = -1;

static int
proof(void *ctx)
{
	(void)ctx;
	return proof_fd;
}

static struct urn_abi_channel *
make(void *arg)
{
	return &((struct fake *)arg)->channel;
}

static void
answer(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct fake *f = ctx;

	f->last = *req;
	f->calls[req->op]++;
	memset(rep, 0, sizeof(*rep));
	rep->region.lkey = rep->region.rkey = req->handle;
	rep->region.length = BYTES;
}

/* True when two descriptors are of one file. */
static bool
same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static int
import_setup(void **state)
{
	proof_fd = memfd_create("area", MFD_CLOEXEC);
	assert_true(proof_fd >= 0);
	return ctx_setup(state);
}

static int
import_teardown(void **state)
{
	close(proof_fd);
	return ctx_teardown(state);
}

/* A dataplane in the program has no descriptor, nor does one that is not open. */
static void
no_descriptor(void **state)
{
	struct env *e = *state;

	assert_int_equal(e->c->cmd_fd, -1);
	errno = 0;
	assert_null(ibv_import_device(-1));
	assert_int_equal(errno, EBADF);
	errno = 0;
	assert_null(ibv_import_device(proof_fd)); /* no device is on offer */
	assert_int_equal(errno, ENODEV);
	ibv_unimport_pd(NULL);
	ibv_unimport_mr(NULL);
}

/* Each device on offer is asked until one knows the descriptor, which becomes the new context's. */
static void
device(void **state)
{
	struct fake *a = fake_new(), *b = fake_new();
	int fd = memfd_create("other", MFD_CLOEXEC);
	struct ibv_context *c;

	(void)state;
	strcpy(b->info.name, "fake1");
	a->channel.proof = b->channel.proof = proof;
	assert_int_equal(urn_attach_offer(make, a), 0);
	assert_int_equal(urn_attach_offer(make, b), 0);
	a->closed = b->closed = 0;
	fake_fail_next(a, URN_CTL_JOIN, ENOENT, "no context has this descriptor");
	c = ibv_import_device(fd);
	assert_non_null(c);
	assert_string_equal(ibv_get_device_name(c->device), "fake1");
	assert_int_equal(a->closed, 1);
	assert_int_equal(b->closed, 0);
	assert_int_equal(b->last.op, URN_CTL_JOIN);
	assert_int_equal(b->last.fd, fd);
	assert_int_equal(c->cmd_fd, fd);
	assert_true(same(fd, proof_fd));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(ibv_close_device(c), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_true(fcntl(proof_fd, F_GETFD) >= 0);

	/* Another failure ends the search, and leaves the descriptor. */
	fd = memfd_create("other", 0);
	fake_fail_next(a, URN_CTL_JOIN, EPERM, "another user's");
	assert_null(ibv_import_device(fd));
	assert_int_equal(errno, EPERM);
	assert_int_equal(a->closed, 2);
	assert_int_equal(b->closed, 1);
	assert_false(same(fd, proof_fd));
	/* A descriptor that programs it starts inherit stays one. */
	c = ibv_import_device(fd);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	assert_int_equal(ibv_close_device(c), 0);
	assert_int_equal(urn_attach_withdraw(make, a), 0);
	assert_int_equal(urn_attach_withdraw(make, b), 0);
	fake_free(a);
	fake_free(b);
}

/* dealloc and dereg end the object in the dataplane, unimport frees the view alone. */
static void
objects(void **state)
{
	struct env *e = *state;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	e->f->channel.call = answer;
	pd = ibv_import_pd(e->c, 7);
	assert_int_equal(e->f->last.op, URN_CTL_IMPORT_PD);
	assert_int_equal(e->f->last.handle, 7);
	assert_int_equal(pd->handle, 7);
	assert_ptr_equal(pd->context, e->c);
	mr = ibv_import_mr(pd, 0x1234);
	assert_int_equal(e->f->last.op, URN_CTL_IMPORT_MR);
	assert_int_equal(mr->handle, 0x1234);
	assert_int_equal(mr->lkey, 0x1234);
	assert_int_equal(mr->rkey, 0x1234);
	assert_int_equal(mr->length, BYTES);
	assert_null(mr->addr);
	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->context, e->c);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	assert_int_equal(e->f->last.op, URN_CTL_IMPORT_MR);

	pd = ibv_import_pd(e->c, 7);
	mr = ibv_import_mr(pd, 0x1234);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(e->f->last.op, URN_CTL_END_MR);
	assert_int_equal(e->f->last.handle, 0x1234);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(e->f->last.op, URN_CTL_END_PD);
	assert_int_equal(e->f->last.handle, 7);
	/* One's own objects end as ever. */
	pd = ibv_alloc_pd(e->c);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(e->f->last.op, URN_CTL_DEALLOC_PD);
}

static void
objects_that_are_not_there(void **state)
{
	struct env *e = *state;
	struct ibv_pd *pd = ibv_alloc_pd(e->c);

	fake_fail_next(e->f, URN_CTL_IMPORT_PD, EINVAL, "no protection domain 7");
	assert_null(ibv_import_pd(e->c, 7));
	assert_int_equal(errno, EINVAL);
	assert_string_equal(urn_attach_error(), "no protection domain 7");
	fake_fail_next(e->f, URN_CTL_IMPORT_MR, EINVAL, "no region");
	assert_null(ibv_import_mr(pd, 7));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* A dataplane from before this is not asked. */
static void
old_dataplane(void **state)
{
	struct fake *f = fake_new();
	struct ibv_context *c;

	(void)state;
	f->info.features &= ~(uint32_t)URN_ABI_FEATURE_IMPORT;
	c = urn_attach_open(&f->channel);
	assert_null(ibv_import_pd(c, 7));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(f->calls[URN_CTL_IMPORT_PD], 0);
	assert_int_equal(ibv_close_device(c), 0);
	fake_free(f);
}

int
main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, import_setup, import_teardown)
	const struct CMUnitTest tests[] = {
		CASE(no_descriptor), CASE(device), CASE(objects), CASE(objects_that_are_not_there),
		CASE(old_dataplane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
