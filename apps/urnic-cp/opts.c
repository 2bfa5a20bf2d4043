/* SPDX-License-Identifier: BSD-3-Clause */
#include "opts.h"

#include "common/text.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPT_TO = 256,
	OPT_LISTEN,
	OPT_PEER,
	OPT_FORCE,
	OPT_JSON,
	OPT_CAPTURE,
	OPT_MTU,
	OPT_CHUNK,
	OPT_DEPTH,
	OPT_NO_CHECK,
	OPT_NO_ICRC,
	OPT_IDLE,
	OPT_ATTACH,
	OPT_NODE,
	OPT_NODES,
	OPT_HELP,
	OPT_VERSION,
	OPT_CHILD_FD,
	OPT_CHILD_DIR,
};

static const struct option long_options[] = {
	{"to", required_argument, NULL, OPT_TO},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"peer", required_argument, NULL, OPT_PEER},
	{"force", no_argument, NULL, OPT_FORCE},
	{"json", no_argument, NULL, OPT_JSON},
	{"capture", required_argument, NULL, OPT_CAPTURE},
	{"mtu", required_argument, NULL, OPT_MTU},
	{"chunk", required_argument, NULL, OPT_CHUNK},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"no-check", no_argument, NULL, OPT_NO_CHECK},
	{"no-icrc", no_argument, NULL, OPT_NO_ICRC},
	{"idle", required_argument, NULL, OPT_IDLE},
	{"attach", required_argument, NULL, OPT_ATTACH},
	{"node", required_argument, NULL, OPT_NODE},
	{"nodes", required_argument, NULL, OPT_NODES},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	/* Used between the two processes of the one-command form; not for people. */
	{"child-fd", required_argument, NULL, OPT_CHILD_FD},
	{"child-dir", required_argument, NULL, OPT_CHILD_DIR},
	{NULL, 0, NULL, 0},
};

static const char help_text[] =
	"Usage: urnic-cp [OPTIONS] FILE...                   both sides, one command\n"
	"       urnic-cp [OPTIONS] --listen SOCKET           the receiver, in one terminal\n"
	"       urnic-cp [OPTIONS] --peer SOCKET FILE...     the sender, in another\n"
	"\n"
	"Sends files from one dataplane process to another over RoCEv2: a SEND announces\n"
	"a file, RDMA WRITEs carry it, and the receiver compares its SHA-256 before the\n"
	"copy gets its name. Needs no root, no huge pages and no NIC: the two processes\n"
	"are joined by shared memory (memif), or attached to dataplanes (urnicd).\n"
	"\n"
	"  --to DIR         folder for the received copies, made if missing\n"
	"                   (default: received, in the current folder)\n"
	"  --force          replace files that exist there (default: refuse)\n"
	"  --json           print the summary as JSON\n"
	"  --capture FILE   write the packets of this side's port as pcapng\n"
	"  --mtu N          largest path MTU: 256, 512, 1024, 2048 or 4096 (default 4096)\n"
	"  --chunk SIZE     bytes of one RDMA WRITE, 4K to 64M (default 256K)\n"
	"  --depth N        chunks under way, 2 to 1024 (default 16)\n"
	"  --no-check       do not compare SHA-256\n"
	"  --no-icrc        neither send nor check the ICRC of packets\n"
	"  --idle POLICY    with nothing to do: spin, pause or sleep (default pause)\n"
	"  --attach S       attach to the dataplane (urnicd) at socket S; auto: where it\n"
	"                   usually is, or URNIC_SOCKET says; give it to both sides\n"
	"  --node NAME      of its nodes or adapters, this side's (default: as URNIC_NODE\n"
	"                   says, or the first)\n"
	"  --nodes A,B      in one command: the sender's and the receiver's (default a,b)\n"
	"  --help, --version\n"
	"\n"
	"--mtu, --chunk, --depth, --no-check and --no-icrc are the sender's to say; the\n"
	"receiver follows. A listener serves one sender, then ends.\n"
	"\n"
	"Exit code: 0 all files verified, 1 something was not sent, 2 wrong usage.\n";

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

static int
set_sizes(struct cp_opts *o, int opt, const char *arg)
{
	uint64_t v;

	o->tuned = true;
	switch (opt) {
	case OPT_MTU:
		if (urn_text_parse_uint(arg, &v) || !cp_mtu_valid(v))
			return usage("--mtu '%s' is not 256, 512, 1024, 2048 or 4096.", arg);
		o->mtu = (uint16_t)v;
		return -1;
	case OPT_CHUNK:
		if (urn_text_parse_size(arg, &v) || v < CP_CHUNK_MIN || v > CP_CHUNK_MAX ||
		    v % CP_CHUNK_MIN != 0)
			return usage("--chunk '%s' is not a multiple of 4K from 4K to 64M.", arg);
		o->chunk = (uint32_t)v;
		return -1;
	default:
		if (urn_text_parse_uint(arg, &v) || v < CP_DEPTH_MIN || v > CP_DEPTH_MAX)
			return usage("--depth '%s' is not a number from 2 to 1024.", arg);
		o->depth = (uint32_t)v;
		return -1;
	}
}

