/* SPDX-License-Identifier: BSD-3-Clause */
/* urnicd: a dataplane as a process of its own. */
#include "admin_proto.h"
#include "admin_server.h"
#include "console.h"
#include "errout.h"
#include "hangup.h"
#include "log.h"
#include "reload.h"
#include "rig.h"
#include "workers.h"

#include "common/text.h"
#include "dataplane/log/log.h"
#include "dataplane/report/telemetry.h"
#include "sd_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	MISTAKES = 10, /* most mistakes of a configuration that are said at a time */
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_SIGNAL = 128,
	AGAIN_MS = 5000, /* from then on a second signal forces an exit: longer than letting
			    programs go takes */
};

struct options {
	const char *file;
	const char *socket; /* NULL: as the file says */
	bool check;
	bool console;
};

static const char help[] =
	"Usage: urnicd -c FILE [OPTION...]\n"
	"\n"
	"Run the dataplane that FILE describes: ports, switches, adapters. Programs attach\n"
	"to it over its socket and use verbs. urnicd runs until SIGTERM or SIGINT; SIGHUP lets\n"
	"it read FILE again. Events go to the log (doc/reference/log.md).\n"
	"\n"
	"  -c, --config FILE   the configuration (doc/reference/urnicd.md; ready ones in config/)\n"
	"  -s, --socket PATH   the socket, in place of the file's; with PATH.ctl for control\n"
	"                      and no PID file\n"
	"  -i, --interactive   take commands from the standard input (doc/reference/urnicctl.md)\n"
	"      --check         say whether FILE is right, and stop\n"
	"      --help-config   every section and key of FILE, and stop\n"
	"      --help          this text\n"
	"      --version       the version\n"
	"\n"
	"Exit code: 0 stopped by SIGTERM or quit, 1 failed, 2 wrong usage or a mistake in FILE,\n"
	"128 + N stopped by another signal N.\n";

/* returns: -1 to run, or the exit code */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'}, {"check", no_argument, NULL, 'k'},
		{"help-config", no_argument, NULL, 'H'},  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	  {"interactive", no_argument, NULL, 'i'},
		{"socket", required_argument, NULL, 's'}, {NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:his:", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->file = optarg;
			break;
		case 'i':
			o->console = true;
			break;
		case 's':
			o->socket = optarg;
			break;
		case 'k':
			o->check = true;
			break;
		case 'H':
			urn_config_help(stdout);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		case 'h':
			fputs(help, stdout);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		case 'V':
			puts("urnicd " URN_VERSION);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		default:
			fputs("urnicd: see urnicd --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "urnicd: '%s' is no option; see urnicd --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (o->file == NULL) {
		fputs("urnicd: give a configuration: -c FILE; ready ones are in config/\n", stderr);
		return EXIT_USAGE;
	}
	return -1;
}

static int
fail(const struct urn_err *err)
{
	fprintf(stderr, "urnicd: %s\n", err->text);
	return EXIT_FAILED;
}

/* Sleep until a signal ends it; serve SIGHUP meanwhile. */
static void
wait_for_signal(const struct nicd_rig *rig)
{
	/* A signal may have gone to another thread: check ten times a second. */
	const struct timespec nap = {.tv_nsec = 100000000};

	while (!urn_stop_requested()) {
		nicd_serve_hangup(rig);
		(void)nanosleep(&nap, NULL);
	}
}

/* Serve programs until a signal, or the person at the console, ends urnicd. returns: 0, or -1 with
 * *err */
static int
serve(struct nicd_rig *rig, struct nicd_admin *admin, bool console, struct urn_err *err)
{
	int rc = 0;

	fprintf(stderr, "urnicd: %u engine%s, %u adapter%s, listening at %s\n", rig->cfg->engines,
		rig->cfg->engines == 1 ? "" : "s", rig->cfg->adapters,
		rig->cfg->adapters == 1 ? "" : "s", rig->socket);
	urn_log_say(rig->log, URN_LOG_STARTED, NULL, "version %s serves programs at %s, by %s%s",
		    URN_VERSION, rig->socket, rig->cfg->file,
		    urn_server_follows_death(rig->server)
			    ? "; the one before was killed or crashed, and left its socket"
			    : "");
	nicd_notify("READY=1");
	if (console)
		rc = nicd_console(admin, err);
	else
		wait_for_signal(rig);
	nicd_notify("STOPPING=1");
	if (urn_stop_requested())
		urn_log_say(rig->log, URN_LOG_STOPPED, NULL, "ends by signal %d (%s)",
			    urn_stop_requested(), strsignal(urn_stop_requested()));
	else
		urn_log_say(rig->log, URN_LOG_STOPPED, NULL, "ends because its console does");
	if (rc > 0)
		urn_err_set(err, "%d of the commands failed", rc);
	return rc == 0 ? 0 : -1;
}

static int
write_pid(const char *path, struct urn_err *err)
{
	/* O_NOFOLLOW: in a folder where others may write, a link of theirs could lead to any file
	 * of ours. */
	const int how = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st;
	int fd;

	if (path[0] == '\0')
		return 0;
	fd = open(path, how, 0644);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)) {
		errno = EEXIST;
	} else if (fd >= 0 && ftruncate(fd, 0) == 0 && dprintf(fd, "%d\n", (int)getpid()) > 0) {
		(void)close(fd);
		return 0;
	}
	urn_err_set(err, "%s: the number of the process can't be written: %s", path,
		    errno == ELOOP || errno == EEXIST ? "a link, or no file" : strerror(errno));
	if (fd >= 0 && errno != EEXIST)
		(void)unlink(path); /* we made or emptied the file */
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* Remove the PID file, unless another process has written its own number there meanwhile. */
static void
remove_pid(const char *path)
{
	int fd = path[0] != '\0' ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	char text[24] = "";

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && atoi(text) == (int)getpid())
		(void)unlink(path);
	(void)close(fd);
}

