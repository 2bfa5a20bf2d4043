/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket, with commands of the test's own: clients that ask, ask badly, or do not listen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "urnicd/admin_proto.h"
#include "urnicd/admin_server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/urnic-test.XXXXXX", path[64];
static struct nicd_admin_server *server;
static struct nicd_admin admin;
static atomic_int runs; /* commands under way */

/* ---- commands: "say WORD" says it, "much N" says N thousand bytes, "fail", "wrong" */

void
nicd_run_begin(struct nicd_run *r, struct nicd_admin *a, bool json, bool console,
	       char *const *words, unsigned int n)
{
	assert_ptr_equal(a, &admin);
	assert_false(console);
	memset(r, 0, sizeof(*r));
	r->fd = -1;
	atomic_fetch_add(&runs, 1);
	if (n == 2 && strcmp(words[0], "say") == 0)
		urn_report_buf_printf(&r->out, "%s%s\n", json ? "json " : "", words[1]);
	else if (n == 2 && strcmp(words[0], "much") == 0)
		r->query.rows = (uint32_t)atoi(words[1]);
	else
		r->status = n && strcmp(words[0], "fail") == 0 ? NICD_RUN_FAILED : NICD_RUN_USAGE;
	urn_err_set(&r->err, "%u words", n);
}

bool
nicd_run_step(struct nicd_run *r)
{
	for (unsigned int i = 0; i < 50 && r->query.rows; i++, r->query.rows--)
		urn_report_buf_printf(&r->out, "%0999u\n", r->query.rows);
	return r->query.rows > 0;
}

void
nicd_run_end(struct nicd_run *r)
{
	urn_report_buf_free(&r->out);
	atomic_fetch_sub(&runs, 1);
}

/* ---- */

static void
start_with(unsigned int patience_ms, gid_t gid)
{
	struct nicd_admin_server_config cfg = {.path = path, .gid = gid, .patience_ms = patience_ms};
	struct urn_err err = {""};

	server = nicd_admin_server_open(&admin, &cfg, &err);
	if (!server)
		fail_msg("%s", err.text);
}

static void
start(unsigned int patience_ms)
{
	start_with(patience_ms, (gid_t)-1);
}

static int
setup(void **state)
{
	(void)state;
	start(20000);
	return 0;
}

static int
setup_hasty(void **state)
{
	(void)state;
	start(100);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	nicd_admin_server_close(server);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(atomic_load(&runs), 0);
	return 0;
}

static int
dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval tv = {.tv_sec = 20};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(connect(fd, (void *)&addr, sizeof(addr)), 0);
	return fd;
}

static void
ask_with(int fd, struct admin_ask q, const char *words, size_t len)
{
	char buf[8192];

	memcpy(buf, &q, sizeof(q));
	memcpy(buf + sizeof(q), words, len);
	assert_int_equal(send(fd, buf, sizeof(q) + len, MSG_NOSIGNAL), sizeof(q) + len);
}

static const struct admin_ask plain = {.magic = ADMIN_MAGIC, .version = ADMIN_VERSION};

#define ASK(fd, words) ask_with(fd, plain, words, sizeof(words))

/* Count bytes of output until the end. returns: the status; -1: the server hung up without a word */
static int
listen_to(int fd, size_t *bytes, char *text, size_t size)
{
	static struct {
		struct admin_answer a;
		char text[ADMIN_PIECE + 1];
	} m;

	*bytes = 0;
	for (;;) {
		ssize_t n = recv(fd, &m, sizeof(m), 0);

		if (n < (ssize_t)sizeof(m.a) || n > (ssize_t)sizeof(m.a) + ADMIN_PIECE ||
		    m.a.magic != ADMIN_MAGIC)
			return -1;
		n -= (ssize_t)sizeof(m.a);
		m.text[n] = '\0';
		if (text && (m.a.kind == ADMIN_END || *bytes == 0) &&
		    (m.a.status || m.a.kind == ADMIN_OUT))
			snprintf(text, size, "%.*s", (int)size - 1, m.text);
		if (m.a.kind == ADMIN_END)
			return m.a.status;
		*bytes += (size_t)n;
	}
}

