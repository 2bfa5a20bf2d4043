/* SPDX-License-Identifier: BSD-3-Clause */
/* The command of --start: a child of urnic-run, with the signals that urnic-run gets. */
#include "urnic-run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_RUN = 126, NOT_FOUND = 127 };

void
run_signals(sigset_t *set)
{
	static const int numbers[] = {SIGCHLD, SIGHUP,	SIGINT,	 SIGQUIT,
				      SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaddset(set, numbers[i]);
}

int
run_become(char **argv)
{
	int code;

	execvp(argv[0], argv);
	code = errno == ENOENT ? NOT_FOUND : NOT_RUN;
	fprintf(stderr, "urnic-run: %s can't be run: %s\n", argv[0], strerror(errno));
	return code;
}

/* Be the command, which dies with urnic-run. */
static _Noreturn void
be(char **argv, const sigset_t *before, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(NOT_RUN);
	sigprocmask(SIG_SETMASK, before, NULL);
	_exit(run_become(argv));
}

int
run_command(char **argv, const sigset_t *before)
{
	pid_t parent = getpid(), child, got;
	int status = NOT_RUN << 8; /* a child exits with this code: no child ran */
	siginfo_t info;
	sigset_t set;

	child = fork();
	if (child < 0) {
		fprintf(stderr, "urnic-run: no process for %s: %s\n", argv[0], strerror(errno));
		return status;
	}
	if (child == 0)
		be(argv, before, parent);
	run_signals(&set);
	for (;;) {
		got = waitpid(child, &status, WNOHANG);
		if (got != 0)
			return status;
		/* The command gets the terminal's signals itself, because both are in the
		 * terminal's foreground. */
		if (sigwaitinfo(&set, &info) > 0 && info.si_signo != SIGCHLD &&
		    info.si_code != SI_KERNEL)
			kill(child, info.si_signo);
	}
}
