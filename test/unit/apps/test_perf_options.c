/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-perf's command line: defaults that fit together, and one sentence for each mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-perf/idle.h"
#include "perf_line.h"

static void
defaults_fit(void **state)
{
	(void)state;
	assert_int_equal(parse("write_bw"), PERF_RUN);
	assert_int_equal(o.op, PERF_WRITE_BW);
	assert_int_equal(o.link, PERF_RING);
	assert_int_equal(o.size, 65536);
	assert_int_equal(o.mtu, 4096);
	assert_int_equal(o.qps, 1);
	assert_int_equal(o.check, PERF_CHECK_FAST);
	assert_false(o.use_srq);

	assert_int_equal(parse("send_lat"), PERF_RUN);
	assert_int_equal(o.size, 8);
	assert_int_equal(o.depth, 1);
	assert_int_equal(parse("atomic_bw"), PERF_RUN);
	assert_int_equal(o.size, 8);
	assert_int_equal(parse("limit --lat"), PERF_RUN);
	assert_int_equal(o.size, 8);
}

/* One side of a measurement: the peer's address, and the way they meet. */
static void
sides(void **state)
{
	(void)state;
	assert_int_equal(parse("send_bw --attach auto"), PERF_RUN);
	assert_int_equal(o.role, PERF_BOTH);
	assert_string_equal(o.node[1], "b");
	assert_false(o.pinned);
	assert_int_equal(parse("send_bw --attach auto --listen 700 -d x --lcores 0"), PERF_RUN);
	assert_int_equal(o.role, PERF_LISTENS);
	assert_string_equal(o.host, "");
	assert_string_equal(o.port, "700");
	assert_string_equal(o.node[1], "x");
	assert_false(o.by_cm);
	assert_true(o.pinned);
	assert_int_equal(parse("send_bw --attach auto --listen h:700"), PERF_RUN);
	assert_string_equal(o.host, "h");
	assert_int_equal(parse("send_bw --attach auto --peer 10.0.0.2 --connect cm"), PERF_RUN);
	assert_int_equal(o.role, PERF_ASKS);
	assert_string_equal(o.host, "10.0.0.2");
	assert_string_equal(o.port, "18515");
	assert_string_equal(o.node[0], "");
	assert_true(o.by_cm);
	assert_int_equal(parse("send_bw --attach auto --peer [fd00::2]:70"), PERF_RUN);
	assert_string_equal(o.host, "fd00::2");
	assert_string_equal(o.port, "70");
	assert_int_equal(parse("connect --conns 20 --connect cm"), PERF_RUN);
	assert_int_equal(o.qps, 20);
	assert_int_equal(parse("connect"), PERF_RUN);
	assert_int_equal(o.qps, 1000);
}

/* Many QPs: a shared receive queue, and a limit of all that is in flight. */
static void
many_qps(void **state)
{
	(void)state;
	assert_int_equal(parse("send_bw --size 64 --qps 10000"), PERF_RUN);
	assert_true(o.use_srq);
	assert_true(o.depth >= 2);
	assert_true((uint64_t)o.depth * o.qps <= 262144);
	assert_int_equal(parse("send_bw --size 64 --qps 65536"), PERF_RUN);
	assert_true(o.depth >= 2 && (uint64_t)o.depth * o.qps <= 262144);
}

/* Chains are never longer than the number of requests that may be in flight. */
static void
chains_fit_the_depth(void **state)
{
	char line[64];

	(void)state;
	for (unsigned int depth = 1; depth < 300; depth++) {
		snprintf(line, sizeof(line), "write_bw --depth %u", depth);
		assert_int_equal(parse(line), PERF_RUN);
		assert_true(o.chain >= 1 && o.chain <= depth && o.chain <= PERF_BATCH);
	}
}

