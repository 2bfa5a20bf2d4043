/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver against a sender played by the test: files arrive, and a sender that
 * breaks the protocol achieves nothing and leaves nothing.
 */
#include "cp_test.h"

#include "digest.h"
#include "fake_rail.h"
#include "recv.h"

#include <sys/socket.h>

#define CHUNK 4096u
#define SLOTS 4u

static int fds[2];
static struct cp_oob oob;
static struct cp_rail rail;
static struct cp_io io;
static struct cp_ends ends;
static struct cp_store store;
static struct cp_result res;
static struct urn_err err;
static uint8_t ring[SLOTS * CHUNK];
static struct cp_offer offer;
static uint64_t seq;        /* number of the sender's next chunk */
static unsigned int files;  /* files announced so far */
static bool done_said;

/* The sender's end: when every file has its verdict it sends DONE, and finally it goes. */
static void
end_script(void)
{
	struct cp_done done = {{0}};
	struct cp_oob peer = {.fd = fds[1], .peer = "x"};
	struct urn_err ignored;
	unsigned int verdicts = 0;

	for (unsigned int i = 0; i < fake.n_sent; i++)
		verdicts += fake.sent[i].type == CP_MSG_VERDICT;
	if (verdicts == files && fake.head == fake.tail && !done_said) {
		done_said = true;
		cp_oob_say(&peer, CP_DONE, &done, &ignored);
	}
	if (fake.turns == 20000000)
		shutdown(fds[1], SHUT_RDWR);
}

static int
setup(void **state)
{
	if (test_dir_make(state) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return -1;
	memset(&fake, 0, sizeof(fake));
	memset(&rail, 0, sizeof(rail));
	memset(&ends, 0, sizeof(ends));
	memset(&res, 0, sizeof(res));
	seq = 0;
	files = 0;
	done_said = false;
	offer = (struct cp_offer){.mtu = 4096, .chunk = CHUNK, .depth = SLOTS};
	cp_oob_init(&oob, fds[0], "the sender");
	rail.slot = ring;
	rail.cfg.slots = SLOTS;
	rail.cfg.chunk = CHUNK;
	rail.cfg.server = true;
	rail.n_free_send = 100;
	ends.rail = &rail;
	ends.oob = &oob;
	ends.io = &io;
	fake.script = end_script;
	if (cp_io_start(&io, &err) != 0)
		return -1;
	return cp_store_open(&store, test_dir, false, &err);
}

static int
teardown(void **state)
{
	cp_io_stop(&io);
	cp_store_close(&store, &err);
	cp_oob_close(&oob);
	close(fds[1]);
	return test_dir_remove(state);
}

static void
say_file(const char *name, uint64_t size)
{
	struct cp_msg msg = {.type = CP_MSG_FILE, .file = files++};

	msg.announce.size = size;
	msg.announce.mode = 0644;
	strcpy(msg.announce.name, name);
	fake_msg(&msg);
}

static void
say_chunk(uint8_t byte, uint32_t len)
{
	struct cp_event ev = {.type = CP_EV_CHUNK, .seq = (uint32_t)seq, .len = len};

	memset(cp_rail_slot(&rail, seq++), byte, len < CHUNK ? len : CHUNK);
	fake_event(&ev);
}

/* End the file; its digest is that of `len` bytes of one value in each chunk, the values 1, 2, ... */
static void
say_end(bool ok, size_t len)
{
	struct cp_msg msg = {.type = CP_MSG_END, .file = files - 1};
	struct cp_digest d = {NULL};
	uint8_t chunk[CHUNK];

	msg.end.ok = ok;
	assert_int_equal(cp_digest_begin(&d, &err), 0);
	for (size_t at = 0; at < len; at += CHUNK) {
		memset(chunk, (int)(at / CHUNK + 1), sizeof(chunk));
		cp_digest_add(&d, chunk, len - at < CHUNK ? len - at : CHUNK, &err);
	}
	assert_int_equal(cp_digest_end(&d, msg.end.digest, &err), 0);
	cp_digest_free(&d);
	fake_msg(&msg);
}

static int
receive(void)
{
	return cp_recv_files(&ends, &offer, &store, false, &res, &err);
}

static const struct cp_msg *
verdict(uint32_t file)
{
	const struct cp_msg *found = NULL;

	for (unsigned int i = 0; i < fake.n_sent; i++) {
		if (fake.sent[i].type != CP_MSG_VERDICT || fake.sent[i].file != file)
			continue;
		/* Exactly one verdict for each file. */
		assert_null(found);
		found = &fake.sent[i];
	}
	assert_non_null(found);
	return found;
}

static void
test_files(void **state)
{
	uint8_t want[CHUNK + 10];

	(void)state;
	memset(want, 1, CHUNK);
	memset(want + CHUNK, 2, 10);
	say_file("x", CHUNK + 10);
	say_chunk(1, CHUNK);
	say_chunk(2, 10);
	say_end(true, CHUNK + 10);
	say_file("empty", 0);
	say_end(true, 0);
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_STORED);
	assert_int_equal(verdict(1)->verdict.verdict, CP_STORED);
	assert_holds(test_path("x"), want, sizeof(want));
	assert_holds(test_path("empty"), "", 0);
	assert_int_equal(entries(test_dir), 2);
	assert_int_equal(res.ok, 2);
	assert_int_equal(res.bytes, CHUNK + 10);
	assert_int_equal(res.messages, 2);
}

