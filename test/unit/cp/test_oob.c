/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: whole frames, in order, every field checked; a mistake gives a sentence. */
#include "cp_test.h"

#include "oob.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

static int fds[2];
static struct cp_oob oob; /* on fds[0]; the test uses fds[1] */
static struct urn_err err;
static union cp_body body;

static int
setup(void **state)
{
	(void)state;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return -1;
	cp_oob_init(&oob, fds[0], "the peer");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	cp_oob_close(&oob);
	cp_oob_close(&oob);
	close(fds[1]);
	return 0;
}

static struct cp_offer
good_offer(void)
{
	return (struct cp_offer){.release = URN_CP_RELEASE, .mtu = 1024, .chunk = 8192, .depth = 4};
}

/* A frame counts when its last byte is in, in whatever pieces it comes. */
static void
test_pieces(void **state)
{
	struct cp_offer offer = good_offer();
	struct cp_oob other;
	uint8_t raw[256];
	ssize_t len;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cp_oob_init(&other, pair[0], "x");
	assert_int_equal(cp_oob_say(&other, CP_OFFER, &offer, &err), 0);
	assert_int_equal(cp_oob_say(&other, CP_GO, NULL, &err), 0);
	len = read(pair[1], raw, sizeof(raw));
	assert_int_equal(len, 2 * CP_FRAME_HEAD + sizeof(offer));
	for (ssize_t i = 0; i < len; i++) {
		int want = i == len - 1 - (ssize_t)CP_FRAME_HEAD || i == len - 1;

		assert_int_equal(write(fds[1], raw + i, 1), 1);
		assert_int_equal(cp_oob_look(&oob, i < len - (ssize_t)CP_FRAME_HEAD ? CP_OFFER : CP_GO,
					     &body, &err), want);
		if (want && i < len - 1)
			assert_memory_equal(&body.offer, &offer, sizeof(offer));
	}
	assert_false(oob.peer_failed);
	cp_oob_close(&other);
	close(pair[1]);
}

static void
hear(const void *raw, size_t len, const char *sentence)
{
	void *state = NULL;

	teardown(&state);
	assert_int_equal(setup(&state), 0);
	assert_int_equal(write(fds[1], raw, len), (ssize_t)len);
	shutdown(fds[1], SHUT_WR);
	assert_int_equal(cp_oob_look(&oob, CP_READY, &body, &err), -1);
	assert_says(err.text, sentence);
	assert_true(oob.peer_failed);
}

static void
test_rubbish(void **state)
{
	struct {
		uint32_t magic;
		uint16_t protocol, type;
		uint32_t length;
	} head = {0x7563706f, 1, CP_GO, 0};
	uint8_t zero[64] = {0};

	(void)state;
	hear("", 0, "went away");
	hear("short", 5, "went away");
	hear(zero, sizeof(zero), "another protocol");
	hear(&head, sizeof(head), "said GO where READY was due");
	head.type = CP_READY;
	hear(&head, sizeof(head), "another protocol");
	head.type = CP_SILENCE;
	hear(&head, sizeof(head), "another protocol");
	head.type = CP_FRAMES;
	hear(&head, sizeof(head), "another protocol");
	head.type = CP_READY;
	head.length = 0x7fffffff;
	hear(&head, sizeof(head), "another protocol");
	head.length = sizeof(struct cp_ready);
	hear(&head, sizeof(head), "went away");
	head.protocol = 2;
	hear(&head, sizeof(head), "another protocol");
}

