/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports whose filter leaves the kernel what is the kernel's, on a veth whose other end sends all
 * kinds of frames. doc/reference/ports.md "The host's own traffic".
 */
#include "pmd_glue/fds.h"
#include "pmd_glue/filter.h"
#include "test/unit/pmd_glue/filter_frames.h"
#include "test/unit/pmd_glue/harness.h"
#include "test/unit/pmd_glue/netns.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XDP "net_af_xdp0,iface=urnv0"
#define PACKET "net_af_packet0,iface=urnv0"
enum { SPOILT = 3000 };

static struct urn_port *
filtered(const char *device)
{
	struct urn_port_config cfg = port_cfg("f0", device);

	cfg.filter = true;
	return port_up(&cfg);
}

static void
take(struct urn_port *port, const uint8_t (*gid)[16], unsigned int n)
{
	struct urn_err err = {""};

	check_ok(urn_port_filter(port, gid, n, 0, &err), &err);
}

/* Ends of the wire: ours, the kernel's on the same interface, and the far one that sends. */
struct ends {
	struct urn_port *port;
	int kernel, far;
	bool copies; /* the kernel sees our frames as well */
};

static struct ends
ends_open(const char *device)
{
	struct ends e = {.copies = strncmp(device, PACKET, 12) == 0};
	const int room = 1 << 20;

	e.port = filtered(device);
	e.kernel = packet_open("urnv0");
	e.far = packet_open("urnv1");
	(void)setsockopt(e.kernel, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	link_wait(e.port);
	return e;
}

/* True when the port gets this frame, before the mark that was sent behind it. Padding is allowed.
 */
static bool
port_gets(struct ends *e, const struct filter_frame *f)
{
	static const uint8_t mark[14] = {1, 0x80, 0xc2, 0, 0, 1, 2, 2, 2, 2, 2, 2, 0x88, 0x08};
	const uint64_t end = rte_get_tsc_cycles() + 20 * rte_get_tsc_hz();
	uint8_t behind[60] = {0};
	bool got = false;
	struct rte_mbuf *m;

	memcpy(behind, mark, sizeof(mark));
	behind[59] = 0xa5;
	packet_send(e->far, behind, sizeof(behind));
	for (;;) {
		const uint8_t *p;
		bool is_mark;

		check(rte_get_tsc_cycles() < end);
		if (urn_port_rx(e->port, 0, &m, 1) == 0) {
			usleep(10);
			continue;
		}
		p = rte_pktmbuf_mtod(m, const uint8_t *);
		is_mark = m->data_len == sizeof(behind) && memcmp(p, behind, sizeof(behind)) == 0;
		got = got || (!is_mark && m->data_len >= f->len && memcmp(p, f->byte, f->len) == 0);
		rte_pktmbuf_free(m);
		if (is_mark)
			return got;
	}
}

/* True when n bytes are the frame, or the frame without its tag, which the kernel keeps elsewhere.
 */
static bool
is_frame(const uint8_t *got, ssize_t n, const struct filter_frame *f)
{
	if (filter_tagged(f))
		return n == (ssize_t)f->len - 4 && memcmp(got, f->byte, 12) == 0 &&
		       memcmp(got + 12, f->byte + 16, f->len - 16) == 0;
	return n >= (ssize_t)f->len && memcmp(got, f->byte, f->len) == 0;
}

/* True when the kernel's end gets this frame, before the mark that was sent behind it. */
static bool
kernel_gets(const struct ends *e, const struct filter_frame *f)
{
	static const uint8_t mark[60] = {1, 2, 2, 2, 2,	   2,	 2,	     2,
					 2, 2, 2, 2, 0x88, 0xb5, [59] = 0x5a};
	uint8_t got[2048];
	bool found = false;
	ssize_t n;

	packet_send(e->far, mark, sizeof(mark));
	for (;;) {
		n = recv(e->kernel, got, sizeof(got), 0);
		check(n >= 0 || errno == ENETDOWN);
		if (n == sizeof(mark) && memcmp(got, mark, sizeof(mark)) == 0)
			return found;
		found = found || is_frame(got, n, f);
	}
}

static void
goes_where(struct ends *e, const struct filter_frame *f)
{
	bool wanted = f->ours || (e->copies && f->news);
	bool ours, kernels;

	/* The kernel refuses to send less than an Ethernet header, and drops half a tag before it
	 * looks further. */
	if (f->len < 15 || (filter_tagged(f) && f->len < 20))
		return;
	packet_send(e->far, f->byte, f->len);
	ours = port_gets(e, f);
	kernels = kernel_gets(e, f);
	if (ours != wanted || kernels != (!f->ours || e->copies))
		fprintf(stderr, "%s: %s, %s\n", f->name, ours ? "ours" : "not ours",
			kernels ? "the kernel's" : "not the kernel's");
	check(ours == wanted);
	check(kernels == (!f->ours || e->copies));
}

/* Each kind of frame reaches whom it is for; frames that are spoilt at random do no harm. */
static void
each_goes(struct ends *e, unsigned int vlan, unsigned int spoilt)
{
	struct filter_frame f;
	struct urn_err err = {""};
	uint32_t seed = 7;

	check_ok(urn_port_filter(e->port, filter_gid, FILTER_ADDRESSES, (uint16_t)vlan, &err),
		 &err);
	for (unsigned int i = 0; i < filter_frames(); i++) {
		filter_frame(i, vlan, &f);
		goes_where(e, &f);
	}
	for (unsigned int i = 0; i < spoilt; i++) {
		filter_frame(filter_random(&seed) % filter_frames(), vlan, &f);
		filter_spoil(&f, &seed);
		f.ours = filter_says(f.byte, f.len, vlan);
		f.news = filter_news(f.byte, f.len, vlan);
		goes_where(e, &f);
	}
}

static void
every_frame(const char *device)
{
	struct urn_port_filter_counts n;
	struct filter_frame f;
	struct ends e;

	netns_enter();
	netns_veth(1500);
	eal_up();
	e = ends_open(device);
	/* No address yet: all is the kernel's. */
	filter_frame(0, 0, &f);
	f.ours = false;
	goes_where(&e, &f);
	each_goes(&e, 0, SPOILT);
	each_goes(&e, FILTER_VLAN, SPOILT / 10);
	if (urn_port_filter_counts(e.port, &n)) {
		check(n.v[URN_FILTER_TAKEN] > SPOILT && n.v[URN_FILTER_PASSED] > SPOILT / 10);
		check(n.v[URN_FILTER_MISSED] == 0);
	} else {
		check(e.copies);
	}
	urn_port_close(e.port);
}

static void
xdp_every_frame(void *arg)
{
	(void)arg;
	every_frame(XDP);
}

static void
packet_every_frame(void *arg)
{
	(void)arg;
	every_frame(PACKET);
}

/* Addresses that are given later replace the earlier ones. */
static void
other_addresses(const char *device)
{
	struct filter_frame f;
	struct ends e;

	netns_enter();
	netns_veth(1500);
	eal_up();
	e = ends_open(device);
	take(e.port, filter_gid, FILTER_ADDRESSES);
	filter_frame(0, 0, &f); /* ARP for 10.9.8.7 */
	goes_where(&e, &f);
	take(e.port, filter_gid, 1);
	f.ours = false;
	goes_where(&e, &f);
	take(e.port, filter_gid, 2);
	f.ours = true;
	goes_where(&e, &f);
	urn_port_close(e.port);
}

static void
xdp_other_addresses(void *arg)
{
	(void)arg;
	other_addresses(XDP);
}

static void
packet_other_addresses(void *arg)
{
	(void)arg;
	other_addresses(PACKET);
}

static void
named(struct filter_frame *f, const char *name, bool ours)
{
	memset(f, 0, sizeof(*f));
	for (unsigned int i = 0; i < filter_frames(); i++) {
		filter_frame(i, 0, f);
		if (strcmp(f->name, name) == 0) {
			f->ours = ours;
			return;
		}
	}
	check(!"a frame of that name");
}

/*
 * RoCEv2 alone is urnic's where the kernel has the address as well; the kernel may get and lose
 * an address at any time.
 */
static void
xdp_shared(void *arg)
{
	struct filter_frame arp, roce;
	struct ends e;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	e = ends_open(XDP);
	take(e.port, filter_gid, FILTER_ADDRESSES);
	for (unsigned int i = 0; i < 4; i++) {
		bool alone = i % 2 == 0;

		if (i > 0)
			run("ip addr %s 10.9.8.7/24 dev urnv0", alone ? "del" : "add");
		urn_port_poll_link(e.port);
		named(&arp, "ARP for us", alone);
		named(&roce, "RoCEv2 to us", true);
		goes_where(&e, &arp);
		goes_where(&e, &roce);
	}
	urn_port_close(e.port);
}

/* Leave the process no descriptor that it could open, or give it back. */
static void
no_descriptors(bool none)
{
	static struct rlimit was;
	struct rlimit now;

	check(getrlimit(RLIMIT_NOFILE, &now) == 0);
	if (none)
		was = now;
	now.rlim_cur = none ? 0 : was.rlim_cur;
	check(setrlimit(RLIMIT_NOFILE, &now) == 0);
}

/* While the kernel can't be asked what it has, the shares stay, and new addresses are shared; it is
 * asked again. */
static void
xdp_shared_later(void *arg)
{
	struct filter_frame arp;
	struct ends e;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	e = ends_open(XDP);
	no_descriptors(true);
	take(e.port, filter_gid, FILTER_ADDRESSES);
	urn_port_poll_link(e.port);
	no_descriptors(false);
	named(&arp, "ARP for us", false);
	goes_where(&e, &arp);
	for (unsigned int i = 0; i < 3; i++) {
		if (i > 0)
			run("ip addr %s 10.9.8.7/24 dev urnv0", i == 1 ? "add" : "del");
		no_descriptors(true);
		urn_port_poll_link(e.port);
		no_descriptors(false);
		goes_where(&e, &arp); /* the same */
		for (unsigned int k = 0; k < 200; k++) /* RETRY of xdp_filter.c */
			urn_port_poll_link(e.port);
		arp.ours = i != 1;
		goes_where(&e, &arp);
	}
	urn_port_close(e.port);
}

/* A process that has more of such descriptors than fit is told so. */
static void
fds_bound(void *arg)
{
	static struct urn_fds s;
	int fd[2];

	(void)arg;
	for (unsigned int i = 0; i < 2; i++) {
		fd[i] = socket(AF_XDP, SOCK_RAW, 0);
		check(fd[i] >= 0);
	}
	s.n = URN_FDS_MAX - 2;
	check(urn_fds_find(&s, NULL, false) && s.n == URN_FDS_MAX);
	s.n = URN_FDS_MAX - 1;
	check(!urn_fds_find(&s, NULL, false) && s.n == URN_FDS_MAX);
}

/* True when the interface has an XDP program. */
static bool
has_program(void)
{
	return system("ip link show urnv0 | grep -q xdp") == 0;
}

/* The program leaves with the port. */
static void
xdp_leaves(void *arg)
{
	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	for (unsigned int i = 0; i < 2; i++) {
		struct urn_port *port = filtered(XDP);

		check(port->filter == URN_PORT_FILTER_XDP);
		check(strcmp(urn_port_filter_name(port), "xdp") == 0);
		check(has_program());
		urn_port_close(port);
		check(!has_program());
	}
}

static void
killed(void *arg)
{
	const int *ready = arg;

	eal_up();
	check(filtered(XDP)->filter == URN_PORT_FILTER_XDP);
	check(write(*ready, "", 1) == 1);
	pause();
}

/* ... and with a process that is killed: the host's traffic goes on, and the next process can
 * start. */
static void
xdp_killed(void *arg)
{
	int pipe_of[2];
	struct ends e;
	pid_t pid;
	char byte;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	check(pipe(pipe_of) == 0);
	pid = child_start(killed, &pipe_of[1]);
	check(read(pipe_of[0], &byte, 1) == 1);
	check(has_program());
	kill(pid, SIGKILL);
	check(child_wait(pid) == SIGKILL);
	for (unsigned int i = 0; has_program() && i < 1000; i++)
		usleep(10000);
	check(!has_program());
	eal_up();
	e = ends_open(XDP);
	take(e.port, filter_gid, FILTER_ADDRESSES);
	for (unsigned int i = 0; i < filter_frames(); i++) {
		struct filter_frame f;

		filter_frame(i, 0, &f);
		goes_where(&e, &f);
	}
	urn_port_close(e.port);
}

/* The rights that packaging/urnicd.service.in gives are enough; CAP_IPC_LOCK stands for its
 * LimitMEMLOCK. */
static void
xdp_rights(void *arg)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct filter_frame f;
	struct ends e;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	check(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0);
	become_user();
	memset(data, 0, sizeof(data));
	data[0].effective = data[0].permitted =
		1u << CAP_NET_RAW | 1u << CAP_NET_ADMIN | 1u << CAP_IPC_LOCK;
	data[1].effective = data[1].permitted = 1u << (CAP_BPF - 32);
	check(syscall(SYS_capset, &head, data) == 0);
	eal_up();
	e = ends_open(XDP);
	check(e.port->filter == URN_PORT_FILTER_XDP);
	take(e.port, filter_gid, FILTER_ADDRESSES);
	filter_frame(0, 0, &f);
	goes_where(&e, &f);
	urn_port_close(e.port);
}

