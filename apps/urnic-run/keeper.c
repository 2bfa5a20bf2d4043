/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper of --start's urnicd: a process between urnic-run and urnicd, in a session of its own,
 * so that the terminal's signals reach neither. The kernel sends SIGTERM to the keeper when
 * urnic-run dies, however that dies.
 */
#include "urnic-run/run.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOP_SECONDS = 15, NOT_RUN = 127 };

static int
drop(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

/* Be urnicd: with the system's libraries, whatever urnic-run runs under. */
static _Noreturn void
be_urnicd(const struct run_nicd *n, pid_t parent)
{
	int nothing = open("/dev/null", O_RDONLY);
	int log = open(n->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	sigset_t none;

	sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent || nothing < 0 ||
	    log < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
	    dup2(log, STDERR_FILENO) < 0)
		_exit(NOT_RUN);
	if (!run_take_out("LD_LIBRARY_PATH", n->verbs) ||
	    !run_take_out("LD_PRELOAD", RUN_SOCKETS) || !run_take_out("LD_PRELOAD", RUN_PATHS) ||
	    !run_take_out("LD_PRELOAD", RUN_SHARE) || !run_tell("XDG_RUNTIME_DIR", n->folder) ||
	    !run_tell("RUNTIME_DIRECTORY", n->folder))
		_exit(NOT_RUN);
	unsetenv("NOTIFY_SOCKET");
	sigprocmask(SIG_SETMASK, &none, NULL);
	execlp(n->program, "urnicd", "-c", n->config, "-s", n->socket, (char *)NULL);
	perror(n->program);
	_exit(NOT_RUN);
}

/* Wait for urnicd's end. seconds: at most; 0: until SIGTERM. returns: true when it ended */
static bool
ends(pid_t urnicd, int seconds, int *status)
{
	const struct timespec nap = {.tv_sec = seconds};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (seconds == 0)
		sigaddset(&set, SIGTERM);
	for (;;) {
		int sig;

		if (waitpid(urnicd, status, WNOHANG) != 0)
			return true;
		sig = seconds == 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &nap);
		if (sig == SIGTERM || (sig < 0 && seconds != 0))
			return false;
	}
}

_Noreturn void
run_keep(const struct run_nicd *n, pid_t parent, int ended)
{
	int status = NOT_RUN << 8; /* a child exits with this code: no child ran */
	pid_t self = getpid(), urnicd = -1;
	sigset_t term;

	(void)setsid();
	/* A parent that died before this call leaves another. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent)
		urnicd = fork();
	if (urnicd == 0)
		be_urnicd(n, self);
	if (urnicd > 0 && !ends(urnicd, 0, &status)) {
		kill(urnicd, SIGTERM);
		if (!ends(urnicd, STOP_SECONDS, &status)) {
			kill(urnicd, SIGKILL);
			waitpid(urnicd, &status, 0);
		}
	} else if (getppid() == parent) {
		/* urnic-run reads the messages before the folder goes. */
		close(ended);
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		sigwaitinfo(&term, NULL);
	}
	/* An exit while urnic-run lives is its request: it reads what is left to read before. */
	(void)nftw(n->folder, drop, 8, FTW_DEPTH | FTW_PHYS);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