static void
all_options_are_taken(void **state)
{
	(void)state;
	assert_int_equal(parse("--json read_bw --size 1M --iters 10K --qps 4 --depth 8 --mtu 1024 "
			       "--link memif --idle sleep --recovery gbn --no-icrc --foreign --full-check --with-limit"),
			 PERF_RUN);
	assert_int_equal(o.op, PERF_READ_BW);
	assert_true(o.json && o.no_icrc && o.foreign && o.with_limit && o.go_back_n);
	assert_int_equal(o.size, 1 << 20);
	assert_int_equal(o.iters, 10240);
	assert_int_equal(o.qps, 4);
	assert_int_equal(o.depth, 8);
	assert_int_equal(o.rd_atomic, 8);
	assert_int_equal(o.mtu, 1024);
	assert_int_equal(o.link, PERF_MEMIF);
	assert_int_equal(o.idle, URN_IDLE_SLEEP);
	assert_int_equal(o.check, PERF_CHECK_FULL);
	assert_int_equal(parse("limit --no-sender-copy --duration 200ms --no-check --capture f --mem"),
			 PERF_RUN);
	assert_int_equal(o.duration_ns, 200000000);
	assert_string_equal(o.capture, "f");
	assert_true(o.show_mem && o.no_sender_copy);
	assert_int_equal(parse("send_bw --srq yes --ip 6 --inline 0 --rd-atomic 3 --mbufs 4096 "
			       "--descs 256 --timeout 20 --idle-qps 65520"),
			 PERF_RUN);
	assert_true(o.use_srq && o.ipv6);
	assert_int_equal(o.inline_bytes, 0);
	assert_int_equal(o.rd_atomic, 3);
	assert_int_equal(o.mbufs, 4096);
	assert_int_equal(o.descs, 256);
	assert_int_equal(o.timeout, 20);
	assert_int_equal(o.idle_qps, 65520);
	assert_int_equal(parse("send_bw --hist"), PERF_RUN);
	assert_true(o.hist);
	assert_int_equal(parse("memcpy"), PERF_RUN);
	assert_int_equal(o.size, 65536);
	assert_int_equal(o.core[0], o.core[1]);
}

/* A switch is used also when only impairments are given. */
static void
wires(void **state)
{
	(void)state;
	assert_int_equal(parse("write_bw"), PERF_RUN);
	assert_false(o.wire.on);
	assert_int_equal(parse("write_bw --switch --with-limit"), PERF_RUN);
	assert_true(o.wire.on && !o.wire.impaired);
	assert_int_equal(parse("limit --switch --link memif"), PERF_RUN);
	assert_int_equal(parse("write_bw --loss 1 --dup 2% --reorder 20 --reorder-depth 4 "
			       "--corrupt 0.5 --delay 50 --seed 9"),
			 PERF_RUN);
	assert_true(o.wire.on && o.wire.impaired);
	assert_true(o.wire.cfg.drop == 0.01 && o.wire.cfg.dup == 0.02);
	assert_true(o.wire.cfg.reorder == 0.2 && o.wire.cfg.corrupt == 0.005);
	assert_int_equal(o.wire.cfg.reorder_min, 1);
	assert_int_equal(o.wire.cfg.reorder_max, 4);
	assert_int_equal(o.wire.cfg.delay_ns, 50000);
	assert_int_equal(o.wire.cfg.seed, 9);
	assert_int_equal(parse("send_lat --delay 1.5"), PERF_RUN);
	assert_int_equal(o.wire.cfg.delay_ns, 1500);
	assert_int_equal(parse("send_lat --delay 2ms"), PERF_RUN);
	assert_int_equal(o.wire.cfg.delay_ns, 2000000);
}

