/* SPDX-License-Identifier: BSD-3-Clause */
/*
 *   READ ── request is there ──► WRITE ── all is written ──► LINGER ── it hangs up ──► gone
 *
 * LINGER: a close while bytes of the peer are unread would destroy the answer (RST).
 * Time and length of a connection are bounded over all states together. One seat more than there
 * are connections is for the newcomer, which is served at once; then another goes (seats.h).
 */
#include "report/prometheus.h"

#include "abi/clock.h"
#include "report/seats.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNS (URN_PROMETHEUS_CONNS + 1u)
#define LINGER_BYTES 65536u

enum state { FREE, READ, WRITE, LINGER };

struct scraper {
	enum state state;
	int fd;
	char in[URN_PROMETHEUS_REQUEST];
	size_t in_n; /* bytes in `in`; LINGER: bytes thrown away */
	char *out;   /* WRITE: head and page */
	size_t out_n, out_at;
	bool page; /* WRITE: the answer is the page, no refusal */
};

struct urn_prometheus {
	struct urn_metrics_source src;
	int listen_fd, stop_fd; /* stop_fd: an eventfd */
	uint16_t port;
	pthread_t thread;
	struct scraper conn[CONNS];	  /* owner: the thread */
	struct urn_seat seat[CONNS];	  /* seats of conn[]; owner: the thread */
	struct urn_prometheus_counters c; /* written by the thread; atomic */
};

static void
count(uint64_t *c)
{
	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
}

static void
conn_free(struct urn_prometheus *p, struct scraper *c)
{
	if (c->state == FREE)
		return;
	close(c->fd);
	free(c->out);
	memset(c, 0, sizeof(*c));
	p->seat[c - p->conn].taken = false;
}

/* ---- answers */

static void
page(struct urn_prometheus *p, struct scraper *c, const char *status, const char *more, bool metrics)
{
	char *body = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&body, &n), *all;
	bool whole;

	c->page = metrics;
	if (f != NULL && metrics)
		urn_prometheus_text(&p->src, f);
	else if (f != NULL)
		fprintf(f, "%s. The counters are at /metrics.\n", status);
	whole = f != NULL && !ferror(f); /* false: out of memory */
	if ((f != NULL && fclose(f) != 0) || !whole) {
		free(body);
		return;
	}
	all = open_memstream(&c->out, &c->out_n);
	if (all != NULL) {
		fprintf(all,
			"HTTP/1.1 %s\r\nContent-Type: text/plain; %scharset=utf-8\r\n"
			"Content-Length: %zu\r\n%sConnection: close\r\n\r\n",
			status, metrics ? "version=0.0.4; " : "", n, more);
		whole = fwrite(body, 1, n, all) == n && !ferror(all);
		if (fclose(all) != 0 || !whole) {
			free(c->out);
			c->out = NULL;
		}
	}
	free(body);
}

/* Answer a request. line: its first line, without its end: "GET /metrics HTTP/1.1". */
static void
answer(struct urn_prometheus *p, struct scraper *c, const char *line)
{
	const char *path = strchr(line, ' '), *version = path ? strchr(path + 1, ' ') : NULL;
	size_t n = path && version ? (size_t)(version - path - 1) : 0;
	size_t base = n ? strcspn(path + 1, "? ") : 0; /* without a query */

	if (n == 0 || path[1] != '/' ||
	    (strcmp(version, " HTTP/1.1") != 0 && strcmp(version, " HTTP/1.0") != 0))
		page(p, c, "400 Bad Request", "", false);
	else if (strncmp(line, "GET ", 4) != 0)
		page(p, c, "405 Method Not Allowed", "Allow: GET\r\n", false);
	else if (base != 8 || strncmp(path + 1, "/metrics", 8) != 0)
		page(p, c, "404 Not Found", "", false);
	else
		page(p, c, "200 OK", "", true);
}

/* Answer the request, if it is there whole. */
static void
look(struct urn_prometheus *p, struct scraper *c)
{
	char *end = memmem(c->in, c->in_n, "\r\n\r\n", 4);

	if (memchr(c->in, '\0', c->in_n) != NULL) {
		page(p, c, "400 Bad Request", "", false);
	} else if (end != NULL) {
		*(char *)memmem(c->in, c->in_n, "\r\n", 2) = '\0';
		answer(p, c, c->in);
	} else if (c->in_n == sizeof(c->in)) {
		page(p, c, "431 Request Header Fields Too Large", "", false);
	} else {
		return;
	}
	if (!c->page)
		count(&p->c.refused);
	c->state = WRITE;
}

/* ---- a connection */

/* returns: false: the connection is broken */
static bool
do_read(struct urn_prometheus *p, struct scraper *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_n, sizeof(c->in) - c->in_n, MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	c->in_n += (size_t)n;
	look(p, c);
	return c->state == READ || c->out != NULL;
}

static bool
do_write(struct urn_prometheus *p, struct scraper *c)
{
	ssize_t n =
		send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->out_at += (size_t)n;
	if (c->out_at < c->out_n)
		return true;
	if (c->page)
		count(&p->c.pages);
	(void)shutdown(c->fd, SHUT_WR);
	c->state = LINGER;
	c->in_n = 0;
	return true;
}