/* The bytes differ from those that the sender read: no file. */
static void
test_mismatch(void **state)
{
	(void)state;
	say_file("x", 10);
	say_chunk(9, 10);
	say_end(true, 10);
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_MISMATCH);
	assert_says(verdict(0)->verdict.text, "SHA-256");
	assert_int_equal(entries(test_dir), 0);
}

/* Without the check, the same bytes are taken. */
static void
test_no_check(void **state)
{
	(void)state;
	offer.no_check = 1;
	say_file("x", 10);
	say_chunk(9, 10);
	say_end(true, 10);
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_STORED);
	assert_int_equal(entries(test_dir), 1);
}

static void
test_given_up(void **state)
{
	(void)state;
	say_file("x", 3 * CHUNK);
	say_chunk(1, CHUNK);
	say_end(false, 0);
	say_file("y", 5);
	say_chunk(1, 5);
	say_end(true, 5);
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_GIVEN_UP);
	assert_int_equal(verdict(1)->verdict.verdict, CP_STORED);
	assert_int_equal(entries(test_dir), 1);
}

/* A refusal comes before the end; data sent in the same moment still arrives. */
static void
test_refused(void **state)
{
	(void)state;
	test_file(test_path("x"), "old", 3);
	say_file("x", 2 * CHUNK);
	say_chunk(1, CHUNK);
	say_chunk(2, CHUNK);
	say_end(true, 2 * CHUNK);
	say_file("y", 5);
	say_chunk(1, 5);
	say_end(true, 5);
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_REFUSED);
	assert_int_equal(verdict(1)->verdict.verdict, CP_STORED);
	assert_holds(test_path("x"), "old", 3);
	assert_int_equal(entries(test_dir), 2);
}

/* Slots go back when their chunks are hashed and written; in the end all have. */
static void
test_credits(void **state)
{
	uint64_t last = 0;

	(void)state;
	say_file("x", SLOTS * CHUNK);
	for (unsigned int i = 0; i < SLOTS; i++)
		say_chunk((uint8_t)(i + 1), CHUNK);
	say_end(true, SLOTS * CHUNK);
	assert_int_equal(receive(), 0);
	for (unsigned int i = 0; i < fake.n_sent; i++) {
		if (fake.sent[i].type != CP_MSG_CREDIT)
			continue;
		assert_true(fake.sent[i].credit.done > last);
		last = fake.sent[i].credit.done;
	}
	assert_int_equal(last, SLOTS);
}

/* Without a buffer for messages the receiver waits for one. */
static void
buffers_come(void)
{
	if (fake.turns == 1000)
		fake.no_buffers = false;
	end_script();
}

static void
test_no_buffers(void **state)
{
	(void)state;
	fake.no_buffers = true;
	fake.script = buffers_come;
	say_file("x", 5);
	say_chunk(1, 5);
	say_end(true, 5);
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_STORED);
}

/* ---- a sender that breaks the protocol */

static void
broken(const char *what)
{
	assert_int_equal(receive(), -1);
	assert_says(err.text, "broke the protocol");
	assert_says(err.text, what);
	assert_int_equal(entries(test_dir), 0);
}