/* Command lines that are refused, and a word of the sentence that names the mistake. */
static const struct {
	const char *line, *says;
} refused[] = {
	{"", "name an operation"},
	{"wirte_bw", "no operation; did you mean write_bw?"},
	{"steam_bw", "no operation; did you mean stream_bw?"},
	{"stream_lta", "no operation; did you mean stream_lat?"},
	{"idel", "no operation; did you mean idle?"},
	{"xyzzy", "no operation; --help lists all"},
	{"fly", "fly"},
	{"pingpong --peer h --device net_null0", "urnic-pingpong"},
	{"write_bw extra", "extra"},
	{"write_bw --size", "--size"},
	{"write_bw --size 5X", "5X"},
	{"write_bw --size 2G", "2G"},
	{"write_bw --size -1", "-1"},
	{"write_bw --iters 0", "--iters"},
	{"write_bw --iters 5 --duration 1", "exclude"},
	{"write_bw --no-check --full-check", "exclude"},
	{"write_bw --capture=", "empty"},
	{"write_bw --duration 0", "--duration"},
	{"write_bw --duration 1.x", "1.x"},
	{"write_bw --qps 0", "--qps"},
	{"write_bw --qps 65537", "65536"},
	{"write_bw --idle-qps 131073", "131072"},
	{"write_bw --depth 0", "--depth"},
	{"write_bw --qps 65536 --depth 1000", "in flight"},
	{"write_bw --ud", "send_bw"},
	{"connect --ud", "send_bw"},
	{"send_bw --ud --size 5000", "4096"},
	{"send_bw --ud --size 2000 --mtu 1024", "1024"},
	{"send_bw --ud --size 7", "at least 8"},
	{"send_bw --ud --idle-qps 3", "--idle-qps"},
	{"send_bw --ud --with-limit", "--with-limit"},
	{"send_lat --ud --loss 1", "repeats"},
	{"write_bw --loss 101", "--loss"},
	{"write_bw --dup -1", "--dup"},
	{"write_bw --reorder x", "--reorder"},
	{"write_bw --corrupt 0x1", "--corrupt"},
	{"write_bw --loss 1 --reorder-depth 3", "--reorder"},
	{"write_bw --reorder 1 --reorder-depth 33", "32"},
	{"write_bw --delay 5days", "--delay"},
	{"write_bw --delay 60000001", "--delay"},
	{"write_bw --seed one --loss 1", "--seed"},
	{"write_bw --seed 1", "--seed"},
	{"limit --loss 1", "limit"},
	{"write_bw --loss 1 --with-limit", "--with-limit"},
	{"limit --link null --switch", "null"},
	{"write_bw --mtu 1500", "1500"},
	{"write_bw --mtu 128", "128"},
	{"write_bw --lcores x", "--lcores"},
	{"write_bw --lcores 0,", "--lcores"},
	{"write_bw --lcores 0,1,2", "--lcores"},
	{"write_bw --lcores 1000", "1000"},
	{"write_bw --lcores 99999999999999999999,0", "--lcores"},
	{"write_bw --link wire", "ring, memif, null"},
	{"write_bw --link null", "null"},
	{"limit --lat --link null", "null"},
	{"limit --with-limit", "--with-limit"},
	{"limit --size 0", "1 byte"},
	{"memcpy --size 0", "1 byte"},
	{"memcpy --with-limit", "--with-limit"},
	{"memcpy --switch", "--switch"},
	{"limit --stages", "--stages"},
	{"memcpy --foreign", "--foreign"},
	{"limit --foreign", "--foreign"},
	{"send_bw --stages", "-Dstages=true"},
	{"write_lat --size 0", "1 byte"},
	{"write_lat --depth 4", "--depth"},
	{"send_bw --lat", "--lat"},
	{"send_bw --no-sender-copy", "--no-sender-copy"},
	{"atomic_bw --size 16", "8 bytes"},
	{"send_bw --idle nap", "spin, pause, sleep"},
	{"send_bw --recovery all", "selective, gbn"},
	{"send_bw --srq maybe", "no, yes"},
	{"send_bw --ip 5", "4, 6"},
	{"send_bw --inline 257", "256"},
	{"send_bw --rd-atomic 129", "128"},
	{"send_bw --timeout 32", "31"},
	{"send_bw --conns 5", "--conns"},
	{"connect --conns 0", "--conns"},
	{"connect --conns 16001", "16000"},
	{"connect --size 8", "--conns"},
	{"connect --iters 8", "--conns"},
	{"connect --connect oob", "oob"},
	{"connect --foreign", "--foreign"},
	{"connect --with-limit", "--with-limit"},
	{"send_bw --listen 1", "--attach"},
	{"send_bw --peer h", "--attach"},
	{"send_bw --attach auto --listen 1 --peer h", "one of"},
	{"send_bw --attach auto --listen 1 --listen 2", "one of"},
	{"send_bw --attach auto --peer :1", "HOST"},
	{"send_bw --attach auto --peer h:", "HOST"},
	{"send_bw --attach auto --peer [::1", "HOST"},
	{"send_bw --attach auto --peer [::1]x", "HOST"},
	{"send_bw --attach auto --listen h:", "port"},
	{"send_bw --attach auto --node a", "--nodes"},
	{"send_bw --attach auto --listen 1 --nodes a,b", "--node"},
	{"send_bw --attach auto --listen 1 --size 5", "--peer"},
	{"send_bw --attach auto --listen 1 --duration 5", "--peer"},
	{"send_bw --attach auto --connect cm", "two processes"},
	{"send_bw --attach auto --peer h --connect rdma", "oob, cm"},
	{"send_bw --attach auto --peer h --idle-qps 1", "one process"},
	{"connect --attach auto --peer h", "one process"},
	{"send_bw --session", "--session"},
	{"send_bw --session auto", "--listen"},
	{"send_bw --session auto --attach auto --peer h", "--attach"},
	{"send_bw --session auto --node a --peer h", "--node"},
	{"send_bw --session auto --peer h --ud", "--ud"},
	{"send_bw --session auto --peer h --srq yes", "--srq"},
	{"send_bw --attach auto --peer h --fail-at 1", "--session"},
	{"send_bw --session auto --listen 1 --fail-at 1", "--peer"},
	{"send_bw --session auto --peer h --fail-at 2", "--duration"},
	{"send_bw --session auto --peer h --fail-at 1 --iters 5", "--duration"},
	{"send_bw --session auto --peer h --fail-at 1 --connect cm", "--connect cm"},
	{"send_bw --session auto --peer h --fail-at 0", "--fail-at"},
	{"send_bw --session auto --peer h --fail-at :kill", "--fail-at"},
	{"send_bw --session auto --peer h --fail-at 1:", "run=COMMAND"},
	{"send_bw --session auto --peer h --fail-at 1:kill=1", "--fail-at"},
	{"send_bw --session auto --peer h --plot a.png", "--fail-at"},
	{"send_bw --session auto --peer h --fail-at 1 --plot a.jpg", ".svg"},
	{"send_bw --session auto --peer h --progress a.csv",
	 "--progress writes the run of --fail-at"},
	{"send_bw --session auto --peer h --fail-at 1 --progress=", "is empty"},
	{"send_bw --frobnicate", "--frobnicate"},
	{"send_bw --no", "--no"},
};

