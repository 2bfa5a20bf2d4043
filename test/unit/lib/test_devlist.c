/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices on offer: urn_attach_offer(), and the lists and opens of programs. */
#include "test.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static struct urn_abi_channel *
make(void *arg)
{
	struct fake *f = arg;

	if (f == NULL) {
		errno = ENXIO;
		return NULL;
	}
	return &f->channel;
}

static void
list_and_open(void **state)
{
	struct fake *a = fake_new(), *b = fake_new();
	struct ibv_device **list;
	struct ibv_context *c, *d;
	int n = -1;

	(void)state;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 0);
	assert_null(list[0]);
	ibv_free_device_list(list);

	b->info.name[4] = '1';
	b->info.node_guid = 5;
	assert_int_equal(urn_attach_offer(make, a), 0);
	assert_int_equal(a->closed, 1); /* the list opened it and closed it */
	assert_int_equal(urn_attach_offer(make, b), 0);
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 2);
	assert_null(list[2]);
	assert_string_equal(ibv_get_device_name(list[0]), "fake0");
	assert_string_equal(ibv_get_device_name(list[1]), "fake1");
	assert_int_equal(be64toh(ibv_get_device_guid(list[0])), 0x0011223344556677);
	assert_int_equal(be64toh(ibv_get_device_guid(list[1])), 5);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);

	/* A device may be opened more than once, and outlives the list. */
	c = ibv_open_device(list[1]);
	d = ibv_open_device(list[1]);
	assert_non_null(c);
	assert_non_null(d);
	ibv_free_device_list(list);
	assert_string_equal(ibv_get_device_name(c->device), "fake1");
	assert_int_equal(urn_attach_withdraw(make, b), 0);
	assert_int_equal(ibv_close_device(c), 0);
	assert_string_equal(ibv_get_device_name(d->device), "fake1");
	assert_int_equal(ibv_close_device(d), 0);
	assert_int_equal(urn_attach_withdraw(make, a), 0);
	fake_free(a);
	fake_free(b);
}

static void
withdrawn(void **state)
{
	struct fake *a = fake_new();
	struct ibv_device **list;
	int n;

	(void)state;
	assert_int_equal(urn_attach_offer(make, a), 0);
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 1);
	assert_int_equal(urn_attach_withdraw(make, a), 0);
	assert_int_equal(urn_attach_withdraw(make, a), ENOENT);
	fake_free(a);
	assert_string_equal(ibv_get_device_name(list[0]), "fake0"); /* still in the list */
	errno = 0;
	assert_null(ibv_open_device(list[0]));
	assert_int_equal(errno, ENODEV);
	ibv_free_device_list(list);
	list = ibv_get_device_list(NULL);
	assert_null(list[0]);
	ibv_free_device_list(list);
	ibv_free_device_list(NULL);
}

static _Atomic int is_gone;
static _Atomic unsigned int late_calls;

static struct urn_abi_channel *
make_while_here(void *arg)
{
	if (atomic_load(&is_gone))
		atomic_fetch_add(&late_calls, 1);
	return make(arg);
}

/* Open and close the device until it is withdrawn. */
static void *
opener(void *arg)
{
	struct ibv_context *c;

	while ((c = ibv_open_device(arg)) != NULL)
		ibv_close_device(c);
	return NULL;
}

/* urnic/attach.h: no call of make() begins after urn_attach_withdraw() has returned. */
static void
withdraw_while_opening(void **state)
{
	struct fake *a = fake_new();
	struct ibv_device **list;
	pthread_t t[3];
	int round, i;

	(void)state;
	for (round = 0; round < 100; round++) {
		atomic_store(&is_gone, 0);
		assert_int_equal(urn_attach_offer(make_while_here, a), 0);
		list = ibv_get_device_list(NULL);
		for (i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&t[i], NULL, opener, list[0]), 0);
		assert_int_equal(urn_attach_withdraw(make_while_here, a), 0);
		atomic_store(&is_gone, 1);
		for (i = 0; i < 3; i++)
			assert_int_equal(pthread_join(t[i], NULL), 0);
		ibv_free_device_list(list);
	}
	assert_int_equal(late_calls, 0);
	fake_free(a);
}

static void
offer_fails(void **state)
{
	struct fake *a = fake_new();
	struct ibv_device **list;
	int n;

	(void)state;
	assert_int_equal(urn_attach_offer(make, NULL), ENXIO);
	fake_fail_next(a, URN_CTL_HELLO, EACCES, "you may not");
	assert_int_equal(urn_attach_offer(make, a), EACCES);
	assert_int_equal(a->closed, 1);
	assert_int_equal(urn_attach_offer(make, a), 0);
	list = ibv_get_device_list(&n);
	fake_fail_next(a, URN_CTL_HELLO, EACCES, "not now");
	assert_null(ibv_open_device(list[0]));
	assert_int_equal(errno, EACCES);
	ibv_free_device_list(list);
	assert_int_equal(urn_attach_withdraw(make, a), 0);
	fake_free(a);
}

/* A dataplane that delays the opening of its device. */
struct slow {
	struct fake *f;
	struct ibv_device *dev;
	_Atomic bool stalls, waits;
	int go[2]; /* a pipe that it waits for */
};

static struct urn_abi_channel *
make_slow(void *arg)
{
	struct slow *s = arg;
	char c;

	if (atomic_load(&s->stalls)) {
		atomic_store(&s->waits, true);
		assert_int_equal(read(s->go[0], &c, 1), 1);
	}
	return &s->f->channel;
}

static void *
slow_opener(void *arg)
{
	struct slow *s = arg;
	struct ibv_context *c = ibv_open_device(s->dev);

	return c != NULL && ibv_close_device(c) == 0 ? s : NULL;
}

/* A child of fork() opens a device that another thread of its parent was opening. */
static void
fork_while_opening(void **state)
{
	struct slow s = {.f = fake_new()};
	struct ibv_device **list;
	pthread_t t;
	void *done;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(s.go), 0);
	assert_int_equal(urn_attach_offer(make_slow, &s), 0);
	list = ibv_get_device_list(NULL);
	s.dev = list[0];
	atomic_store(&s.stalls, true);
	assert_int_equal(pthread_create(&t, NULL, slow_opener, &s), 0);
	while (!atomic_load(&s.waits))
		sched_yield();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30);
		atomic_store(&s.stalls, false);
		_exit(slow_opener(&s) == &s ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(write(s.go[1], "", 1), 1);
	assert_int_equal(pthread_join(t, &done), 0);
	assert_ptr_equal(done, &s);
	ibv_free_device_list(list);
	assert_int_equal(urn_attach_withdraw(make_slow, &s), 0);
	close(s.go[0]);
	close(s.go[1]);
	fake_free(s.f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_and_open), cmocka_unit_test(withdrawn),
		cmocka_unit_test(withdraw_while_opening), cmocka_unit_test(offer_fails), cmocka_unit_test(fork_while_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
