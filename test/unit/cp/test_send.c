/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender against a receiver played by the test: order and window of its messages, and
 * that it detects a receiver which breaks the protocol.
 */
#include "cp_test.h"

#include "fake_rail.h"
#include "send.h"

#include <sys/socket.h>

#define CHUNK 4096u
#define SLOTS 4u
#define FILES 3u

static int fds[2];
static struct cp_oob oob;
static struct cp_rail rail;
static struct cp_io io;
static struct cp_ends ends;
static struct cp_result res;
static struct cp_opts opts;
static struct urn_err err;
static uint8_t ring[SLOTS * CHUNK];
static uint8_t data[10 * CHUNK + 7];
static char paths[FILES][600];
static struct cp_source *src;
static unsigned int answered; /* messages of the sender that the receiver has looked at */
static uint64_t credited;
static enum cp_verdict answer;

static void
say_verdict(uint32_t file, enum cp_verdict v)
{
	struct cp_msg msg = {.type = CP_MSG_VERDICT, .file = file};

	msg.verdict.verdict = v;
	msg.verdict.store_ns = 5;
	strcpy(msg.verdict.text, v == CP_STORED ? "" : "because\x1b");
	fake_msg(&msg);
}

static void
say_credit(uint64_t done)
{
	struct cp_msg msg = {.type = CP_MSG_CREDIT};

	msg.credit.done = done;
	fake_msg(&msg);
}

/* A correct receiver: gives slots back one by one, and answers at the END. */
static void
good_receiver(void)
{
	assert_true(fake.n_writes <= credited + SLOTS);
	if (fake.head == fake.tail && credited < fake.n_writes)
		say_credit(++credited);
	while (answered < fake.n_sent) {
		const struct cp_msg *msg = &fake.sent[answered++];

		if (msg->type == CP_MSG_END)
			say_verdict(msg->file, msg->end.ok ? answer : CP_GIVEN_UP);
	}
	if (fake.turns == 20000000)
		shutdown(fds[1], SHUT_RDWR);
}

static int
setup(void **state)
{
	char *argv[FILES];
	unsigned int sendable;
	uint64_t bytes;

	if (test_dir_make(state) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return -1;
	memset(&fake, 0, sizeof(fake));
	memset(&rail, 0, sizeof(rail));
	memset(&ends, 0, sizeof(ends));
	memset(&res, 0, sizeof(res));
	urn_hist_reset(&res.latency);
	opts = (struct cp_opts){.chunk = CHUNK, .depth = SLOTS};
	answered = 0;
	credited = 0;
	answer = CP_STORED;
	cp_oob_init(&oob, fds[0], "the receiver");
	rail.slot = ring;
	rail.cfg.slots = SLOTS;
	rail.cfg.chunk = CHUNK;
	ends.rail = &rail;
	ends.oob = &oob;
	ends.io = &io;
	fake.script = good_receiver;
	for (unsigned int i = 0; i < FILES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/f%u", test_dir, i);
		test_file(paths[i], data, i == 1 ? 0 : sizeof(data) - i);
		argv[i] = paths[i];
	}
	src = cp_sources_look(argv, FILES, &sendable, &bytes);
	return src == NULL || sendable != FILES || cp_io_start(&io, &err) != 0 ? -1 : 0;
}

static int
teardown(void **state)
{
	cp_io_stop(&io);
	cp_oob_close(&oob);
	close(fds[1]);
	free(src);
	return test_dir_remove(state);
}

static int
send_it(void)
{
	return cp_send_files(&ends, &opts, src, FILES, &res, &err);
}

static unsigned int
count(enum cp_msg_type type)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < fake.n_sent; i++)
		n += fake.sent[i].type == type;
	return n;
}

