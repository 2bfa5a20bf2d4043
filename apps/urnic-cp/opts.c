/* SPDX-License-Identifier: BSD-3-Clause */
#include "opts.h"

#include "common/option_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
	"Usage: urnic-cp [OPTIONS] FILE...                   both sides, one command\n"
	"       urnic-cp [OPTIONS] --listen SOCKET           the receiver, in one terminal\n"
	"       urnic-cp [OPTIONS] --peer SOCKET FILE...     the sender, in another\n"
	"\n"
	"Sends files from one dataplane process to another over RoCEv2: a SEND announces\n"
	"a file, RDMA WRITEs carry it, and the receiver compares its SHA-256 before the\n"
	"copy gets its name. Needs no root, no huge pages and no NIC: the two processes\n"
	"are joined by shared memory (memif), or attached to dataplanes (urnicd).\n"
	"\n";

static const char help_end[] =
	"\n"
	"--mtu, --chunk, --depth, --no-check, --no-icrc and --over are set at the sender, and\n"
	"the receiver follows; --attach is for both. A listener serves one sender, then ends.\n"
	"\n"
	"Exit code: 0 all files verified, 1 something was not sent, 2 wrong usage.\n";

enum { CHILD_DIR = 1 }; /* id of --child-dir among the rows of the child */

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static int
usage(const char *fmt, ...)
{
	va_list ap;

	fputs("urnic-cp: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(" See urnic-cp --help.\n", stderr);
	return CP_EXIT_USAGE;
}

bool
cp_mtu_valid(uint64_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && (mtu & (mtu - 1)) == 0;
}

/* ---- the options */

static int
take_chunk(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct cp_opts *o = to;
	struct urn_err why;

	if (urn_opt_size32(row->name, arg, CP_CHUNK_MIN, CP_CHUNK_MAX, &o->chunk, &why) == 0 &&
	    o->chunk % CP_CHUNK_MIN == 0)
		return 0;
	urn_err_set(err, "--%s %.32s: give a multiple of 4K from 4K to 64M", row->name, arg);
	return -1;
}

/* --child-fd, --child-dir: this process is the receiver of a pair. */
static int
take_child(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct cp_opts *o = to;
	uint32_t fd;

	o->role = CP_CHILD;
	if (row->id == CHILD_DIR) {
		o->dir = arg;
		return 0;
	}
	if (urn_opt_u32(row->name, arg, 0, 1u << 20, &fd, err) != 0)
		return -1;
	o->fd = (int)fd;
	return 0;
}

/* --listen, --peer: row->id is the role. */
static int
take_meeting(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct cp_opts *o = to;

	if (o->socket != NULL) {
		urn_err_set(err, "give one of --listen and --peer, once");
		return -1;
	}
	if (*arg == '\0') {
		urn_err_set(err, "--%s: the name of the socket is empty", row->name);
		return -1;
	}
	o->role = (enum cp_role)row->id;
	o->socket = arg;
	return 0;
}

/* --session: the two adapters. A side with a session is attached, to two dataplanes. */
static int
take_session(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct cp_opts *o = to;

	if (*arg == '\0') {
		urn_err_set(err, "--%s: name the two adapters: SOCKET[:ADAPTER],SOCKET[:ADAPTER]",
			    row->name);
		return -1;
	}
	o->session = arg;
	return 0;
}

/* --kill-adapter-at: N%[:HOW] */
static int
take_kill(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	size_t digits = strspn(arg, "0123456789");
	struct cp_opts *o = to;
	char number[8];

	if (digits == 0 || digits >= sizeof(number) || arg[digits] != '%' ||
	    (arg[digits + 1] != '\0' && arg[digits + 1] != ':')) {
		urn_err_set(err,
			    "--%s %.40s: give a point of the files, such as 50%%, and behind a "
			    "colon how",
			    row->name, arg);
		return -1;
	}
	snprintf(number, sizeof(number), "%.*s", (int)digits, arg);
	o->kills = true;
	if (urn_opt_u32(row->name, number, 0, 99, &o->kill_at, err) != 0)
		return -1;
	return urn_loss_parse(row->name, arg[digits + 1] == ':' ? arg + digits + 2 : NULL, &o->loss,
			      err);
}

static const char *const overs[] = {"verbs", "msg", NULL};

#define O(field) offsetof(struct cp_opts, field)
static const struct urn_option rows[] = {
	{"listen", "SOCKET", NULL, take_meeting, .id = CP_LISTEN},
	{"peer", "SOCKET", NULL, take_meeting, .id = CP_PEER},
	{"to", "DIR",
	 "folder for the received copies, made if missing\n"
	 "(default: received, in the current folder)",
	 urn_take_text, O(to)},
	{"force", NULL, "replace files that exist there (default: refuse)", urn_take_flag,
	 O(force)},
	URN_OPTION_JSON(struct cp_opts, json),
	URN_OPTION_CAPTURE(struct cp_opts, capture, "this side's port"),
	URN_OPTION_MTU(struct cp_opts, mtu, "default 4096"),
	{"chunk", "SIZE", "bytes of one RDMA WRITE, 4K to 64M (default 256K)", take_chunk},
	{"depth", "N", "chunks under way, 2 to 1024 (default 16)", urn_take_u32, O(depth),
	 .min = CP_DEPTH_MIN, .max = CP_DEPTH_MAX},
	{"no-check", NULL, "do not compare SHA-256", urn_take_flag, O(no_check)},
	URN_OPTION_NO_ICRC(struct cp_opts, no_icrc),
	{"over", "HOW",
	 "verbs: RDMA WRITEs of a queue pair; or msg: messages without\n"
	 "a connection, --chunk up to 1020K (default verbs)",
	 urn_take_choice, O(over_msg), .words = overs},
	URN_OPTION_IDLE(struct cp_opts, idle, "default pause"),
	URN_OPTION_ATTACH(struct cp_opts, attach),
	{"node", "NAME",
	 "with --attach: node or adapter of this side (default: the one\n"
	 "that URNIC_NODE names, or the first)",
	 urn_take_text, O(node)},
	{"nodes", "A,B", "in one command: nodes of sender and receiver (default a,b)",
	 urn_take_nodes, O(nodes)},
	{"session", "S",
	 "be a side with a session: its two adapters as in URNIC_SESSION,\n"
	 "or auto: those of URNIC_SESSION; instead of --attach",
	 take_session},
	{"kill-adapter-at", "N%[:HOW]",
	 "with --session and --peer: lose the primary adapter when so much\n"
	 "was sent; HOW is port, kill, kill=PID or run=COMMAND (default port)",
	 take_kill},
	{"plot", "FILE", "... and draw the rate over time, a .png or .svg", urn_take_text, O(plot)},
	/* Used between the two processes of the one-command form. */
	{"child-fd", "N", NULL, take_child},
	{"child-dir", "DIR", NULL, take_child, .id = CHILD_DIR},
};

static const struct urn_options table = {rows, RTE_DIM(rows), 19, "--help"};

/* True when an option was given that only the sender may set. */
static bool
is_tuned(uint64_t given)
{
	static const char *const names[] = {"mtu", "chunk", "depth", "no-check", "no-icrc", "over"};

	for (unsigned int i = 0; i < RTE_DIM(names); i++)
		if (urn_options_given(&table, given, names[i]))
			return true;
	return false;
}

/* ---- checks */

/* Check options about a dataplane process. returns: as check() */
static int
check_attach(const struct cp_opts *o)
{
	bool pair = o->role == CP_PAIR;

	if (o->attach == NULL && (o->node != NULL || o->nodes[0][0] != '\0'))
		return usage("--node and --nodes go with --attach.");
	if (pair && o->node != NULL)
		return usage("--node is for --listen and --peer; give --nodes A,B.");
	if (!pair && o->nodes[0][0] != '\0')
		return usage("--nodes is for both sides in one command; give --node.");
	if (o->attach != NULL && (*o->attach == '\0' || (o->node != NULL && *o->node == '\0')))
		return usage("The name after --attach or --node is empty.");
	if (o->attach != NULL && (o->capture != NULL || o->no_icrc))
		return usage("--capture and --no-icrc are the dataplane's to say where there is one; leave "
			     "--attach out, or have them in its configuration.");
	return -1;
}

/* Check options about a session, and about the loss of its primary adapter. returns: as check() */
static int
check_session(const struct cp_opts *o)
{
	if (o->session != NULL && (o->attach != NULL || o->node != NULL))
		return usage("--session names the adapters; leave --attach and --node out.");
	if (o->session != NULL && o->role != CP_LISTEN && o->role != CP_PEER)
		return usage("--session is for one side; give --listen or --peer, too.");
	if (o->session != NULL && (o->over_msg || o->capture != NULL || o->no_icrc))
		return usage("--session has neither --over msg, nor --capture and --no-icrc, which "
			     "are the dataplane's to say.");
	if (o->kills && (o->session == NULL || o->role != CP_PEER))
		return usage("--kill-adapter-at is for the side with --peer and --session.");
	if (o->plot != NULL && !o->kills)
		return usage("--plot draws the run of --kill-adapter-at; give that, too.");
	if (o->plot != NULL && urn_plot_kind(o->plot) == URN_PLOT_NONE)
		return usage("Give --plot the name of a .png or .svg file.");
	return -1;
}

/* Check that the options fit each other. returns: -1 when they do, else the exit code */
static int
check(const struct cp_opts *o)
{
	bool receives = o->role == CP_LISTEN || o->role == CP_CHILD;

	if (o->role == CP_CHILD && (o->fd < 0 || o->dir == NULL || o->socket != NULL))
		return usage("--child-fd and --child-dir belong together and to urnic-cp alone.");
	if (receives && o->n_files > 0)
		return usage("A listener takes no files; the sender names them.");
	if (receives && o->tuned)
		return usage("--mtu, --chunk, --depth, --no-check, --no-icrc and --over are the "
			     "sender's to "
			     "say.");
	if (!receives && o->n_files == 0)
		return usage("Name at least one file to send.");
	if (o->role == CP_PEER && (o->to != NULL || o->force))
		return usage("--to and --force are the listener's to say.");
	if (o->to != NULL && *o->to == '\0')
		return usage("The name of the folder after --to is empty.");
	if (o->capture != NULL && *o->capture == '\0')
		return usage("The name of the file after --capture is empty.");
	if ((uint64_t)o->chunk * o->depth > CP_WINDOW_MAX)
		return usage("--chunk times --depth is over 1 GiB.");
	if (o->over_msg && !cp_msg_window_ok(o->chunk, o->depth))
		return usage("Over messages --chunk is at most 1020K, and --chunk times --depth at "
			     "most 64 MiB.");
	return o->session != NULL || o->kills || o->plot != NULL ? check_session(o)
								 : check_attach(o);
}

/* Take the options. returns: -1 to go on, else the exit code */
static int
take_options(int argc, char **argv, struct cp_opts *o)
{
	struct urn_err err;
	uint64_t given;

	switch (urn_options_parse(&table, argc, argv, o, &given, &err)) {
	case URN_OPTIONS_HELP:
		fputs(help_text, stdout);
		urn_options_help(&table, stdout);
		fputs(help_end, stdout);
		return CP_EXIT_OK;
	case URN_OPTIONS_VERSION:
		puts("urnic-cp " URN_CP_RELEASE);
		return CP_EXIT_OK;
	case URN_OPTIONS_BAD:
		fprintf(stderr, "urnic-cp: %s\n", err.text);
		return CP_EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	o->tuned = is_tuned(given);
	return -1;
}

int
cp_opts_parse(int argc, char **argv, struct cp_opts *o)
{
	int rc;

	*o = (struct cp_opts){
		.role = CP_PAIR,
		.fd = -1,
		.mtu = 4096,
		.chunk = 256u << 10,
		.depth = 16,
		.idle = URN_IDLE_PAUSE,
	};
	rc = take_options(argc, argv, o);
	if (rc >= 0)
		return rc;
	o->files = argv + optind;
	o->n_files = (unsigned int)(argc - optind);
	rc = check(o);
	if (rc < 0 && o->role != CP_PEER && o->to == NULL)
		o->to = "received";
	if (rc < 0 && o->session != NULL)
		o->attach = o->session;
	if (rc < 0 && o->role == CP_PAIR && o->attach != NULL) {
		if (o->nodes[0][0] == '\0')
			memcpy(o->nodes, (char[2][32]){"a", "b"}, sizeof(o->nodes));
		o->node = o->nodes[0];
	}
	return rc;
}
