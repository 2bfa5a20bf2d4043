/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/loss.h"

#include "common/ctl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- preparing */

static int
ask(const char *socket_path, const char *const *words, unsigned int n, char text[URN_CTL_TEXT],
    struct urn_err *err)
{
	int fd = urn_ctl_send(socket_path, words, n, err);

	return fd < 0 ? -1 : urn_ctl_answer(fd, text, err);
}

static int
prepare_port(struct urn_loss *l, struct urn_err *err)
{
	static const char *const words[] = {"show", "adapter"};
	char text[URN_CTL_TEXT], name[32];

	if (ask(l->primary.socket, words, 2, text, err) != 0 ||
	    urn_ctl_port(text, l->primary.adapter, name, l->port, err) != 0)
		return -1;
	snprintf(l->what, sizeof(l->what), "port %s of adapter %s failed, as if it were unplugged",
		 l->port, name);
	return 0;
}

/* Find the process behind the control socket of a dataplane. returns: its number, or -1 with *err
 */
static int
find_process(const char *socket_path, struct urn_err *err)
{
	static const char *const words[] = {"show", "version"};
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	char text[URN_CTL_TEXT];
	int fd = urn_ctl_send(socket_path, words, 2, err), rc;

	if (fd < 0)
		return -1;
	rc = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	if (urn_ctl_answer(fd, text, err) != 0)
		return -1;
	if (rc == 0 && peer.pid > 1)
		return peer.pid;
	urn_err_set(err,
		    "the process of the dataplane at %s can't be seen from here; give its "
		    "number: kill=PID",
		    socket_path);
	return -1;
}

/* True when two paths lead to one socket. */
static bool
same_socket(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

static int
prepare_kill(struct urn_loss *l, const struct urn_session_place *backup, struct urn_err *err)
{
	int pid = l->spec.pid;

	if (pid == 0 && same_socket(l->primary.socket, backup->socket)) {
		urn_err_set(err, "both adapters are of one dataplane process, and would be lost "
				 "together; let the port fail");
		return -1;
	}
	if (pid == 0)
		pid = find_process(l->primary.socket, err);
	if (pid < 0)
		return -1;
	l->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (l->fd < 0) {
		urn_err_set(err, "process %d can't be killed: %s", pid, strerror(errno));
		return -1;
	}
	snprintf(l->what, sizeof(l->what), "process %d%s was killed", pid,
		 l->spec.pid == 0 ? ", the dataplane of the primary adapter," : "");
	return 0;
}

int
urn_loss_prepare(struct urn_loss *l, const struct urn_loss_spec *spec, const char *session,
		 struct urn_err *err)
{
	struct urn_session_place place[2];

	memset(l, 0, sizeof(*l));
	l->spec = *spec;
	l->fd = -1;
	if (urn_session_places(session, place, err) != 0)
		return -1;
	l->primary = place[0];
	switch (spec->kind) {
	case URN_LOSS_PORT:
		return prepare_port(l, err);
	case URN_LOSS_KILL:
		return prepare_kill(l, &place[1], err);
	case URN_LOSS_RUN:
		snprintf(l->what, sizeof(l->what), "a command ran: %.100s", spec->command);
		break;
	}
	return 0;
}

/* ---- doing */

static int
send_port(struct urn_loss *l, const char *how, struct urn_err *err)
{
	const char *const words[] = {"port", l->port, how};

	l->fd = urn_ctl_send(l->primary.socket, words, 3, err);
	return l->fd < 0 ? -1 : 0;
}

static int
run_command(struct urn_loss *l, struct urn_err *err)
{
	char *const argv[] = {"sh", "-c", (char *)(uintptr_t)l->spec.command, NULL};
	posix_spawn_file_actions_t files;
	int rc;

	/* The program's standard output has its figures. */
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	rc = posix_spawnp(&l->child, "sh", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rc == 0)
		return 0;
	l->child = 0;
	urn_err_set(err, "the command can't be run: %s", strerror(rc));
	return -1;
}

int
urn_loss_begin(struct urn_loss *l, struct urn_err *err)
{
	l->begun = true;
	if (l->spec.kind == URN_LOSS_PORT)
		return send_port(l, "fail", err);
	if (l->spec.kind == URN_LOSS_RUN)
		return run_command(l, err);
	if (syscall(SYS_pidfd_send_signal, l->fd, SIGKILL, NULL, 0) == 0)
		return 0;
	urn_err_set(err, "the process can't be killed: %s", strerror(errno));
	return -1;
}

static int
port_done(struct urn_loss *l, struct urn_err *err)
{
	char text[URN_CTL_TEXT];
	int fd = l->fd;

	if (fd < 0)
		return 1;
	if (!urn_ctl_ready(fd))
		return 0;
	l->fd = -1;
	if (urn_ctl_answer(fd, text, err) != 0)
		return -1;
	l->failed_port = true;
	return 1;
}

static int
command_done(struct urn_loss *l, struct urn_err *err)
{
	int status = 0;
	pid_t got = l->child != 0 ? waitpid(l->child, &status, WNOHANG) : 0;

	if (l->child == 0)
		return 1;
	if (got == 0 || (got < 0 && errno == EINTR))
		return 0;
	l->child = 0;
	if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 1;
	urn_err_set(err, "the command that was to lose an adapter failed: %.100s", l->spec.command);
	return -1;
}

int
urn_loss_done(struct urn_loss *l, struct urn_err *err)
{
	struct pollfd p = {.fd = l->fd, .events = POLLIN};

	if (l->spec.kind == URN_LOSS_PORT)
		return port_done(l, err);
	if (l->spec.kind == URN_LOSS_RUN)
		return command_done(l, err);
	/* A pidfd can be read once its process has ended. */
	return poll(&p, 1, 0) > 0;
}

int
urn_loss_close(struct urn_loss *l, struct urn_err *err)
{
	static const char up[] = "up";
	char text[URN_CTL_TEXT];
	int rc = 0;

	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	if (l->failed_port) {
		rc = send_port(l, up, err);
		if (rc == 0)
			rc = urn_ctl_answer(l->fd, text, err);
		l->fd = -1;
	}
	l->failed_port = false;
	return rc;
}
