/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of a port's filter, and its classic program, which the kernel runs here on sockets of a
 * pair: no rights are needed. doc/reference/ports.md "The host's own traffic".
 */
#include "pmd_glue/filter.h"
#include "pmd_glue/xdp_filter.h"
#include "test/unit/pmd_glue/filter_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPOILT = 20000 };

/* A frame that ends where readable memory ends. returns: its first byte */
static const uint8_t *
at_the_end(const struct filter_frame *f)
{
	static uint8_t *page;

	if (page == NULL) {
		page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(page != MAP_FAILED);
		assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
	}
	memcpy(page + 4096 - f->len, f->byte, f->len);
	return page + 4096 - f->len;
}

static bool
by_rules(const struct filter_frame *f, unsigned int vlan)
{
	return filter_says(at_the_end(f), f->len, vlan);
}

/* Two sockets; the second one takes only frames for these addresses, in a VLAN, 0: in none. */
static void
filtered_pair(int fd[2], const uint8_t (*gid)[16], unsigned int n, uint16_t vlan)
{
	struct sock_filter code[URN_FILTER_CLASSIC_MAX];
	struct sock_fprog prog = {.filter = code};
	struct urn_filter_key key[URN_FILTER_ADDRESSES];

	for (unsigned int i = 0; i < n; i++)
		memcpy(key[i].gid, gid[i], 16);
	prog.len = (unsigned short)urn_filter_classic(code, key, n, vlan);
	assert_true(prog.len <= URN_FILTER_CLASSIC_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)), 0);
}

static bool
by_classic(const int fd[2], const struct filter_frame *f)
{
	uint8_t got[FILTER_FRAME_MAX];
	ssize_t n;

	assert_int_equal(send(fd[0], f->byte, f->len, 0), f->len);
	n = recv(fd[1], got, sizeof(got), 0);
	if (n < 0)
		return false;
	/* An accepted frame comes whole. */
	assert_int_equal(n, f->len);
	assert_memory_equal(got, f->byte, f->len);
	return true;
}

static void
verdict_is(const struct filter_frame *f, bool want, const char *who, bool got)
{
	if (got != want)
		fail_msg("%s: %s says %s", f->name, who, got ? "ours" : "the kernel's");
}

static void
named(unsigned int vlan)
{
	int fd[2];

	filtered_pair(fd, filter_gid, FILTER_ADDRESSES, (uint16_t)vlan);
	for (unsigned int i = 0; i < filter_frames(); i++) {
		struct filter_frame f;

		filter_frame(i, vlan, &f);
		verdict_is(&f, f.ours, "the rules", by_rules(&f, vlan));
		verdict_is(&f, f.news, "the list of announcements",
			   filter_news(f.byte, f.len, vlan));
		/* A pair does not take tags off, as the kernel does before the program:
		 * test_filter_port. */
		if (!filter_tagged(&f))
			verdict_is(&f, f.ours || f.news, "the classic program", by_classic(fd, &f));
	}
	close(fd[0]);
	close(fd[1]);
}

/* Each named frame gets its verdict, by the rules and by the classic program, for adapters with and
 * without a VLAN. */
static void
test_named(void **state)
{
	(void)state;
	named(0);
	named(FILTER_VLAN);
}

/* Both agree on frames of any length and content, but for announcements; the rules read nothing
 * behind a frame. */
static void
test_spoilt(void **state)
{
	uint32_t seed = 4791;
	unsigned int ours = 0, news = 0;
	int fd[2];

	(void)state;
	filtered_pair(fd, filter_gid, FILTER_ADDRESSES, 0);
	for (unsigned int i = 0; i < SPOILT; i++) {
		struct filter_frame f;

		filter_frame(filter_random(&seed) % filter_frames(), 0, &f);
		filter_spoil(&f, &seed);
		if (f.len == 0)
			continue;
		f.ours = by_rules(&f, 0);
		f.news = filter_news(f.byte, f.len, 0);
		if (filter_tagged(&f))
			continue;
		ours += f.ours;
		news += !f.ours && f.news;
		verdict_is(&f, f.ours || f.news, "the classic program", by_classic(fd, &f));
	}
	/* No verdict is rare. */
	assert_in_range(ours, SPOILT / 10, SPOILT * 9 / 10);
	assert_in_range(news, SPOILT / 200, SPOILT / 10);
	close(fd[0]);
	close(fd[1]);
}