/* FAIL delivers its sentence, without characters that could steer a terminal. */
static void
test_fail(void **state)
{
	struct cp_oob other;
	char text[400];

	(void)state;
	cp_oob_init(&other, fds[1], "x");
	cp_oob_fail(&other, "out of \x1b paper");
	assert_int_equal(cp_oob_look(&oob, CP_READY, &body, &err), -1);
	assert_string_equal(err.text, "the peer gave up: out of ? paper");
	assert_true(oob.peer_failed && oob.peer_said);
	/* A sentence that is too long is cut. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cp_oob_fail(&other, text);
	assert_int_equal(cp_oob_look(&oob, CP_READY, &body, &err), -1);
	/* A peer that failed is not told that we fail too. */
	cp_oob_fail(&oob, "nor can we");
	assert_int_equal(recv(fds[1], text, sizeof(text), MSG_DONTWAIT), -1);
}

/* A peer gave its reason and left: we find the reason when we send to it. */
static void
test_reason_at_saying(void **state)
{
	struct cp_oob other;

	(void)state;
	cp_oob_init(&other, fds[1], "x");
	cp_oob_fail(&other, "no room");
	cp_oob_close(&other);
	assert_int_equal(cp_oob_say(&oob, CP_GO, NULL, &err), -1);
	assert_string_equal(err.text, "the peer gave up: no room");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	cp_oob_close(&oob);
	cp_oob_init(&oob, fds[0], "the peer");
	close(fds[1]);
	assert_int_equal(cp_oob_say(&oob, CP_GO, NULL, &err), -1);
	assert_says(err.text, "has gone");
	assert_true(oob.peer_failed);
	fds[1] = dup(fds[0]);
}

/* No frame is there: nothing happens, and nobody waits. */
static void
test_silence(void **state)
{
	(void)state;
	assert_int_equal(cp_oob_look(&oob, CP_SILENCE, &body, &err), 0);
	assert_int_equal(cp_oob_look(&oob, CP_READY, &body, &err), 0);
	assert_false(oob.peer_failed);
}

static void
test_offers(void **state)
{
	struct cp_offer o = good_offer();

	(void)state;
	assert_int_equal(cp_offer_check(&o, &err), 0);
#define REFUSE(field, value)                                                                   \
	do {                                                                                   \
		o = good_offer();                                                              \
		o.field = (value);                                                             \
		err.text[0] = '\0';                                                            \
		assert_int_equal(cp_offer_check(&o, &err), -1);                                \
		assert_true(err.text[0] != '\0');                                              \
	} while (0)
	REFUSE(release[0], 'x');
	REFUSE(mtu, 0);
	REFUSE(mtu, 1500);
	REFUSE(chunk, 0);
	REFUSE(chunk, 4097);
	REFUSE(chunk, 128u << 20);
	REFUSE(depth, 0);
	REFUSE(depth, 1);
	REFUSE(depth, 1025);
	REFUSE(no_check, 2);
	REFUSE(no_icrc, 2);
	REFUSE(over_msg, 2);
	o = good_offer();
	o.over_msg = 1;
	assert_int_equal(cp_offer_check(&o, &err), 0);
	o.chunk = 1u << 20;
	assert_int_equal(cp_offer_check(&o, &err), -1);
	o = good_offer();
	memset(o.release, '0', sizeof(o.release));
	assert_int_equal(cp_offer_check(&o, &err), -1);
	o = good_offer();
	o.chunk = 64u << 20;
	o.depth = 17;
	assert_int_equal(cp_offer_check(&o, &err), -1);
}

/* A queue is told over messages, and only there. */
static void
test_queues(void **state)
{
	struct cp_queue none = {0}, one = {.qid = 1ull << 32, .token = 5}, bad = {.qid = 1ull << 32, .rsvd = 1};

	(void)state;
	assert_true(cp_queue_ok(&none, false));
	assert_true(cp_queue_ok(&one, true));
	assert_false(cp_queue_ok(&none, true));
	assert_false(cp_queue_ok(&one, false));
	assert_false(cp_queue_ok(&bad, true));
}