static void
expect(int fd, int status, const char *want)
{
	char text[256] = "";
	size_t bytes;

	assert_int_equal(listen_to(fd, &bytes, text, sizeof(text)), status);
	assert_string_equal(text, want);
	assert_int_equal(recv(fd, text, 1, 0), 0); /* one question a connection */
	close(fd);
}

/* The server answers another client. */
static void
goes_on(void)
{
	int fd = dial();

	ASK(fd, "say\0hello");
	expect(fd, 0, "hello\n");
}

static void
answers(void **state)
{
	struct admin_ask json = plain;
	size_t bytes;
	int fd = dial();

	(void)state;
	ASK(fd, "say\0a b");
	expect(fd, 0, "a b\n");
	fd = dial();
	json.json = 1;
	ask_with(fd, json, "say\0x", 6);
	expect(fd, 0, "json x\n");
	fd = dial();
	ASK(fd, "fail\0a");
	expect(fd, 1, "2 words");
	fd = dial();
	ask_with(fd, plain, "", 0);
	expect(fd, 2, "0 words");
	fd = dial();
	ASK(fd, "much\0"
		"5000");
	assert_int_equal(listen_to(fd, &bytes, NULL, 0), 0);
	assert_int_equal(bytes, 5000000);
	close(fd);
}

/* Ask "say x" as another user. returns: 0 answered; 1 can't connect; 2 turned away; 3 anything else */
static int
as_other(uid_t uid, gid_t gid)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct {
		struct admin_ask q;
		char words[6];
	} ask = {.q = plain, .words = "say\0x"};
	struct {
		struct admin_answer a;
		char text[256];
	} m = {.text = ""};
	int status, fd;
	pid_t pid = fork();
	ssize_t n;

	if (pid != 0) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		return WEXITSTATUS(status);
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (setgroups(0, NULL) || setgid(gid) || setuid(uid))
		_exit(3);
	if (connect(fd, (void *)&addr, sizeof(addr)) != 0)
		_exit(errno == EACCES ? 1 : 3);
	(void)send(fd, &ask, sizeof(ask.q) + 6, MSG_NOSIGNAL);
	n = recv(fd, &m, sizeof(m), 0);
	if (n < 0 && errno == ECONNRESET) /* the server hung up before it read the question; the answer is there */
		n = recv(fd, &m, sizeof(m), 0);
	if (n <= 0)
		_exit(3);
	if (m.a.kind == ADMIN_OUT && strcmp(m.text, "x\n") == 0)
		_exit(0);
	_exit(m.a.status == 1 && strstr(m.text, "only root") ? 2 : 3);
}

/* With a group, its members may ask, and nobody else: the socket has its mode before anybody can connect. */
static void
a_group(void **state)
{
	enum { GROUP = 54321, NOBODY = 65534 };
	gid_t gid = geteuid() == 0 ? GROUP : getgid();
	struct stat st;

	(void)state;
	nicd_admin_server_close(server);
	start_with(20000, gid);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_gid, gid);
	goes_on();
	if (geteuid() != 0)
		return; /* there is no other user to try as */
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(as_other(NOBODY, GROUP), 0);
	assert_int_equal(as_other(NOBODY, NOBODY), 1);
	/* Without a group not even the group's members may ask, whatever the mode has become. */
	nicd_admin_server_close(server);
	start(20000);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(as_other(NOBODY, GROUP), 1);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(as_other(NOBODY, GROUP), 2);
	goes_on();
}