static void
bad_options_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (parse(refused[i].line) != PERF_EXIT_USAGE)
			fail_msg("taken: %s", refused[i].line);
		if (strstr(err.text, refused[i].says) == NULL)
			fail_msg("%s: \"%s\" does not say %s", refused[i].line, err.text,
				 refused[i].says);
	}
}

/* A side with a session, and the loss of its primary adapter. */
static void
sessions(void **state)
{
	(void)state;
	assert_int_equal(parse("send_bw --session /a:x,/b:y --listen 1"), PERF_RUN);
	assert_string_equal(o.session, "/a:x,/b:y");
	assert_non_null(o.attach);
	assert_false(o.fails);
	assert_int_equal(parse("send_bw --session auto --peer h --fail-at 500ms"), PERF_RUN);
	assert_true(o.fails && o.fail_ns == 500000000);
	assert_int_equal(o.loss.kind, URN_LOSS_PORT);
	assert_int_equal(parse("send_bw --session auto --peer h --fail-at 1.5:kill --plot a.svg"),
			 PERF_RUN);
	assert_true(o.fail_ns == 1500000000);
	assert_int_equal(o.loss.kind, URN_LOSS_KILL);
	assert_int_equal(parse("send_bw --session auto --peer h --qps 64"), PERF_RUN);
	assert_false(o.use_srq);
	assert_int_equal(parse("send_bw --fail-at 1:run=a:b --session auto --peer h"), PERF_RUN);
	assert_string_equal(o.loss.command, "a:b");
}

/* ---- the layout that follows from the options */

