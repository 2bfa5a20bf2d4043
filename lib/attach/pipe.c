/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/pipe.h"

#include "attach/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int
urn_pipe_open(int *read_fd, int *write_fd)
{
	int fd[2], flags;

	if (pipe2(fd, O_CLOEXEC) != 0)
		return urn_fail(errno, "cannot make a pipe for events: %s", strerror(errno));
	/* Each end has its own flags: only the dataplane's end must never wait. */
	flags = fcntl(fd[1], F_GETFL);
	fcntl(fd[1], F_SETFL, flags | O_NONBLOCK);
	*read_fd = fd[0];
	*write_fd = fd[1];
	return 0;
}

int
urn_pipe_make(struct urn_dev *dev, enum urn_ctl_op op, int *read_fd, int *write_fd, int32_t *handle)
{
	struct urn_abi_channel *ch = dev->channel;
	struct urn_abi_rep rep = {0};
	int fd[2], err;

	if (ch->pipe == NULL) {
		err = urn_pipe_open(read_fd, write_fd);
		*handle = *write_fd;
		return err;
	}
	err = urn_dev_gone(dev) == URN_DEV_THERE ? ch->pipe(ch->ctx, op, &rep, fd) : ENODEV;
	if (err == ENODEV)
		err = EIO; /* like urn_dev_call() */
	if (err != 0)
		return urn_fail(err, "%s", rep.why[0] ? rep.why : strerror(err));
	*handle = (int32_t)rep.handle;
	*read_fd = fd[0];
	*write_fd = fd[1];
	/* The dataplane never waits on this socket anyhow. */
	(void)fcntl(fd[1], F_SETFL, fcntl(fd[1], F_GETFL) | O_NONBLOCK);
	return 0;
}

void
urn_pipe_reserve(int write_fd, unsigned int events)
{
	long bytes = (long)events * (long)sizeof(struct urn_abi_event);
	int now = fcntl(write_fd, F_GETPIPE_SZ);

	/* An unprivileged pipe grows to 1 MiB by default; beyond that the size stays. */
	if (now >= 0 && bytes > now && bytes <= 1 << 30)
		fcntl(write_fd, F_SETPIPE_SZ, (int)bytes);
}

int
urn_pipe_read(int read_fd, struct urn_abi_event *ev)
{
	ssize_t n = read(read_fd, ev, sizeof(*ev));

	if (n == (ssize_t)sizeof(*ev))
		return 0;
	if (n >= 0)
		errno = EIO;
	return errno;
}

void
urn_pipe_end(int write_fd)
{
	(void)shutdown(write_fd, SHUT_WR);
}

int
urn_pipe_write(int write_fd, const struct urn_abi_event *ev)
{
	ssize_t n;

	do {
		/* On sockets whose write end was shut down: an error, no signal. */
		n = send(write_fd, ev, sizeof(*ev), MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(write_fd, ev, sizeof(*ev));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(*ev))
		return 0;
	if (n >= 0)
		errno = EIO;
	return errno;
}