static void
test_addresses(void **state)
{
	struct cp_ready good = {.ep = {.qpn = 17, .gid = {1}, .mtu_code = 5}, .memif = "/tmp/x"}, r;
	struct cp_start s = {.ep = good.ep};

	(void)state;
	assert_int_equal(cp_ready_check(&good, false, &err), 0);
	assert_int_equal(cp_start_check(&s, &err), 0);
#define REFUSE_READY(change)                                                                   \
	do {                                                                                   \
		r = good;                                                                      \
		change;                                                                        \
		assert_int_equal(cp_ready_check(&r, false, &err), -1);                                \
	} while (0)
	REFUSE_READY(r.ep.qpn = 0);
	REFUSE_READY(r.ep.qpn = 1 << 24);
	REFUSE_READY(r.ep.psn = 1 << 24);
	REFUSE_READY(r.ep.mtu_code = 0);
	REFUSE_READY(r.ep.mtu_code = 6);
	REFUSE_READY(r.ep.gid[0] = 0);
	REFUSE_READY(r.rsvd = 1);
	REFUSE_READY(strcpy(r.memif, "relative"));
	/* This path would add arguments to the device made from it. */
	REFUSE_READY(strcpy(r.memif, "/x,role=server"));
	REFUSE_READY(memset(r.memif, '/', sizeof(r.memif)));
	/* Attached or not, both sides must be alike. */
	assert_int_equal(cp_ready_check(&good, true, &err), -1);
	assert_non_null(strstr(err.text, "sender is attached"));
	r = good;
	r.memif[0] = '\0';
	assert_int_equal(cp_ready_check(&r, true, &err), 0);
	assert_int_equal(cp_ready_check(&r, false, &err), -1);
	assert_non_null(strstr(err.text, "receiver is attached"));
	s.ep.qpn = 1 << 24;
	assert_int_equal(cp_start_check(&s, &err), -1);
}

static void *
listen_late(void *arg)
{
	usleep(100000);
	listen(*(int *)arg, 1);
	return NULL;
}

/* A socket exists before anybody listens on it; the connection is tried again. */
static void
test_connect_early(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *path = test_path("s");
	pthread_t thread;
	int listener, fd;

	(void)state;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(pthread_create(&thread, NULL, listen_late, &listener), 0);
	fd = cp_oob_connect(path, &err);
	pthread_join(thread, NULL);
	assert_true(fd >= 0);
	close(fd);
	close(listener);
}

/* Nobody but this user may connect: a memif peer is trusted. */
static void
test_listen(void **state)
{
	const char *path = test_path("s");
	struct stat st;
	char byte[1];
	int listener, again, a, b;

	(void)state;
	listener = cp_oob_listen(path, &err);
	assert_true(listener >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
	assert_int_equal(cp_oob_listen(path, &err), -1);
	assert_says(err.text, "listens");
	/* The second listener's look was no sender: the first connection to be accepted is one. */
	b = cp_oob_connect(path, &err);
	a = cp_oob_accept(listener, path, &err);
	assert_true(a >= 0 && b >= 0);
	assert_int_equal(write(b, "x", 1), 1);
	assert_int_equal(read(a, byte, 1), 1);
	close(a);
	close(b);
	close(listener);
	/* A socket left behind, as by a listener that was killed. */
	assert_int_equal(cp_oob_connect(path, &err), -1);
	assert_says(err.text, "nobody listens");
	again = cp_oob_listen(path, &err);
	assert_true(again >= 0);
	close(again);
	unlink(path);
	test_file(path, "", 0);
	assert_int_equal(cp_oob_listen(path, &err), -1);
	assert_says(err.text, "no socket");
}

static int
listen_setup(void **state)
{
	return test_dir_make(state);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_pieces),
		T(test_rubbish),
		T(test_fail),
		T(test_reason_at_saying),
		T(test_silence),
		cmocka_unit_test(test_offers),
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_queues),
		cmocka_unit_test_setup_teardown(test_listen, listen_setup, test_dir_remove),
		cmocka_unit_test_setup_teardown(test_connect_early, listen_setup, test_dir_remove),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
