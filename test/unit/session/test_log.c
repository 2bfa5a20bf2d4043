/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log of steps: sentences, levels, and the journal's priorities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "verbs/session/log.h"
#include "verbs/session/sv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct urn_sv_ctx ctx;
static struct urn_sv_qp qp;
static char text[4096];

static int
setup(void **state)
{
	(void)state;
	memset(&ctx, 0, sizeof(ctx));
	memset(&qp, 0, sizeof(qp));
	ctx.log_fd = memfd_create("log", MFD_CLOEXEC);
	ctx.log_number = 1;
	ctx.options.log = URN_LOG_DEBUG;
	qp.ctx = &ctx;
	qp.ibv.qp_num = 17;
	qp.peer.number = 33;
	qp.c.alive = 0xf;
	memcpy(qp.path[0].gid, (const uint8_t[]){[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 3},
	       16);
	return ctx.log_fd >= 0 ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	return close(ctx.log_fd);
}

/* All lines so far. */
static const char *
logged(void)
{
	ssize_t n = pread(ctx.log_fd, text, sizeof(text) - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static void
expect(const char *words)
{
	if (strstr(logged(), words) == NULL)
		fail_msg("no '%s' in '%s'", words, text);
}

/* A change of state, told as the machine tells it. */
static void
step(enum urn_sess_state from, enum urn_sess_state to, const char *why)
{
	qp.c.state = to;
	qp.why = why;
	qp.c.cfg.step(&qp, from);
	assert_null(qp.why);
}

/* Each step of a move is a sentence with its reason; its numbers stand behind. */
static void
sentences(void **state)
{
	(void)state;
	urn_sv_log_begin(&qp);
	expect(" info session begin: connection 17 to 33 has a session with 10.0.0.3 | conn=17 "
	       "peer=33 epoch=0 path=P-P begin paths=0xf\n");
	qp.why = "the primary adapter is gone";
	urn_sv_log_down(&qp, 0);
	expect(" warning session lost: connection 17 to 33 lost its path from the primary adapter "
	       "here to the primary one of its peer, because the primary adapter is gone | conn=17 "
	       "peer=33 epoch=0 path=P-P lost path=P-P because the primary adapter is gone\n");
	step(URN_SESS_CONNECTED, URN_SESS_SLEEPING, "an adapter is gone");
	expect(" warning session stop: connection 17 to 33 stops, to move, because an adapter is "
	       "gone | ");
	step(URN_SESS_SLEEPING, URN_SESS_DRAINING, NULL);
	expect(" debug session step: connection 17 to 33 is DRAINING: the old queue pair is ");
	step(URN_SESS_ANSWERED, URN_SESS_MIGRATED, NULL);
	expect(" notice session move: connection 17 to 33 moved to its path from the primary ");
	expect(" ms | conn=17 peer=33 epoch=0 path=P-P step ANSWERED -> MIGRATED sent=0 ");
	qp.c.reason = URN_SESS_ALIVE + 1;
	step(URN_SESS_MIGRATED, URN_SESS_DEAD, NULL);
	expect(" error session dead: connection 17 to 33 is dead, because ");
	urn_sv_log_device(&ctx, URN_SV_E_ADAPTER_LOST, "adapter %s is lost", "p0");
	expect("Z session[");
	expect(".1] warning session adapter-lost: adapter p0 is lost\n");
}

/* A level leaves the lines behind it out, and their connection has room for others. */
static void
levels(void **state)
{
	(void)state;
	ctx.options.log = URN_LOG_WARNING;
	urn_sv_log_begin(&qp);
	step(URN_SESS_ANSWERED, URN_SESS_MIGRATED, NULL);
	urn_sv_log_device(&ctx, URN_SV_E_LINK_UP, "adapter p0 has its link up");
	assert_string_equal(logged(), "");
	assert_int_equal(qp.lines.used, 0);
	urn_sv_log_device(&ctx, URN_SV_E_LINK_DOWN, "adapter p0 has its link down");
	expect("link down");
	ctx.options.log = URN_LOG_OFF;
	step(URN_SESS_MIGRATED, URN_SESS_DEAD, NULL);
	assert_null(strstr(logged(), "dead"));
}

/* Lines begin with priorities of the level when the standard error is the journal's, and only
 * then. */
static void
journal(void **state)
{
	int before = dup(STDERR_FILENO), fd = -1;
	char stream[64];
	struct stat st;
	bool is = false;

	(void)state;
	assert_int_equal(fstat(ctx.log_fd, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_int_equal(urn_sv_log_open("stderr", &fd, &is), 0);
	assert_false(is);
	close(fd);
	assert_int_equal(dup2(ctx.log_fd, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(urn_sv_log_open("stderr", &fd, &ctx.log_journal), 0);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	close(before);
	close(fd);
	assert_true(ctx.log_journal);
	urn_sv_log_device(&ctx, URN_SV_E_ADAPTER_LOST, "adapter p0 is lost");
	assert_memory_equal(logged(), "<4>2", 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sentences, setup, teardown),
		cmocka_unit_test_setup_teardown(levels, setup, teardown),
		cmocka_unit_test_setup_teardown(journal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
