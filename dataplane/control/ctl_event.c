/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control requests on the destinations of events. For a client in another process the
 * dataplane makes the pipe and keeps the end to write to, so that nothing the
 * client does to its own end can make an engine wait. The pipe is a pair of sockets, because a
 * real pipe has a lock that a reader holds while it copies: a copy into memory that stalls lasts
 * for ever, and the writer waits for the lock in spite of O_NONBLOCK. The client's teller writes to
 * the pipe, and engines to the teller (teller.h): a wake-up costs what the client's watchers cost.
 */
#include "control/adapter.h"
#include "control/ctl.h"
#include "control/lock.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the client's teller */

/* Take the one processor to which the calling engine's thread is bound, if it is, out of a set. */
static void
leave_out_own(void *arg)
{
	cpu_set_t own, *set = arg;

	if (sched_getaffinity(0, sizeof(own), &own) == 0 && CPU_COUNT(&own) == 1) {
		CPU_AND(&own, &own, set);
		CPU_XOR(set, set, &own);
	}
}

/*
 * Start the client's teller, if it has none. A wake-up with many watchers keeps its processor to
 * itself for milliseconds: so it runs on none to which an engine is bound, if there are others.
 * returns: 0 or an errno value
 */
static int
need_teller(struct urn_client *c)
{
	const struct urn_dp *dp = c->adapter->dp;
	cpu_set_t cpus;

	if (c->teller)
		return 0;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		CPU_ZERO(&cpus);
	for (unsigned int i = 0; i < dp->engines_n; i++)
		urn_engine_call(dp->engine[i], leave_out_own, &cpus);
	c->teller = urn_teller_create(&c->adapter->told, CPU_COUNT(&cpus) ? &cpus : NULL);
	return c->teller ? 0 : errno;
}

/* ---- pipes */

/*
 * Let the client's teller write to a pipe's end, and engines to the teller. merges: the pipe is a
 * completion channel's. returns: 0 or an errno value
 */
static int
tell_by_teller(struct urn_client *c, bool merges, struct urn_ctl_pipe *p)
{
	int rc = need_teller(c);

	return rc ? rc : urn_teller_add(c->teller, p->write_fd, merges, &p->way, &p->write_fd);
}

/* Make a pipe, of which the reply brings both ends. returns: 0 or an errno value */
static int
make_pipe(struct urn_client *c, struct urn_abi_rep *rep, bool merges, struct urn_ctl_pipe *p)
{
	/* The system doubles it, and wakes the teller when no more than a quarter is in use. */
	const int room = 2 * URN_TELLER_OUTER;
	int fd[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		return urn_ctl_fail(rep, errno, "%s: no pipe for events: %s", c->adapter->cfg.name,
				    strerror(errno));
	(void)setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	*p = (struct urn_ctl_pipe){.write_fd = fd[1]};
	rc = c->direct ? 0 : tell_by_teller(c, merges, p);
	if (rc != 0) {
		close(fd[0]);
		close(fd[1]);
		return urn_ctl_fail(rep, rc,
				    "%s: the dataplane lacks a thread or descriptors to "
				    "hand events over: %s",
				    c->adapter->cfg.name, strerror(rc));
	}
	c->reply_fd = fd[0];
	c->reply_write_fd = fd[1];
	return 0;
}

/*
 * End a pipe that no engine knows any more. Closing it wakes the client's watchers, so other
 * clients' calls are let in meanwhile.
 */
static void
end_pipe(struct urn_client *c, const struct urn_ctl_pipe *p)
{
	urn_ctl_unlock(c);
	if (p->way)
		urn_teller_remove(c->teller, p->way);
	else
		close(p->write_fd);
	urn_ctl_relock(c);
}

/* ---- requests */

int
urn_ctl_async_fd(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_ctl_pipe new = {.write_fd = req->async_fd.fd < 0 ? -1 : req->async_fd.fd};
	struct urn_ctl_pipe old = c->async;
	int rc = c->remote ? make_pipe(c, rep, false, &new) : 0;

	if (rc != 0)
		return rc;
	c->async = new;
	atomic_store(&c->engine.async_fd, new.write_fd);
	urn_adapter_barrier(c->adapter); /* no engine writes to the old descriptor any more */
	if (c->remote && old.write_fd >= 0)
		end_pipe(c, &old);
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
	rc = make_pipe(c, rep, true, &ch->pipe);
	if (rc != 0) {
		free(ch);
		return rc;
	}
	rc = urn_handles_put(&c->channels, ch, URN_ADAPTER_MAX_CQ, &rep->handle);
	if (rc == 0)
		return 0;
	close(c->reply_fd);
	c->reply_fd = -1;
	end_pipe(c, &ch->pipe);
	free(ch);
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
	*fd = ch->pipe.write_fd;
	return 0;
}

/* n: 1, or UINT32_MAX for -1 */
static void
count_user(struct urn_ctl_channel *ch, uint32_t n)
{
	ch->users += n;
	if (ch->pipe.way)
		urn_teller_users(ch->pipe.way, ch->users);
}

uint32_t
urn_ctl_channel_use(struct urn_client *c, int32_t wanted)
{
	if (!c->remote || wanted < 0)
		return 0;
	count_user(urn_handles_get(&c->channels, (uint32_t)wanted), 1);
	return (uint32_t)wanted;
}

void
urn_ctl_channel_leave(struct urn_client *c, uint32_t channel)
{
	if (channel)
		count_user(urn_handles_get(&c->channels, channel), UINT32_MAX);
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
	if (c->adapter->cm && urn_cm_client_uses(c->adapter->cm, &c->cm, ch->pipe.write_fd))
		return urn_ctl_fail(rep, EBUSY, "%s: connection ids use the channel: destroy those "
				    "first", c->adapter->cfg.name);
	urn_handles_remove(&c->channels, req->handle);
	end_pipe(c, &ch->pipe);
	free(ch);
	return 0;
}