/*
 * Serve programs, with the control socket, telemetry and the PID file there for as long
 * as programs are served.
 */
static int
serve_all(struct nicd_rig *rig, bool console, struct urn_err *err)
{
	struct nicd_admin_server_config cfg = {.path = rig->control, .gid = rig->control_gid};
	struct urn_telemetry_config telemetry = {.captures = rig->captures};
	const char *pid_file = rig->cfg->urnicd.pid_file;
	struct nicd_admin_server *server;
	struct nicd_admin admin;
	int rc = nicd_admin_init(&admin, rig, err);

	if (rc != 0)
		return -1;
	rig->reload = nicd_reload_create(rig, err);
	if (rig->reload == NULL) {
		nicd_admin_fini(&admin);
		return -1;
	}
	telemetry.src = &admin.src;
	if (rig->cfg->urnicd.telemetry)
		rc = urn_telemetry_start(&telemetry, err);
	server = rc == 0 ? nicd_admin_server_open(&admin, &cfg, err) : NULL;
	/* Write the PID file only once both sockets are ours: until then it may be another
	 * urnicd's. */
	rc = server ? write_pid(pid_file, err) : -1;
	if (rc == 0) {
		nicd_log_watch(&admin);
		rc = serve(rig, &admin, console, err);
		nicd_log_unwatch(&admin);
		remove_pid(pid_file);
	}
	nicd_admin_server_close(server);
	urn_telemetry_stop();
	nicd_reload_free(rig->reload);
	nicd_admin_fini(&admin);
	return rc;
}

/* Raise the limit of descriptors to the system's maximum: each program takes some. */
static void
raise_fds(void)
{
	struct rlimit fds;

	if (getrlimit(RLIMIT_NOFILE, &fds) == 0 && fds.rlim_cur < fds.rlim_max) {
		fds.rlim_cur = fds.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &fds);
	}
}

/*
 * End the process although some programs can't be let go: calls of our threads for these programs
 * stall in the kernel, or wait for processors that others have. Frees nothing; closes devices and
 * removes files.
 */
static void __attribute__((noreturn))
end_without(struct nicd_rig *rig, struct nicd_workers *workers, unsigned int held, int code)
{
	fprintf(stderr,
		"urnicd: %u program%s can't be let go: something of theirs stalls in the kernel, "
		"or the machine is busy; ending without them\n",
		held, held == 1 ? "" : "s");
	urn_dp_freeze(rig->base.dp);
	nicd_workers_stop(workers);
	nicd_rig_abandon(rig);
	_exit(code);
}