/* Writes on cache lines: targets lie where --offset says, in slots that begin on a line of 256. */
static void
lines_and_offsets(void **state)
{
	struct layout l;

	(void)state;
	assert_int_equal(parse("write_bw --size 1000 --offset 77 --align on"), PERF_RUN);
	assert_true(o.align && o.offset == 77 && o.offset_given);
	layout_make(&l, &o);
	assert_int_equal(l.stride % PERF_LINE_MAX, 0);
	assert_true(l.stride >= 1077);
	assert_int_equal(layout_dst_off(&l, 0, 1), l.stride + 77);
	assert_true(layout_dst_bytes(&l) >= layout_dst_off(&l, l.qps - 1, l.dst_slots - 1) + 1000);
	assert_int_equal(parse("write_bw --size 0 --align on"), PERF_RUN);
	layout_make(&l, &o);
	assert_true(l.stride > 0);
	assert_int_equal(parse("aligned_table"), PERF_RUN);
	assert_int_equal(o.size, 32768);
	assert_int_equal(parse("aligned_table --offset 4095 --mtu 1024 --json"), PERF_RUN);
	assert_int_equal(parse("write_bw --offset 4096"), PERF_EXIT_USAGE);
	assert_int_equal(parse("write_lat --align on"), PERF_EXIT_USAGE);
	assert_int_equal(parse("aligned_table --align on"), PERF_EXIT_USAGE);
	assert_int_equal(parse("aligned_table --attach auto"), PERF_EXIT_USAGE);
	assert_int_equal(parse("aligned_table --hist"), PERF_EXIT_USAGE);
}

/* Source slots hold everything in flight; the receiver has another number of slots. */
static void
layout_holds_what_is_in_flight(void **state)
{
	static const char *const lines[] = {
		"write_bw", "read_bw --depth 5", "send_bw --size 64 --qps 16", "send_bw --depth 1",
		"send_lat", "write_lat --qps 3", "atomic_bw", "send_bw --size 0", "limit --size 1",
		"send_bw --size 64 --qps 10000", "write_bw --size 17M --depth 3"};
	struct layout l;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(parse(lines[i]), PERF_RUN);
		layout_make(&l, &o);
		assert_true(l.src_slots >= o.depth);
		assert_true((l.src_slots & (l.src_slots - 1)) == 0);
		assert_true(l.stride >= l.size && l.stride % PERF_SLOT_ALIGN == 0 && l.stride > 0);
		if (l.size < 16 << 20)
			assert_true(l.dst_slots % l.src_slots != 0);
		if (perf_op_is_send(o.op) && !o.use_srq)
			assert_true(l.dst_slots >= o.depth + l.rx_batch - 1);
		assert_int_equal(l.srq_slots > 0, perf_op_is_send(o.op) && o.use_srq);
		assert_true(l.rx_batch <= PERF_BATCH);
		assert_true(l.srq_slots <= URN_ABI_MAX_WR);
		assert_true(layout_src_bytes(&l) == l.qps * l.src_slots * l.stride);
	}
}

/* Ports with a smaller MTU: a given MTU is refused then, and the default becomes the ports' MTU. */
static void
mtu_of_ports(void **state)
{
	struct urn_err e = {""};

	(void)state;
	assert_int_equal(parse("send_bw --ud"), PERF_RUN);
	assert_int_equal(perf_options_mtu(&o, 4096, "a0", &e), 0);
	assert_true(o.mtu == 4096 && o.size == 4096);
	assert_int_equal(perf_options_mtu(&o, 1024, "a0", &e), 0);
	assert_int_equal(perf_options_mtu(&o, 2048, "b0", &e), 0);
	assert_true(o.mtu == 1024 && o.size == 1024);
	assert_int_equal(parse("write_bw --size 8000"), PERF_RUN);
	assert_int_equal(perf_options_mtu(&o, 512, "a0", &e), 0);
	assert_true(o.mtu == 512 && o.size == 8000);
	assert_int_equal(parse("send_bw --ud --size 1025"), PERF_RUN);
	assert_int_equal(perf_options_mtu(&o, 1024, "a0", &e), -1);
	assert_non_null(strstr(e.text, "--size of at most 1024"));
	assert_int_equal(parse("write_bw --mtu 2048"), PERF_RUN);
	assert_int_equal(perf_options_mtu(&o, 2048, "a0", &e), 0);
	assert_int_equal(perf_options_mtu(&o, 1024, "a0", &e), -1);
	assert_non_null(strstr(e.text, "port a0 carries a path MTU of 1024 at most, not 2048; give --mtu 1024"));
}