/* A port of a switch takes all frames, as before; so does a program of the user's. */
static void
no_filter(void *arg)
{
	struct urn_port_config cfg = port_cfg("f0", XDP);
	struct urn_port *port;

	(void)arg;
	netns_enter();
	netns_veth(1500);
	eal_up();
	port = port_up(&cfg);
	check(port->filter == URN_PORT_FILTER_NONE);
	take(port, filter_gid, FILTER_ADDRESSES);
	check(strcmp(urn_port_filter_name(port), "none") == 0);
	urn_port_close(port);
}

/* Filters have room for a number of addresses, and say so. */
static void
too_many(void *arg)
{
	uint8_t gid[URN_FILTER_ADDRESSES + 1][16];
	struct urn_err err = {""};
	struct urn_port *port;

	(void)arg;
	memset(gid, 0, sizeof(gid));
	for (unsigned int i = 0; i <= URN_FILTER_ADDRESSES; i++)
		gid[i][0] = gid[i][15] = (uint8_t)(i + 1);
	netns_enter();
	netns_veth(1500);
	eal_up();
	port = filtered(PACKET);
	check(strcmp(urn_port_filter_name(port), "socket") == 0);
	take(port, (const uint8_t(*)[16])gid, URN_FILTER_ADDRESSES);
	check(urn_port_filter(port, (const uint8_t(*)[16])gid, URN_FILTER_ADDRESSES + 1, 0, &err) !=
	      0);
	check_says(&err, "port f0 (net_af_packet0): a filter has room for 8 addresses, not for 9");
	urn_port_close(port);
}