static int
run(const struct urn_config *cfg, bool console)
{
	struct nicd_workers *workers = NULL;
	struct urn_err err = {""};
	struct nicd_rig rig;
	unsigned int held;
	int rc;

	raise_fds();
	rc = nicd_rig_open(&rig, cfg, &err);
	if (rc == 0)
		rc = nicd_log_start(&rig, &err);
	if (rc == 0)
		workers = nicd_workers_start(&rig, &err);
	rc = workers ? nicd_rig_listen(&rig, &err) : -1;
	if (rc == 0)
		rc = serve_all(&rig, console, &err);
	held = nicd_rig_hang_up(&rig);
	nicd_log_stop(&rig);
	if (rc != 0)
		rc = fail(&err);
	else if (urn_stop_requested())
		rc = urn_stop_requested() == SIGTERM ? EXIT_SUCCESS
						     : EXIT_SIGNAL + urn_stop_requested();
	if (held != 0)
		end_without(&rig, workers, held, rc);
	nicd_workers_stop(workers);
	nicd_log_free(&rig);
	nicd_rig_close(&rig);
	return rc;
}

/*
 * Open /dev/null in the place of closed standard streams, in the wrong direction, so that reads and
 * writes fail. Else output would overwrite a file opened there later: a lock, a table that DPDK
 * maps.
 */
static void
fill_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Put the socket of the command line in place of the file's paths. returns: false: a message says
 * why not */
static bool
put_socket(struct urn_config *cfg, const char *socket)
{
	if (socket == NULL)
		return true;
	if (socket[0] != '/' ||
	    strlen(socket) + strlen(ADMIN_SUFFIX) >= sizeof(cfg->urnicd.socket)) {
		fprintf(stderr, "urnicd: --socket %s: give an absolute path of at most %zu bytes\n",
			socket, sizeof(cfg->urnicd.socket) - strlen(ADMIN_SUFFIX) - 1);
		return false;
	}
	snprintf(cfg->urnicd.socket, sizeof(cfg->urnicd.socket), "%s", socket);
	cfg->urnicd.control[0] = '\0';
	cfg->urnicd.pid_file[0] = '\0';
	return true;
}

/* Say that a file has no mistakes, and what in it may be a surprise. */
static int
say_right(const char *file, struct urn_config *cfg)
{
	char note[16][URN_CONFIG_NOTE];
	unsigned int n = urn_config_notes(cfg, note, RTE_DIM(note));

	for (unsigned int i = 0; i < n; i++)
		fprintf(stderr, "%s: note: %s\n", file, note[i]);
	printf("%s: %u adapters, %u ports, %u switches: no mistakes\n", file, cfg->adapters,
	       cfg->ports, cfg->switches);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
}

/* Say the first mistakes: more at a time nobody mends, and the later ones often come of these. */
static void
say_mistakes(const struct urn_config_errors *errors)
{
	unsigned int all = urn_config_errors_count(errors), shown = 0;

	for (; shown < errors->n && shown < MISTAKES; shown++)
		fprintf(stderr, "%s\n", errors->error[shown].text);
	if (all > shown)
		fprintf(stderr, "urnicd: and %u mistake%s more\n", all - shown,
			all - shown == 1 ? "" : "s");
}

int
main(int argc, char **argv)
{
	struct urn_config_errors errors = {0};
	struct options o = {0};
	struct urn_config *cfg;
	int rc;

	fill_streams();
	urn_stop_again(AGAIN_MS);
	rc = parse(argc, argv, &o);
	if (rc >= 0)
		return rc;
	cfg = urn_config_read(o.file, &errors);
	say_mistakes(&errors);
	urn_config_errors_free(&errors);
	if (cfg == NULL)
		return EXIT_USAGE;
	if (!put_socket(cfg, o.socket)) {
		rc = EXIT_USAGE;
	} else if (o.check) {
		rc = say_right(o.file, cfg);
	} else if (urn_stop_install() != 0 || nicd_hangup_install() != 0 ||
		   signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
		fputs("urnicd: cannot catch signals\n", stderr);
		rc = EXIT_FAILED;
	} else {
		nicd_errout_open();
		rc = run(cfg, o.console);
	}
	urn_config_free(cfg);
	return rc;
}