/* A frame cut at each length is ours only when all that decides is there. */
static void
test_every_length(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < filter_frames(); i++) {
		struct filter_frame f;
		uint32_t whole;

		for (unsigned int vlan = 0; vlan <= FILTER_VLAN; vlan += FILTER_VLAN) {
			filter_frame(i, vlan, &f);
			whole = f.len;
			for (f.len = 0; f.len < whole; f.len++)
				if (by_rules(&f, vlan))
					assert_true(f.ours && f.len >= 14);
		}
	}
}

/* The program of the most addresses that a port can have fits, and finds each; without addresses it
 * finds none. */
static void
test_most_addresses(void **state)
{
	uint8_t gid[URN_FILTER_ADDRESSES][16];
	struct filter_frame f;
	int fd[2];

	(void)state;
	for (unsigned int i = 0; i < URN_FILTER_ADDRESSES; i++) {
		memcpy(gid[i], filter_gid[2], 16);
		gid[i][14] = (uint8_t)(i + 1);
	}
	for (unsigned int n = 0; n <= URN_FILTER_ADDRESSES; n += URN_FILTER_ADDRESSES) {
		filtered_pair(fd, (const uint8_t(*)[16])gid, n, 0);
		for (unsigned int i = 0; i < URN_FILTER_ADDRESSES; i++) {
			for (unsigned int k = 0; k < filter_frames(); k++) {
				filter_frame(k, 0, &f);
				if (strcmp(f.name, "ping to us, IPv6") == 0)
					break;
			}
			memcpy(f.byte + 38, gid[i], 16);
			assert_int_equal(by_classic(fd, &f), i < n);
		}
		close(fd[0]);
		close(fd[1]);
	}
}

/* An address that the kernel has, too, is shared: here that of the loopback. */
static void
test_shares(void **state)
{
	const struct urn_filter_key key[2] = {{{[10] = 0xff, 0xff, 127, 0, 0, 1}},
					      {{[10] = 0xff, 0xff, 192, 0, 2, 77}}};
	uint32_t share[2];

	(void)state;
	assert_true(urn_filter_shares(key, share, 2));
	assert_int_equal(share[0], URN_FILTER_ROCE);
	assert_int_equal(share[1], URN_FILTER_ALL);
}

/* Leave the process no descriptor that it could open, or give it back. */
static void
no_descriptors(bool none)
{
	static struct rlimit was;
	struct rlimit now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	if (none)
		was = now;
	now.rlim_cur = none ? 0 : was.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

/* A process without descriptors left is told so: the shares stay, and no other's descriptors are
 * taken for new ones. */
static void
test_no_descriptors(void **state)
{
	const struct urn_filter_key key = {{[10] = 0xff, 0xff, 127, 0, 0, 1}};
	static struct urn_fds fds;
	bool shares, found;
	uint32_t share = 77;

	(void)state;
	no_descriptors(true);
	shares = urn_filter_shares(&key, &share, 1);
	found = urn_fds_find(&fds, NULL, true);
	no_descriptors(false);
	assert_false(shares);
	assert_int_equal(share, 77);
	assert_false(found);
	assert_true(urn_fds_find(&fds, NULL, true));
}

/* A program that was loaded gives back what it has, whatever the numbers of its maps; one that was
 * not, has nothing. */
static void
test_end(void **state)
{
	struct urn_xdp_filter f = {0};
	int fd[2];

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_true(fcntl(0, F_GETFD) >= 0 || dup2(fd[0], 0) == 0);
	urn_xdp_filter_end(&f);
	assert_true(fcntl(0, F_GETFD) >= 0);
	f = (struct urn_xdp_filter){.begun = true, .link = fd[0], .watch = fd[1]};
	urn_xdp_filter_end(&f);
	assert_true(fcntl(fd[0], F_GETFD) < 0 && fcntl(fd[1], F_GETFD) < 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named),	     cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_every_length), cmocka_unit_test(test_most_addresses),
		cmocka_unit_test(test_shares),	     cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