/* Datagrams: a packet, room for the GRH in front, and more receives than are in flight. */
static void
datagrams(void **state)
{
	struct layout l;

	(void)state;
	assert_int_equal(parse("send_bw --ud --mtu 1024"), PERF_RUN);
	assert_true(o.ud);
	assert_int_equal(o.size, 1024);
	layout_make(&l, &o);
	assert_int_equal(l.grh, 40);
	assert_int_equal(l.stride, 1088);
	assert_int_equal(l.dst_slots, 8192);
	assert_int_equal(parse("send_bw --ud --loss 10"), PERF_RUN);
	assert_int_equal(parse("send_lat --ud"), PERF_RUN);
	assert_int_equal(o.size, 8);
	assert_int_equal(parse("send_bw"), PERF_RUN);
	assert_false(o.ud);
	layout_make(&l, &o);
	assert_int_equal(l.grh, 0);
}

static enum perf_parse
parse_idle(const char *line, struct idle_opts *d)
{
	static char copy[128];
	char *argv[16] = {"idle"}, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	err.text[0] = '\0';
	return idle_options_parse(argc, argv, d, &err);
}

/* Idle clients. */
static void
idle_clients(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {{"", "--attach"},
		   {"--attach x --clients 0", "--clients"},
		   {"--attach x --clients 4097", "4096"},
		   {"--attach x --duration y", "--duration"},
		   {"--attach x extra", "extra"},
		   {"--attach x --size 3", "--size"},
		   {"--attach", "--attach"}};
	struct idle_opts d;

	(void)state;
	assert_int_equal(
		parse_idle("--attach /s --clients 100 --node b --duration 200ms --json", &d),
		PERF_RUN);
	assert_string_equal(d.attach, "/s");
	assert_string_equal(d.node, "b");
	assert_int_equal(d.clients, 100);
	assert_int_equal(d.duration_ns, 200000000);
	assert_true(d.json);
	assert_int_equal(parse_idle("--attach auto", &d), PERF_RUN);
	assert_int_equal(d.clients, 16);
	assert_int_equal(d.duration_ns, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse_idle(bad[i].line, &d), PERF_EXIT_USAGE);
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("'%s': '%s' is not in \"%s\"", bad[i].line, bad[i].says, err.text);
	}
}

/* 1 GiB messages need only a slot at each side. */
static void
huge_messages_take_one_slot(void **state)
{
	struct layout l;

	(void)state;
	assert_int_equal(parse("send_bw --size 1G"), PERF_RUN);
	layout_make(&l, &o);
	assert_true(layout_src_bytes(&l) == 1u << 30);
	assert_int_equal(parse("write_bw --size 1G"), PERF_RUN);
	layout_make(&l, &o);
	assert_true(layout_dst_bytes(&l) == 1u << 30);
}

/* A message with a SEND behind it: room for WRITEs that overtake the check of those before. */
static void
writes_and_sends(void **state)
{
	struct layout l;

	(void)state;
	assert_int_equal(parse("write_send_bw --size 4096 --qps 40"), PERF_RUN);
	assert_false(o.use_srq);
	layout_make(&l, &o);
	assert_true(l.tells);
	assert_true(l.rx_slots > o.depth);
	assert_int_equal(l.dst_slots, l.rx_slots + 2);
	assert_int_equal(parse("send_bw"), PERF_RUN);
	layout_make(&l, &o);
	assert_false(l.tells);
	assert_int_equal(l.dst_slots, l.rx_slots);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_fit),
		cmocka_unit_test(sides),
		cmocka_unit_test(sessions),
		cmocka_unit_test(many_qps),
		cmocka_unit_test(chains_fit_the_depth),
		cmocka_unit_test(all_options_are_taken),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(wires),
		cmocka_unit_test(layout_holds_what_is_in_flight),
		cmocka_unit_test(lines_and_offsets),
		cmocka_unit_test(huge_messages_take_one_slot),
		cmocka_unit_test(mtu_of_ports),
		cmocka_unit_test(datagrams),
		cmocka_unit_test(idle_clients),
		cmocka_unit_test(writes_and_sends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
