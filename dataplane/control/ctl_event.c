/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests on the destinations of events. For a client in another process the
 * dataplane makes the pipe and keeps the end to write to, so that nothing the
 * client does to its own end can make an engine wait. The pipe is a pair of sockets, because a
 * real pipe has a lock that a reader holds while it copies: a copy into memory that stalls lasts
 * for ever, and the writer waits for the lock in spite of O_NONBLOCK.
 */
#include "control/adapter.h"
#include "control/ctl.h"
#include "control/lock.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* *write_fd: the dataplane's end; the reply brings the other end. returns: 0 or an errno value */
static int
make_pipe(struct urn_client *c, struct urn_abi_rep *rep, int *write_fd)
{
	const int room = 4 << 20; /* bytes; a record takes some 800 of them; the system may grant less */
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		return urn_ctl_fail(rep, errno, "%s: no pipe for events: %s", c->adapter->cfg.name,
				    strerror(errno));
	(void)setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	c->reply_fd = fd[0];
	c->reply_write_fd = fd[1];
	*write_fd = fd[1];
	return 0;
}

int
urn_ctl_async_fd(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	int fd = req->async_fd.fd < 0 ? -1 : req->async_fd.fd, old;
	int rc = c->remote ? make_pipe(c, rep, &fd) : 0;

	if (rc != 0)
		return rc;
	old = atomic_exchange(&c->engine.async_fd, fd);
	urn_adapter_barrier(c->adapter); /* no engine writes to the old descriptor any more */
	if (c->remote && old >= 0)
		close(old);
	return 0;
}

int
urn_ctl_create_channel(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_channel *ch;
	int rc;

	(void)req;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return ENOMEM;
	rc = make_pipe(c, rep, &ch->write_fd);
	if (rc != 0) {
		free(ch);
		return rc;
	}
	rc = urn_handles_put(&c->channels, ch, URN_ADAPTER_MAX_CQ, &rep->handle);
	if (rc == 0)
		return 0;
	close(ch->write_fd);
	free(ch);
	close(c->reply_fd);
	c->reply_fd = -1;
	return urn_ctl_fail(rep, rc, "%s: no room for a completion channel", c->adapter->cfg.name);
}

int
urn_ctl_channel_find(const struct urn_client *c, int32_t wanted, struct urn_abi_rep *rep, int *fd)
{
	const struct urn_ctl_channel *ch;

	*fd = wanted < 0 ? -1 : wanted;
	if (!c->remote || *fd < 0)
		return 0;
	ch = urn_handles_get(&c->channels, (uint32_t)wanted);
	if (!ch)
		return urn_ctl_fail(rep, EINVAL, "%s: no completion channel %d",
				    c->adapter->cfg.name, wanted);
	*fd = ch->write_fd;
	return 0;
}

uint32_t
urn_ctl_channel_use(struct urn_client *c, int32_t wanted)
{
	if (!c->remote || wanted < 0)
		return 0;
	((struct urn_ctl_channel *)urn_handles_get(&c->channels, (uint32_t)wanted))->users++;
	return (uint32_t)wanted;
}

void
urn_ctl_channel_leave(struct urn_client *c, uint32_t channel)
{
	if (channel)
		((struct urn_ctl_channel *)urn_handles_get(&c->channels, channel))->users--;
}

int
urn_ctl_destroy_channel(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_channel *ch = urn_handles_get(&c->channels, req->handle);

	if (!ch)
		return urn_ctl_fail(rep, EINVAL, "%s: no completion channel %u", c->adapter->cfg.name,
				    req->handle);
	if (ch->users)
		return urn_ctl_fail(rep, EBUSY,
				    "%s: %u queues use the channel: destroy those first",
				    c->adapter->cfg.name, ch->users);
	if (c->adapter->cm && urn_cm_client_uses(c->adapter->cm, &c->cm, ch->write_fd))
		return urn_ctl_fail(rep, EBUSY, "%s: connection ids use the channel: destroy those "
				    "first", c->adapter->cfg.name);
	urn_handles_remove(&c->channels, req->handle);
	close(ch->write_fd);
	free(ch);
	return 0;
}
