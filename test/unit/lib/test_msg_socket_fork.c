/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram sockets while a child of fork() has not run yet, as on a busy machine (DB-1, DB-11). */
#include "test.h"

#include "msg_fake.h"
#include "msg/sock.h"

#include <urnic/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int stall[2]; /* pipe: a child runs on when there is a byte */

/* Registered before the handlers of the library, so the child stands still before these. */
static void
child_waits(void)
{
	char byte;

	if (read(stall[0], &byte, 1) != 1)
		_exit(9);
}

static int
socket_at(uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = urn_socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(inet_pton(AF_INET, "10.0.0.1", &in.sin_addr), 1);
	assert_true(fd >= 0);
	assert_int_equal(urn_bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void
late_child(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct msg_fake *f = msg_fake_new();
	int b, c, status;
	char buf[8];
	pid_t pid;

	(void)state;
	assert_int_equal(inet_pton(AF_INET, "10.0.0.1", &to.sin_addr), 1);
	assert_int_equal(urn_socket_use(urn_msg_dev_open(&f->channel)), 0);
	b = socket_at(7);
	assert_int_equal(pipe(stall), 0);
	pid = fork();
	if (pid == 0)
		_exit(urn_recvfrom(b, buf, sizeof(buf), 0, NULL, NULL) == 2 ? 0 : 1);

	/* A later socket is not the child's: it ends when it is closed. */
	for (int i = 0; i < 8; i++) {
		c = socket_at(8);
		assert_int_equal(urn_sendto(c, "go", 2, 0, (struct sockaddr *)&to, sizeof(to)), 2);
		assert_int_equal(urn_recvfrom(b, buf, sizeof(buf), 0, NULL, NULL), 2);
		assert_int_equal(urn_close(c), 0);
		assert_int_equal(msg_fake_open_sets(f), 1);
	}
	c = socket_at(8);
	assert_int_equal(urn_sendto(c, "go", 2, 0, (struct sockaddr *)&to, sizeof(to)), 2);

	/* An earlier one is, though the child has not said so. */
	assert_int_equal(urn_close(b), 0);
	assert_int_equal(msg_fake_open_sets(f), 2);
	assert_int_equal(write(stall[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	b = socket_at(7); /* the orphan ends for its port */
	assert_int_equal(urn_close(b), 0);
	assert_int_equal(urn_close(c), 0);
	assert_int_equal(msg_fake_open_sets(f), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_child),
	};

	assert_int_equal(pthread_atfork(NULL, NULL, child_waits), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
