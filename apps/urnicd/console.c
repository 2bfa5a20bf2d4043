/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_cmdline edits lines, keeps their history and asks for completions. The grammar of
 * rte_cmdline is made of tokens that are fixed when the program is compiled; our grammar comes
 * from admin_table.h and from the objects that exist. So rte_cmdline gets one command,
 * whose one dynamic token takes a whole line when the line is carried out, and a word
 * at a time when the line is completed.
 */
#include "console.h"

#include "reload.h"

#include "common/text.h"

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_socket.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OFFERS = 512, WAIT_MS = 100 };

static struct {
	struct nicd_admin *admin;
	/* The words of the line that are complete, for completion. */
	char line[ADMIN_LINE];
	char *word[ADMIN_WORDS];
	unsigned int words;
	size_t used; /* bytes of line */
	bool whole;  /* the token took a whole line */
	/* The words that may come next. */
	char offer[OFFERS][ADMIN_VALUE];
	const char *help[OFFERS];
	unsigned int offers;
	bool quit;
	unsigned int failed;
} con;

/* ---- running */

/*
 * Write all of a text to the standard output. A reader that takes nothing - a pipe that nobody reads,
 * a terminal after Ctrl-S - is waited for until a signal. returns: 0 or an errno value (EINTR: that signal)
 */
