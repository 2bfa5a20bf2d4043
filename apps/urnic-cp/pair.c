/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include "common/options.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXEC_FAILED 127
/* Time for a receiver to clean up after its sender died. */
#define ORPHAN_SECONDS 30

/* In the receiver: the process that started it. A process has one parent, hence static. */
static pid_t sender_pid;

/* Run between fork and exec: only calls that are safe there. */
static void
become_receiver(char *const argv[], int fd, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0 || getppid() != parent)
		_exit(EXEC_FAILED);
	if (fcntl(fd, F_SETFD, 0) != 0)
		_exit(EXEC_FAILED);
	execv("/proc/self/exe", argv);
	_exit(EXEC_FAILED);
}

static int
spawn(struct cp_pair *pair, const struct cp_opts *o, int fd, struct urn_err *err)
{
	char number[16];
	char *argv[20] = {"urnic-cp",
			  "--child-fd",
			  number,
			  "--child-dir",
			  pair->dir.path,
			  "--to",
			  (char *)(uintptr_t)o->to,
			  "--idle",
			  (char *)(uintptr_t)urn_opt_idle_name(o->idle)};
	pid_t parent = getpid();
	unsigned int n = 9;

	if (o->force)
		argv[n++] = "--force";
	if (o->attach != NULL) {
		argv[n++] = "--attach";
		argv[n++] = (char *)(uintptr_t)o->attach;
		argv[n++] = "--node";
		argv[n++] = (char *)(uintptr_t)o->nodes[1];
	}
	snprintf(number, sizeof(number), "%d", fd);
	pair->pid = fork();
	if (pair->pid == 0)
		become_receiver(argv, fd, parent);
	if (pair->pid > 0)
		return 0;
	urn_err_set(err, "cannot start the receiver: %s.", strerror(errno));
	pair->pid = 0;
	return -1;
}

int
cp_pair_start(struct cp_pair *pair, const struct cp_opts *o, struct urn_err *err)
{
	int fds[2], rc;

	memset(pair, 0, sizeof(*pair));
	pair->dir.lock_fd = -1;
	if (urn_eal_dir_make(&pair->dir, err) != 0)
		return -1;
	/* Either EAL makes its folder there. Not when attached: a dataplane process is found by these variables. */
	if ((o->attach == NULL && (setenv("XDG_RUNTIME_DIR", pair->dir.path, 1) != 0 ||
				   setenv("TMPDIR", pair->dir.path, 1) != 0)) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
		urn_err_set(err, "cannot make a control socket: %s.", strerror(errno));
		urn_eal_dir_remove(&pair->dir);
		return -1;
	}
	rc = spawn(pair, o, fds[1], err);
	close(fds[1]);
	if (rc == 0)
		return fds[0];
	close(fds[0]);
	urn_eal_dir_remove(&pair->dir);
	return -1;
}

int
cp_pair_end(struct cp_pair *pair, struct urn_err *err)
{
	int status = 0;
	pid_t got;

	do
		got = waitpid(pair->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	urn_eal_dir_remove(&pair->dir);
	if (got == pair->pid && WIFEXITED(status) && WEXITSTATUS(status) == CP_EXIT_OK)
		return 0;
	if (got == pair->pid && WIFSIGNALED(status))
		urn_err_set(err, "the receiver was killed by signal %d (%s).", WTERMSIG(status),
			    strsignal(WTERMSIG(status)));
	else if (got == pair->pid && WEXITSTATUS(status) == EXEC_FAILED)
		urn_err_set(err, "the receiver could not be started; /proc must be mounted.");
	else
		urn_err_set(err, "the receiver ended with exit code %d.", WEXITSTATUS(status));
	return -1;
}

/*
 * The sender died. The end of its control socket leads to an orderly exit;
 * this alarm ensures that the receiver exits at all. The signal may come once for
 * each thread of the sender.
 */
static void
on_orphaned(int sig)
{
	(void)sig;
	alarm(ORPHAN_SECONDS);
}

void
cp_pair_child(const struct cp_opts *o)
{
	sender_pid = getppid();
	fcntl(o->fd, F_SETFD, FD_CLOEXEC);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, on_orphaned);
}

void
cp_pair_child_tidy(const struct cp_opts *o)
{
	static const struct timespec tick = {0, 10000000};
	struct urn_eal_dir dir = {.lock_fd = -1};

	/* A dying process closes its sockets shortly before its children get another parent. */
	for (unsigned int i = 0; i < 100 && getppid() == sender_pid; i++)
		nanosleep(&tick, NULL);
	if (getppid() == sender_pid)
		return;
	snprintf(dir.path, sizeof(dir.path), "%s", o->dir);
	urn_eal_dir_remove(&dir);
}
