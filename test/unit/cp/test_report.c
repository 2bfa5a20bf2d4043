/* SPDX-License-Identifier: BSD-3-Clause */
/* The summary: figures of part 7 (throughput, latency, packets, retransmissions), in text and JSON. */
#include "cp_test.h"

#include "report.h"

static struct cp_result res;
static struct cp_source sources[2];
static char printed[8192];

/* Run print() with a stream's descriptor pointed at a file; its output is in `printed`. */
static void
record(FILE *stream, void (*print)(void))
{
	int fd = fileno(stream), saved = dup(fd), file = open(test_path("out"), O_RDWR | O_CREAT, 0600);
	ssize_t n;

	fflush(stream);
	assert_true(saved >= 0 && file >= 0 && dup2(file, fd) >= 0);
	print();
	fflush(stream);
	dup2(saved, fd);
	n = pread(file, printed, sizeof(printed) - 1, 0);
	assert_true(n >= 0);
	printed[n] = '\0';
	close(saved);
	close(file);
	unlink(test_path("out"));
}

static void
text(void)
{
	cp_report_text(&res);
}

static void
json(void)
{
	cp_report_json(&res);
}

static int
fill(void **state)
{
	memset(&res, 0, sizeof(res));
	memset(sources, 0, sizeof(sources));
	urn_hist_reset(&res.latency);
	for (unsigned int i = 0; i < 100; i++)
		urn_hist_add(&res.latency, 800000);
	res.sender = res.checked = res.icrc = res.complete = true;
	res.files = 2;
	res.ok = 2;
	res.bytes = 256u << 20;
	res.ns = 310000000;
	res.store_ns = 100000000;
	res.messages = 1024;
	res.chunk = 262144;
	res.depth = 16;
	res.mtu = 4096;
	res.to = "received";
	res.own.v[URN_C_TX_PACKETS] = 65792;
	res.own.v[URN_C_RX_PACKETS] = 2112;
	res.sources = sources;
	sources[0] = (struct cp_source){.path = "a \"b\"", .size = 5, .state = CP_SENT};
	sources[1] = (struct cp_source){.path = "c", .size = 6, .state = CP_SENT};
	return test_dir_make(state);
}

static void
test_text(void **state)
{
	(void)state;
	record(stdout, text);
	/* The wait for the disk is reported apart from the NIC's time. */
	assert_says(printed, "sent 2 files, 256 MiB in 0.21 s: 10.2 Gb/s, SHA-256 verified by the "
			     "receiver, in received/\n");
	assert_says(printed, "to disk took another 100 ms");
	assert_says(printed, "messages 1,024 of up to 256 KiB, latency p50/p99/p99.9 80");
	assert_says(printed, "packets 65,792 sent, 2,112 received, 0 retransmitted; drops: none; at "
			     "the receiver: none\n");
}

/* Files are called verified only if they were, and drops are named. */
static void
test_text_bad(void **state)
{
	(void)state;
	res.checked = res.icrc = false;
	res.ok = 1;
	res.own.v[URN_C_DROP_ICRC] = 3;
	res.peer.v[URN_C_DROP_OOO] = 4;
	record(stdout, text);
	assert_says(printed, "sent 1 of 2 files");
	assert_says(printed, "NOT compared (--no-check)");
	assert_null(strstr(printed, "verified"));
	assert_says(printed, "no ICRC");
	assert_says(printed, "drops: bad ICRC 3; at the receiver: ahead of its turn");
	/* The peer's figures are left out when it did not send them. */
	res.complete = false;
	record(stdout, text);
	assert_null(strstr(printed, "at the receiver"));
}

static void
test_json(void **state)
{
	(void)state;
	sources[1].state = CP_UNSENT;
	strcpy(sources[1].why.text, "no");
	res.ok = 1;
	res.own.v[URN_C_RETRANSMITS] = 9;
	res.own.v[URN_C_DROP_TX] = 2;
	record(stdout, json);
	assert_says(printed, "\"ok\": false");
	assert_says(printed, "\"files_ok\": 1");
	assert_says(printed, "\"path\": \"a \\\"b\\\"\"");
	assert_says(printed, "\"retransmits\": 9");
	assert_says(printed, "\"drop_tx\": 2");
	assert_says(printed, "\"p999\": 80");
	assert_says(printed, "\"error\": \"no\"");
	assert_says(printed, "\"seconds\": 0.21");
}

static void
complain(void)
{
	cp_complain("no stop %d", 1);
	cp_complain("a stop.");
	cp_complain_as("receiver: ");
	cp_complain("who");
	cp_complain_as("");
}

/* Sentences, one a line, that name the program. */
static void
test_complain(void **state)
{
	(void)state;
	record(stderr, complain);
	assert_string_equal(printed, "urnic-cp: no stop 1.\nurnic-cp: a stop.\n"
				     "urnic-cp: receiver: who.\n");
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fill, test_dir_remove)
	const struct CMUnitTest tests[] = {T(test_text), T(test_text_bad), T(test_json),
					   T(test_complain)};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