static int
set_idle(struct cp_opts *o, const char *arg)
{
	static const struct {
		const char *name;
		enum urn_idle idle;
	} policies[] = {{"spin", URN_IDLE_SPIN}, {"pause", URN_IDLE_PAUSE}, {"sleep", URN_IDLE_SLEEP}};

	for (unsigned int i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (strcmp(arg, policies[i].name) == 0) {
			o->idle = policies[i].idle;
			o->idle_name = policies[i].name;
			return -1;
		}
	}
	return usage("--idle '%s' is not spin, pause or sleep.", arg);
}

static int
set_child(struct cp_opts *o, int opt, const char *arg)
{
	uint64_t v;

	o->role = CP_CHILD;
	if (opt == OPT_CHILD_DIR) {
		o->dir = arg;
		return -1;
	}
	if (urn_text_parse_uint(arg, &v) || v > 1u << 20)
		return usage("--child-fd '%s' is not a descriptor.", arg);
	o->fd = (int)v;
	return -1;
}

static int
set_nodes(struct cp_opts *o, const char *arg)
{
	size_t a = strcspn(arg, ","), b = arg[a] == ',' ? strlen(arg + a + 1) : 0;

	if (a == 0 || b == 0 || a >= sizeof(o->nodes[0]) || b >= sizeof(o->nodes[1]))
		return usage("--nodes '%.80s' is not two names of nodes or adapters, such as a,b.", arg);
	snprintf(o->nodes[0], sizeof(o->nodes[0]), "%.*s", (int)a, arg);
	snprintf(o->nodes[1], sizeof(o->nodes[1]), "%s", arg + a + 1);
	return -1;
}

static int
set_meeting(struct cp_opts *o, enum cp_role role, const char *arg)
{
	if (o->socket != NULL)
		return usage("Give one of --listen and --peer, once.");
	if (*arg == '\0')
		return usage("The name of the socket is empty.");
	o->role = role;
	o->socket = arg;
	return -1;
}

/* Take one option. returns: -1 to go on, else the exit code */
static int
set_option(struct cp_opts *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_TO:
		o->to = arg;
		return -1;
	case OPT_LISTEN:
		return set_meeting(o, CP_LISTEN, arg);
	case OPT_PEER:
		return set_meeting(o, CP_PEER, arg);
	case OPT_FORCE:
		o->force = true;
		return -1;
	case OPT_JSON:
		o->json = true;
		return -1;
	case OPT_CAPTURE:
		o->capture = arg;
		return -1;
	case OPT_NO_CHECK:
		o->no_check = o->tuned = true;
		return -1;
	case OPT_NO_ICRC:
		o->no_icrc = o->tuned = true;
		return -1;
	case OPT_IDLE:
		return set_idle(o, arg);
	case OPT_ATTACH:
		o->attach = arg;
		return -1;
	case OPT_NODE:
		o->node = arg;
		return -1;
	case OPT_NODES:
		return set_nodes(o, arg);
	case OPT_HELP:
		fputs(help_text, stdout);
		return CP_EXIT_OK;
	case OPT_VERSION:
		puts("urnic-cp " URN_CP_RELEASE);
		return CP_EXIT_OK;
	case OPT_CHILD_FD:
	case OPT_CHILD_DIR:
		return set_child(o, opt, arg);
	default:
		return set_sizes(o, opt, arg);
	}
}

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
		return usage("--mtu, --chunk, --depth, --no-check and --no-icrc are the sender's to "
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
	return check_attach(o);
}

int
cp_opts_parse(int argc, char **argv, struct cp_opts *o)
{
	int opt, rc;

	*o = (struct cp_opts){
		.role = CP_PAIR,
		.fd = -1,
		.mtu = 4096,
		.chunk = 256u << 10,
		.depth = 16,
		.idle = URN_IDLE_PAUSE,
		.idle_name = "pause",
	};
	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		const char *word = argv[optind - 1];

		if (opt == ':')
			return usage("'%s' wants a value.", word);
		if (opt == '?')
			return usage("'%s' is no option.", word);
		rc = set_option(o, opt, optarg);
		if (rc >= 0)
			return rc;
	}
	o->files = argv + optind;
	o->n_files = (unsigned int)(argc - optind);
	rc = check(o);
	if (rc < 0 && o->role != CP_PEER && o->to == NULL)
		o->to = "received";
	if (rc < 0 && o->role == CP_PAIR && o->attach != NULL) {
		if (o->nodes[0][0] == '\0')
			set_nodes(o, "a,b");
		o->node = o->nodes[0];
	}
	return rc;
}