/* The user may not give the socket to the group: an error says so, and nothing is left. */
static void
no_such_right(void **state)
{
	struct nicd_admin_server_config cfg = {.path = path, .gid = 54321};
	struct urn_err err = {""};

	(void)state;
	if (geteuid() == 0)
		return; /* root may */
	nicd_admin_server_close(server);
	server = NULL;
	assert_null(nicd_admin_server_open(&admin, &cfg, &err));
	assert_non_null(strstr(err.text, "mode and group can't be set"));
}

static void
only_its_user(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	if (geteuid() != 0)
		return; /* there is no other user to try as */
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(as_other(65534, 65534), 2);
	goes_on();
}

/* A message that is no question ends its connection, and nothing else. */
static void
nonsense(void **state)
{
	struct admin_ask q = plain;
	char junk[8000];
	size_t bytes;
	int fd;

	(void)state;
	memset(junk, 'x', sizeof(junk));
	for (unsigned int i = 0; i < 8; i++) {
		fd = dial();
		switch (i) {
		case 0: /* short */
			assert_int_equal(send(fd, junk, 3, 0), 3);
			break;
		case 1: /* empty */
			assert_int_equal(send(fd, junk, 0, 0), 0);
			break;
		case 2: /* another protocol */
			assert_int_equal(send(fd, junk, 100, 0), 100);
			break;
		case 3: /* too long */
			junk[ADMIN_LINE - 1] = junk[ADMIN_LINE] = '\0';
			ask_with(fd, plain, junk, ADMIN_LINE + 1);
			break;
		case 4: /* no end */
			ask_with(fd, plain, "say\0x", 5);
			break;
		case 5: /* too many words */
			memset(junk, 0, ADMIN_WORDS + 1);
			ask_with(fd, plain, junk, ADMIN_WORDS + 1);
			break;
		case 6:
			q.json = 2;
			ask_with(fd, q, "say\0x", 6);
			break;
		case 7: /* the client is gone before the answer */
			ASK(fd, "much\0"
				"3000");
			close(fd);
			goes_on();
			continue;
		}
		assert_int_equal(listen_to(fd, &bytes, NULL, 0), -1);
		close(fd);
		goes_on();
	}
	fd = dial();
	q = plain;
	q.version = 99;
	ask_with(fd, q, "say\0x", 6);
	assert_int_equal(listen_to(fd, &bytes, junk, sizeof(junk)), 1);
	assert_non_null(strstr(junk, "different releases"));
	close(fd);
}

/*
 * A client that connects and sends nothing, and one that asks for much and takes none, lose their
 * connections.
 */
static void
the_slow_lose(void **state)
{
	struct admin_answer a;
	int silent = dial(), deaf = dial();
	size_t bytes = 0;
	ssize_t n;

	(void)state;
	ASK(deaf, "much\0"
		  "100000");
	assert_int_equal(recv(silent, &a, sizeof(a), 0), 0);
	/* The client can read the bytes that fitted the socket, and gets no end. */
	for (time_t end = time(NULL) + 20; atomic_load(&runs) && time(NULL) < end;)
		usleep(1000);
	assert_int_equal(atomic_load(&runs), 0);
	while ((n = recv(deaf, &a, sizeof(a), MSG_TRUNC)) > 0) {
		assert_int_equal(a.kind, ADMIN_OUT);
		bytes += (size_t)n;
	}
	assert_true(bytes < 100000000);
	close(silent);
	close(deaf);
	goes_on();
}

/* A client that takes nothing holds nobody else up, even while the server waits for it. */
static void
the_slow_hold_up_nobody(void **state)
{
	int deaf[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		deaf[i] = dial();
		ASK(deaf[i], "much\0"
			     "100000");
	}
	for (unsigned int i = 0; i < 50; i++)
		goes_on();
	assert_int_equal(atomic_load(&runs), 4);
	for (unsigned int i = 0; i < 4; i++)
		close(deaf[i]);
}