static int
put(const char *text, size_t len)
{
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

	while (len) {
		ssize_t n;

		if (poll(&p, 1, WAIT_MS) <= 0) {
			if (urn_stop_requested())
				return EINTR;
			continue;
		}
		/* After POLLOUT a pipe has room for PIPE_BUF bytes. */
		n = write(STDOUT_FILENO, text, len < PIPE_BUF ? len : PIPE_BUF);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return errno;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Carry out one line; its output goes to the standard output, the reason for a failure to the standard error. */
static void
run_line(char *line)
{
	char *words[ADMIN_WORDS];
	struct nicd_run r;
	struct admin_why why;
	int n = admin_split(line, words, &why), lost = 0;
	bool more = true;

	if (n == 0)
		return;
	if (n < 0) {
		fprintf(stderr, "%s\n", why.text);
		con.failed++;
		return;
	}
	nicd_run_begin(&r, con.admin, false, true, words, (unsigned int)n);
	while (more && lost == 0 && !urn_stop_requested()) {
		more = nicd_run_step(&r);
		lost = put(r.out.data, r.out.len);
		urn_report_buf_clear(&r.out);
	}
	if (lost != 0 && lost != EINTR)
		fprintf(stderr, "the answer can't be written: %s\n", strerror(lost));
	if (r.status != NICD_RUN_OK)
		fprintf(stderr, "%s\n", r.err.text);
	con.failed += r.status != NICD_RUN_OK || (lost != 0 && lost != EINTR);
	con.quit |= r.quit;
	nicd_run_end(&r);
}

/* ---- completion */

static void
on_offer(void *ctx, const char *word, const char *help)
{
	(void)ctx;
	if (con.offers == OFFERS)
		return;
	con.help[con.offers] = help;
	snprintf(con.offer[con.offers++], ADMIN_VALUE, "%s", word);
}

/* Collect the words that may come after those so far. */
static int
token_count(cmdline_parse_token_hdr_t *tk)
{
	(void)tk;
	con.offers = 0;
	admin_next(con.word, con.words, nicd_admin_values, con.admin, on_offer, NULL);
	return (int)con.offers;
}

static cmdline_parse_inst_t *the_command(void);

static int
token_offer(cmdline_parse_token_hdr_t *tk, int i, char *dst, unsigned int size)
{
	(void)tk;
	if (i < 0 || (unsigned int)i >= con.offers)
		return -1;
	/* The name of a kind is shown as <KIND>, which is never typed: no word begins so. */
	snprintf(dst, size, admin_is_kind(con.offer[i]) ? "<%s>" : "%s", con.offer[i]);
	the_command()->help_str = con.help[i];
	return 0;
}

static int
token_help(cmdline_parse_token_hdr_t *tk, char *dst, unsigned int size)
{
	(void)tk;
	snprintf(dst, size, "%s", con.words ? "argument" : "command");
	return 0;
}

/* Take a word, or with res a whole line. returns: bytes taken */
static int
token_parse(cmdline_parse_token_hdr_t *tk, const char *buf, void *res, unsigned int size)
{
	size_t n = strcspn(buf, res ? "\r\n" : " \t\r\n#");

	(void)tk;
	if (res) {
		if (n >= size)
			return -1;
		memcpy(res, buf, n);
		((char *)res)[n] = '\0';
		con.whole = true;
		return (int)n;
	}
	if (n == 0 || con.words == ADMIN_WORDS || con.used + n + 1 > sizeof(con.line))
		return -1;
	con.word[con.words++] = memcpy(con.line + con.used, buf, n);
	con.used += n;
	con.line[con.used++] = '\0';
	return (int)n;
}

static struct cmdline_token_ops token_ops = {
	.parse = token_parse,
	.complete_get_nb = token_count,
	.complete_get_elt = token_offer,
	.get_help = token_help,
};

static struct cmdline_token_hdr token = {.ops = &token_ops};

/* Called to carry out a line or, with cl NULL, to give the next token. */
static void
command(void *parsed, struct cmdline *cl, void *data)
{
	if (cl == NULL) {
		size_t i = (size_t)((cmdline_parse_token_hdr_t **)data - the_command()->tokens);

		if (i == 0) {
			con.words = 0;
			con.used = 0;
			con.whole = false;
		}
		/* No token follows a whole line, nor words after which no word may come.
		 */
		*(cmdline_parse_token_hdr_t **)parsed =
			con.whole || token_count(&token) == 0 ? NULL : &token;
		return;
	}
	run_line(parsed);
	if (con.quit)
		cmdline_quit(cl);
}

static cmdline_parse_inst_t *
the_command(void)
{
	/* No tokens here: rte_cmdline asks command() for them. */
	__extension__ static cmdline_parse_inst_t one = {.f = command, .tokens = {NULL}};

	return &one;
}

/* ---- terminal and pipe */

/* returns: true when there is input, after at most WAIT_MS */
static bool
input_waits(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

	nicd_serve_hangup(con.admin->rig);
	return poll(&p, 1, WAIT_MS) > 0;
}

/* Keys are echoed, so they wait as long as the terminal takes nothing. returns: true when it has room */
static bool
output_flows(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&p, 1, WAIT_MS) > 0;
}

static int
terminal(struct urn_err *err)
{
	cmdline_parse_ctx_t ctx[] = {the_command(), NULL};
	struct cmdline *cl = cmdline_stdin_new(ctx, "urnic> ");

	if (cl == NULL) {
		urn_err_set(err, "the terminal can't be used for a console: %s", strerror(errno));
		return -1;
	}
	while (!con.quit && !urn_stop_requested()) {
		char c;

		if (input_waits() && output_flows() &&
		    (read(STDIN_FILENO, &c, 1) != 1 || cmdline_in(cl, &c, 1) < 0))
			break;
	}
	cmdline_stdin_exit(cl);
	(void)put("\n", 1);
	return 0;
}

/* Run commands line by line. A line that is too long, or has a NUL, which would hide the rest, is refused. */
static void
script(void)
{
	static char line[ADMIN_LINE];
	size_t len = 0;
	bool skip = false, nul = false;
	ssize_t n = 1;
	char c;

	while (!con.quit && !urn_stop_requested()) {
		if (n > 0 && !input_waits())
			continue;
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 1 && c != '\n') {
			nul |= c == '\0';
			skip |= len + 1 == sizeof(line);
			line[len] = c;
			len += !skip;
			continue;
		}
		line[len] = '\0';
		len = 0;
		if (nul)
			fputs("a line with a NUL byte is no command; is this text?\n", stderr);
		else if (skip)
			fprintf(stderr, "a line has at most %zu bytes\n", sizeof(line) - 1);
		else
			run_line(line);
		con.failed += nul || skip;
		skip = nul = false;
		if (n <= 0)
			return;
	}
}

int
nicd_console(struct nicd_admin *a, struct urn_err *err)
{
	con.admin = a;
	if (isatty(STDIN_FILENO))
		return terminal(err); /* a person has seen the failures */
	script();
	return (int)con.failed;
}