static void
test_files(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(send_it(), 0);
	assert_int_equal(fake.n_sent, 2 * FILES);
	for (unsigned int i = 0; i < FILES; i++) {
		assert_int_equal(fake.sent[2 * i].type, CP_MSG_FILE);
		assert_int_equal(fake.sent[2 * i].file, i);
		assert_int_equal(fake.sent[2 * i + 1].type, CP_MSG_END);
		assert_true(fake.sent[2 * i + 1].end.ok);
		assert_int_equal(src[i].state, CP_SENT);
	}
	for (unsigned int i = 0; i < fake.n_writes; i++)
		bytes += fake.write_len[i];
	assert_int_equal(bytes, src[0].size + src[2].size);
	assert_int_equal(res.bytes, bytes);
	assert_int_equal(res.ok, FILES);
	assert_int_equal(res.messages, fake.n_writes);
	assert_int_equal(urn_hist_count(&res.latency), fake.n_writes);
	assert_int_equal(res.store_ns, 5 * FILES);
}

/* A verdict in the middle: the sender stops, ends the file once, and goes on to the next. */
static bool told;

static void
refusing_receiver(void)
{
	if (fake.n_writes == 2 && !told) {
		told = true;
		say_verdict(0, CP_REFUSED);
	}
	while (answered < fake.n_sent && fake.sent[answered].file == 0)
		answered++;
	good_receiver();
}

static void
test_refused_early(void **state)
{
	(void)state;
	told = false;
	fake.script = refusing_receiver;
	assert_int_equal(send_it(), 0);
	assert_int_equal(src[0].state, CP_UNSENT);
	assert_says(src[0].why.text, "did not store");
	assert_says(src[0].why.text, "because?");
	assert_int_equal(src[1].state, CP_SENT);
	assert_int_equal(src[2].state, CP_SENT);
	assert_int_equal(count(CP_MSG_END), FILES);
	assert_int_equal(res.ok, 2);
}

/* Only files that the receiver stored count as sent. */
static void
test_bad_verdicts(void **state)
{
	(void)state;
	answer = CP_MISMATCH;
	assert_int_equal(send_it(), 0);
	for (unsigned int i = 0; i < FILES; i++)
		assert_int_equal(src[i].state, CP_UNSENT);
	assert_int_equal(res.ok, 0);
	assert_int_equal(res.bytes, 0);
}

/* A file that shrinks while it is sent is given up; the next one is sent. */
static void
test_shrinks(void **state)
{
	(void)state;
	assert_int_equal(truncate(paths[0], CHUNK + 5), 0);
	src[0].size = sizeof(data);
	assert_int_equal(send_it(), 0);
	/* Opened again, the file is sent at its present length. */
	assert_int_equal(src[0].state, CP_SENT);
	assert_int_equal(fake.sent[0].announce.size, CHUNK + 5);
}

static void
shrinking(void)
{
	if (fake.n_sent == 1 && fake.turns < 100000)
		assert_int_equal(truncate(paths[0], CHUNK + 5), 0);
	good_receiver();
}

static void
test_shrinks_under_way(void **state)
{
	(void)state;
	fake.script = shrinking;
	assert_int_equal(send_it(), 0);
	assert_int_equal(src[0].state, CP_UNSENT);
	assert_says(src[0].why.text, "shorter");
	assert_int_equal(fake.sent[1].type, CP_MSG_END);
	assert_false(fake.sent[1].end.ok);
	assert_int_equal(src[2].state, CP_SENT);
}

/* ---- a receiver that breaks the protocol */

static void (*misdeed)(void);
static bool silent; /* the receiver says no more */

static void
bad_receiver(void)
{
	if (fake.n_writes == 2 && !told) {
		told = true;
		misdeed();
	}
	if (!silent)
		good_receiver();
}

static void
found_out(void (*deed)(void), const char *text)
{
	told = false;
	silent = false;
	misdeed = deed;
	fake.script = bad_receiver;
	assert_int_equal(send_it(), -1);
	assert_says(err.text, text);
	for (unsigned int i = 0; i < FILES; i++) {
		assert_int_equal(src[i].state, CP_UNSENT);
		assert_true(src[i].why.text[0] != '\0');
	}
}

static void
too_much_credit(void)
{
	say_credit(1000);
}

static void
credit_taken_back(void)
{
	say_credit(2);
	say_credit(1);
	credited = 2;
}

static void
foreign_verdict(void)
{
	say_verdict(1, CP_STORED);
}