static void
no_more_than_it_has_room_for(void **state)
{
	int fd[NICD_ADMIN_ASKERS + 1];
	char text[256] = "";
	size_t bytes;

	(void)state;
	for (unsigned int i = 0; i < NICD_ADMIN_ASKERS; i++)
		fd[i] = dial();
	/* All clients are accepted once the last is turned away. */
	fd[NICD_ADMIN_ASKERS] = dial();
	assert_int_equal(listen_to(fd[NICD_ADMIN_ASKERS], &bytes, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "too many"));
	ASK(fd[3], "say\0x");
	expect(fd[3], 0, "x\n");
	goes_on();
	for (unsigned int i = 0; i <= NICD_ADMIN_ASKERS; i++)
		if (i != 3)
			close(fd[i]);
}

/* The socket of a dead server is replaced; that of a live one, or a file, is not. */
static void
places_that_are_taken(void **state)
{
	struct nicd_admin_server_config cfg = {.path = path, .gid = (gid_t)-1};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char other[80], file[80], far[200];
	struct urn_err err = {""};
	struct nicd_admin_server *s;
	int fd;

	(void)state;
	assert_null(nicd_admin_server_open(&admin, &cfg, &err));
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	goes_on();

	snprintf(other, sizeof(other), "%s/old", dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", other);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(fd, (void *)&addr, sizeof(addr)), 0);
	close(fd);
	cfg.path = other;
	s = nicd_admin_server_open(&admin, &cfg, &err);
	assert_non_null(s);
	/* Another server's socket in its place is left alone. */
	assert_int_equal(unlink(other), 0);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	close(fd);
	nicd_admin_server_close(s);
	assert_int_equal(unlink(other), 0);

	snprintf(file, sizeof(file), "%s/file", dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	cfg.path = file;
	assert_null(nicd_admin_server_open(&admin, &cfg, &err));
	assert_int_equal(unlink(file), 0);

	memset(far, 'x', sizeof(far));
	far[0] = '/';
	far[sizeof(far) - 1] = '\0';
	cfg.path = far;
	assert_null(nicd_admin_server_open(&admin, &cfg, &err));
	assert_non_null(strstr(err.text, "at most 107 bytes"));
}

/*
 * Two servers start at once: the one that does not listen yet is safe from the other, which does
 * not even look.
 */
static void
one_at_a_time(void **state)
{
	struct nicd_admin_server_config cfg = {.path = path, .gid = (gid_t)-1};
	struct urn_err err = {""};
	char lock[80];

	(void)state;
	snprintf(lock, sizeof(lock), "%s.lock", path);
	assert_int_equal(unlink(path), 0); /* the state before bind() */
	assert_null(nicd_admin_server_open(&admin, &cfg, &err));
	assert_non_null(strstr(err.text, "another dataplane listens here"));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(lock, F_OK), 0);
	nicd_admin_server_close(server);
	assert_int_equal(access(lock, F_OK), -1);
	start(20000);
	goes_on();
}

/* The server is taken down while clients are in the middle: the teardown checks that all is given back. */
static void
ends_in_the_middle(void **state)
{
	int a = dial(), b = dial();

	(void)state;
	ASK(b, "much\0"
	       "100000");
	while (atomic_load(&runs) == 0)
		usleep(100);
	nicd_admin_server_close(server);
	server = NULL;
	assert_int_equal(atomic_load(&runs), 0);
	close(a);
	close(b);
}

int
main(void)
{
#define TEST(f, s) cmocka_unit_test_setup_teardown(f, s, teardown)
	const struct CMUnitTest tests[] = {
		TEST(answers, setup),
		TEST(only_its_user, setup),
		TEST(a_group, setup),
		TEST(no_such_right, setup),
		TEST(nonsense, setup),
		TEST(the_slow_lose, setup_hasty),
		TEST(the_slow_hold_up_nobody, setup),
		TEST(no_more_than_it_has_room_for, setup),
		TEST(places_that_are_taken, setup),
		TEST(one_at_a_time, setup),
		TEST(ends_in_the_middle, setup),
	};
	int rc;

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/ctl", dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	return rmdir(dir) == 0 ? rc : 1;
}