/* Tests of the XDP program are skipped by a build without a compiler for it, and a kernel without
 * AF_XDP. */
static int
need_xdp(void **state)
{
	int fd = socket(AF_XDP, SOCK_RAW, 0);

	(void)state;
	if (fd >= 0)
		close(fd);
#ifdef URN_XDP_OBJECT
	return fd < 0 && errno == EAFNOSUPPORT;
#else
	return 1;
#endif
}

ROOT_TEST(xdp_every_frame)
ROOT_TEST(packet_every_frame)
ROOT_TEST(xdp_other_addresses)
ROOT_TEST(packet_other_addresses)
ROOT_TEST(xdp_shared)
ROOT_TEST(xdp_shared_later)
ROOT_TEST(fds_bound)
ROOT_TEST(xdp_leaves)
ROOT_TEST(xdp_killed)
ROOT_TEST(xdp_rights)
ROOT_TEST(no_filter)
ROOT_TEST(too_many)

int
main(void)
{
	const struct CMUnitTest xdp[] = {
		cmocka_unit_test(test_xdp_every_frame), cmocka_unit_test(test_xdp_other_addresses),
		cmocka_unit_test(test_xdp_shared),	cmocka_unit_test(test_xdp_leaves),
		cmocka_unit_test(test_xdp_killed),	cmocka_unit_test(test_xdp_rights),
		cmocka_unit_test(test_no_filter),	cmocka_unit_test(test_xdp_shared_later),
		cmocka_unit_test(test_fds_bound),
	};
	const struct CMUnitTest packet[] = {
		cmocka_unit_test(test_packet_every_frame),
		cmocka_unit_test(test_packet_other_addresses),
		cmocka_unit_test(test_too_many),
	};
	int failed = cmocka_run_group_tests(packet, NULL, NULL);

	if (need_xdp(NULL) == 0)
		failed += cmocka_run_group_tests(xdp, NULL, NULL);
	return failed;
}