static void
two_verdicts(void)
{
	say_verdict(0, CP_FAILED);
	say_verdict(0, CP_FAILED);
}

static void
senders_words(void)
{
	struct cp_msg msg = {.type = CP_MSG_FILE};

	fake_msg(&msg);
}

static void
senders_data(void)
{
	struct cp_event ev = {.type = CP_EV_CHUNK, .len = 10};

	fake_event(&ev);
}

static void
wrong_completion(void)
{
	struct cp_event ev = {.type = CP_EV_WRITTEN, .seq = 77};

	fake_event(&ev);
}

static void
gone(void)
{
	/* Or the transfer may be over before the sender next looks at the socket. */
	silent = true;
	shutdown(fds[1], SHUT_RDWR);
}

static void
test_too_much_credit(void **state)
{
	(void)state;
	found_out(too_much_credit, "broke the protocol");
}

static void
test_credit_taken_back(void **state)
{
	(void)state;
	found_out(credit_taken_back, "broke the protocol");
}

static void
test_foreign_verdict(void **state)
{
	(void)state;
	found_out(foreign_verdict, "broke the protocol");
}

static void
test_two_verdicts(void **state)
{
	(void)state;
	found_out(two_verdicts, "broke the protocol");
}

static void
test_senders_words(void **state)
{
	(void)state;
	found_out(senders_words, "broke the protocol");
}

static void
test_senders_data(void **state)
{
	(void)state;
	found_out(senders_data, "sent data to the sender");
}

static void
test_wrong_completion(void **state)
{
	(void)state;
	found_out(wrong_completion, "out of turn");
}

static void
test_gone(void **state)
{
	(void)state;
	found_out(gone, "went away");
}

#define CHUNKS 22u		  /* the three files have so many */
static struct urn_failover *lost; /* set by the test that runs */

/* A correct receiver, which sees the last chunk of all after the adapter was lost. */
static void
late_receiver(void)
{
	if (fake.n_writes == CHUNKS)
		assert_true(urn_failover_past(lost));
	good_receiver();
}

/* Send while an adapter is lost by a command. returns: as send_it() */
static int
send_and_lose(struct urn_failover *f, const char *command, uint32_t percent)
{
	const struct urn_loss_spec spec = {.kind = URN_LOSS_RUN, .command = command};
	int rc;

	setenv("URNIC_SESSION", "/a,/b", 1);
	assert_int_equal(urn_failover_prepare(f, &spec, &err), 0);
	opts.kill_at = percent;
	res.failover = f;
	rc = send_it();
	unsetenv("URNIC_SESSION_LOG");
	return rc;
}

/* Files that are sent in no time lose the adapter all the same before their end. */
static void
loses_adapter(void **state)
{
	struct urn_failover f;

	(void)state;
	lost = &f;
	fake.script = late_receiver;
	assert_int_equal(send_and_lose(&f, "sleep 0.1", 50), 0);
	assert_int_equal(fake.n_writes, CHUNKS);
	assert_int_equal(res.ok, FILES);
	assert_int_equal(urn_failover_judge(&f, &err), 0);
	assert_true(urn_samples_units(&f.samples, f.acted_ns) < 2 * sizeof(data) - 2);
	urn_failover_close(&f);
}

/* An adapter that can't be lost holds nothing up. */
static void
loses_none(void **state)
{
	struct urn_failover f;

	(void)state;
	assert_int_equal(send_and_lose(&f, "false", 99), 0);
	assert_int_equal(res.ok, FILES);
	assert_int_equal(urn_failover_judge(&f, &err), -1);
	urn_failover_close(&f);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_files),
		T(test_refused_early),
		T(test_bad_verdicts),
		T(test_shrinks),
		T(test_shrinks_under_way),
		T(test_too_much_credit),
		T(test_credit_taken_back),
		T(test_foreign_verdict),
		T(test_two_verdicts),
		T(test_senders_words),
		T(test_senders_data),
		T(test_wrong_completion),
		T(test_gone),
		T(loses_adapter),
		T(loses_none),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