/* returns: false: the connection is over */
static bool
do_linger(struct scraper *c)
{
	ssize_t n = recv(c->fd, c->in, sizeof(c->in), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	c->in_n += (size_t)n;
	return c->in_n < LINGER_BYTES;
}

static void
serve(struct urn_prometheus *p, struct scraper *c)
{
	bool more = true, told = c->state == LINGER;

	if (c->state == READ)
		more = do_read(p, c);
	if (more && c->state == WRITE)
		more = do_write(p, c);
	else if (more && c->state == LINGER)
		more = do_linger(c);
	if (more)
		return;
	if (!told)
		count(&p->c.cut);
	conn_free(p, c);
}

/* ---- the thread */

static void
take(struct urn_prometheus *p, struct scraper *c)
{
	struct urn_seat *seat = &p->seat[c - p->conn];
	struct sockaddr_storage from = {0};
	struct sockaddr *addr = (struct sockaddr *)&from;
	socklen_t n = sizeof(from);
	int fd = accept4(p->listen_fd, addr, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* Out of descriptors: the listening socket stays readable; do not spin on it. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		return;
	}
	c->fd = fd;
	c->state = READ;
	urn_seat_from(seat->from, addr);
	seat->since = urn_clock_ms();
	seat->until = seat->since + URN_PROMETHEUS_MS;
	seat->taken = true;
}

/* Cut connections that must go. returns: ms to the next; -1: there is none */
static int
expire(struct urn_prometheus *p)
{
	uint64_t now = urn_clock_ms(), next;
	unsigned int i;

	while ((i = urn_seats_due(p->seat, CONNS, now, &next)) < CONNS) {
		if (p->conn[i].state != LINGER)
			count(&p->c.cut);
		conn_free(p, &p->conn[i]);
	}
	return next == UINT64_MAX ? -1 : (int)(next - now);
}

static void *
run(void *arg)
{
	struct urn_prometheus *p = arg;
	struct pollfd fds[CONNS + 2];
	struct scraper *room;

	for (;;) {
		int wait = expire(p);

		room = NULL;
		for (unsigned int i = 0; i < CONNS; i++) {
			struct scraper *c = &p->conn[i];

			room = c->state == FREE ? c : room;
			fds[i] = (struct pollfd){.fd = c->state == FREE ? -1 : c->fd,
						 .events = c->state == WRITE ? POLLOUT : POLLIN};
		}
		fds[CONNS] = (struct pollfd){.fd = room ? p->listen_fd : -1, .events = POLLIN};
		fds[CONNS + 1] = (struct pollfd){.fd = p->stop_fd, .events = POLLIN};
		if (poll(fds, CONNS + 2, wait) < 0 && errno != EINTR)
			break;
		if (fds[CONNS + 1].revents)
			break;
		for (unsigned int i = 0; i < CONNS; i++)
			if (p->conn[i].state != FREE && fds[i].revents)
				serve(p, &p->conn[i]);
		if (room && room->state == FREE && fds[CONNS].revents)
			take(p, room);
	}
	return NULL;
}

/* ---- open and close */

/* returns: a listening socket, or -1 with *err */
static int
open_socket(const char *host, uint16_t port, uint16_t *bound, struct urn_err *err)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}, got = {0};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	bool six = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
	socklen_t n = sizeof(got);
	const int on = 1;
	int fd = -1, rc = -1;

	if (six || inet_pton(AF_INET, host, &v4.sin_addr) == 1)
		fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			    0);
	else
		errno = EINVAL;
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0)
		rc = six ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
			 : bind(fd, (struct sockaddr *)&v4, sizeof(v4));
	if (rc == 0)
		rc = listen(fd, CONNS);
	if (rc == 0)
		rc = getsockname(fd, (struct sockaddr *)&got, &n);
	if (rc == 0) {
		/* The port is at the same place in both kinds of address. */
		*bound = ntohs(got.sin6_port);
		return fd;
	}
	urn_err_set(err, "prometheus = %s%s%s:%u: can't listen there: %s", six ? "[" : "", host,
		    six ? "]" : "", port, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

struct urn_prometheus *
urn_prometheus_open(const char *host, uint16_t port, const struct urn_metrics_source *src,
		    struct urn_err *err)
{
	struct urn_prometheus *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		urn_err_set(err, "no memory for the server of counters");
		return NULL;
	}
	p->src = *src;
	p->listen_fd = open_socket(host, port, &p->port, err);
	if (p->listen_fd < 0) {
		free(p);
		return NULL;
	}
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (p->stop_fd >= 0 && pthread_create(&p->thread, NULL, run, p) == 0) {
		(void)pthread_setname_np(p->thread, "urnic-metrics");
		return p;
	}
	urn_err_set(err, "no thread or descriptor for the server of counters");
	if (p->stop_fd >= 0)
		close(p->stop_fd);
	close(p->listen_fd);
	free(p);
	return NULL;
}

void
urn_prometheus_close(struct urn_prometheus *p)
{
	const uint64_t one = 1;

	if (p == NULL)
		return;
	(void)!write(p->stop_fd, &one, sizeof(one));
	pthread_join(p->thread, NULL);
	for (unsigned int i = 0; i < CONNS; i++)
		conn_free(p, &p->conn[i]);
	close(p->listen_fd);
	close(p->stop_fd);
	free(p);
}

uint16_t
urn_prometheus_port(const struct urn_prometheus *p)
{
	return p->port;
}

void
urn_prometheus_counters(const struct urn_prometheus *p, struct urn_prometheus_counters *out)
{
	out->pages = __atomic_load_n(&p->c.pages, __ATOMIC_RELAXED);
	out->refused = __atomic_load_n(&p->c.refused, __ATOMIC_RELAXED);
	out->cut = __atomic_load_n(&p->c.cut, __ATOMIC_RELAXED);
}