static void
test_data_without_file(void **state)
{
	(void)state;
	say_chunk(1, 10);
	broken("data out of turn");
}

static void
test_wrong_number(void **state)
{
	(void)state;
	say_file("x", 3 * CHUNK);
	seq = 1;
	say_chunk(1, CHUNK);
	broken("data out of turn");
}

static void
test_long_chunk(void **state)
{
	(void)state;
	say_file("x", 10);
	say_chunk(1, 11);
	broken("wrong length");
}

static void
test_short_chunk(void **state)
{
	(void)state;
	say_file("x", CHUNK + 10);
	say_chunk(1, CHUNK - 1);
	broken("wrong length");
}

static void
test_data_beyond_end(void **state)
{
	(void)state;
	say_file("x", CHUNK);
	say_chunk(1, CHUNK);
	say_chunk(2, CHUNK);
	broken("wrong length");
}

static void
test_empty_chunk(void **state)
{
	(void)state;
	say_file("x", 0);
	say_chunk(1, 0);
	broken("wrong length");
}

/* More chunks than slots: the sender does not wait for credits. */
static void
test_overrun(void **state)
{
	(void)state;
	rail.n_free_send = 0; /* no credit goes out */
	say_file("x", 100 * CHUNK);
	for (unsigned int i = 0; i < SLOTS + 1; i++)
		say_chunk(1, CHUNK);
	broken("data out of turn");
}

static void
test_end_early(void **state)
{
	(void)state;
	say_file("x", CHUNK + 10);
	say_chunk(1, CHUNK);
	say_end(true, CHUNK);
	broken("too early");
}

static void
test_end_of_nothing(void **state)
{
	struct cp_msg msg = {.type = CP_MSG_END};

	(void)state;
	fake_msg(&msg);
	broken("ends a file, with no file");
}

static void
test_file_in_file(void **state)
{
	(void)state;
	say_file("x", 10);
	say_file("y", 10);
	broken("announces a file, with a file");
}

static void
test_wrong_file_number(void **state)
{
	(void)state;
	files = 5;
	say_file("x", 10);
	broken("announces a file");
}

static void
test_receivers_words(void **state)
{
	struct cp_msg msg = {.type = CP_MSG_CREDIT};

	(void)state;
	fake_msg(&msg);
	broken("only a receiver sends");
}

static void
say_done_early(void)
{
	files = 0;
	end_script();
}

static void
test_done_early(void **state)
{
	(void)state;
	say_file("x", 10);
	fake.script = say_done_early;
	broken("done");
}

/* A file was refused early: its END is still on its way when the sender says DONE. */
static void
end_after_done(void)
{
	end_script();
	if (ends.heard && files == 1) {
		say_end(true, CHUNK);
		files++;
	}
}

static void
test_done_overtakes(void **state)
{
	(void)state;
	test_file(test_path("x"), "old", 3);
	say_file("x", CHUNK);
	say_chunk(1, CHUNK);
	fake.script = end_after_done;
	assert_int_equal(receive(), 0);
	assert_int_equal(verdict(0)->verdict.verdict, CP_REFUSED);
	assert_int_equal(res.ok, 0);
	assert_holds(test_path("x"), "old", 3);
}

static void
go_away(void)
{
	if (fake.turns == 100)
		shutdown(fds[1], SHUT_RDWR);
}

/* A sender goes away in the middle: no file stays. */
static void
test_gone(void **state)
{
	(void)state;
	say_file("x", 2 * CHUNK);
	say_chunk(1, CHUNK);
	fake.script = go_away;
	assert_int_equal(receive(), -1);
	assert_says(err.text, "went away");
	assert_int_equal(entries(test_dir), 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_files),		 T(test_mismatch),
		T(test_no_check),	 T(test_given_up),
		T(test_refused),	 T(test_credits),
		T(test_no_buffers),	 T(test_data_without_file),
		T(test_wrong_number),	 T(test_long_chunk),
		T(test_short_chunk),	 T(test_data_beyond_end),
		T(test_empty_chunk),	 T(test_overrun),
		T(test_end_early),	 T(test_end_of_nothing),
		T(test_file_in_file),	 T(test_wrong_file_number),
		T(test_receivers_words), T(test_done_early),
		T(test_done_overtakes),	 T(test_gone),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
