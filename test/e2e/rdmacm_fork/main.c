/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Children of fork() that use RDMA-CM after their parent did.
 *
 * usage: rdmacm-fork serve|ask ADDRESS
 *        rdmacm-fork storm ADDRESS PEER
 *
 * serve: a daemon: the parent looks at the devices and makes a channel, and its child serves one
 * connection on that channel. ask: the child of such a parent connects, sends, and gets an answer.
 * storm: children of a process whose threads are in RDMA-CM calls make ids and sockets of their
 * own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 7777, CHILDREN = 60, HANGS = 60 /* seconds */ };

/* End the process when a call failed. */
#define GOOD(call) ((call) ? (void)0 : fail(#call, __LINE__))

_Noreturn static void
fail(const char *call, int line)
{
	fprintf(stderr, "line %d: %s: %s\n", line, call, strerror(errno));
	_exit(1);
}

static struct sockaddr_in
address(const char *text, uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	GOOD(inet_pton(AF_INET, text, &a.sin_addr) == 1);
	return a;
}

/* Make a child; the parent waits for it. returns: in the child alone */
static void
become_child(void)
{
	pid_t pid = fork();
	int status;

	GOOD(pid >= 0);
	if (pid == 0) {
		alarm(HANGS);
		return;
	}
	GOOD(waitpid(pid, &status, 0) == pid);
	if (status != 0)
		fprintf(stderr, "the child ended with status %#x\n", (unsigned int)status);
	_exit(status != 0);
}

static void
next_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
	struct rdma_cm_event *e;

	GOOD(rdma_get_cm_event(channel, &e) == 0);
	if (e->event != type)
		fprintf(stderr, "%s instead of %s\n", rdma_event_str(e->event),
			rdma_event_str(type));
	GOOD(e->event == type);
	*id = e->id;
	GOOD(rdma_ack_cm_event(e) == 0);
}

static void
queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};

	a.cap.max_send_wr = a.cap.max_recv_wr = a.cap.max_send_sge = a.cap.max_recv_sge = 1;
	GOOD(rdma_create_qp(id, NULL, &a) == 0);
}

/* Use the parent's view: an id that the child can only destroy. */
static void
foreign(struct rdma_cm_id *id, struct sockaddr *a)
{
	GOOD(rdma_bind_addr(id, a) == -1);
	GOOD(rdma_listen(id, 1) == -1);
	GOOD(rdma_destroy_id(id) == 0);
}

static void
serve(const char *host)
{
	struct sockaddr_in a = address(host, PORT);
	struct rdma_event_channel *channel, *other;
	struct rdma_cm_id *old, *id, *got;
	struct rdma_cm_event *e;
	struct rdma_conn_param p = {0};
	struct ibv_mr *mr;
	struct ibv_wc wc;
	static char text[16];
	int n;

	GOOD(rdma_get_devices(&n) != NULL);
	GOOD((channel = rdma_create_event_channel()) != NULL);
	GOOD((other = rdma_create_event_channel()) != NULL);
	GOOD(rdma_create_id(channel, &old, NULL, RDMA_PS_TCP) == 0);
	become_child();
	foreign(old, (struct sockaddr *)&a);
	GOOD(rdma_get_cm_event(other, &e) == -1 && errno == EBADF);
	rdma_destroy_event_channel(other);
	GOOD(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	GOOD(rdma_bind_addr(id, (struct sockaddr *)&a) == 0);
	GOOD(rdma_listen(id, 1) == 0);
	puts("listening");
	fflush(stdout);
	next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &got);
	queue_pair(got);
	GOOD((mr = rdma_reg_msgs(got, text, sizeof(text))) != NULL);
	GOOD(rdma_post_recv(got, NULL, text, sizeof(text), mr) == 0);
	GOOD(rdma_accept(got, &p) == 0);
	next_event(channel, RDMA_CM_EVENT_ESTABLISHED, &got);
	GOOD(rdma_get_recv_comp(got, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	GOOD(strcmp(text, "ping") == 0);
	GOOD(rdma_post_send(got, NULL, text, sizeof(text), mr, 0) == 0);
	GOOD(rdma_get_send_comp(got, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	next_event(channel, RDMA_CM_EVENT_DISCONNECTED, &got);
	GOOD(rdma_disconnect(got) == 0);
	rdma_destroy_qp(got);
	GOOD(rdma_dereg_mr(mr) == 0);
	GOOD(rdma_destroy_id(got) == 0);
	GOOD(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(channel);
	puts("served");
}

static void
ask(const char *host)
{
	struct sockaddr_in a = address(host, PORT);
	struct rdma_conn_param p = {0};
	struct rdma_cm_id *id;
	struct ibv_mr *mr, *back_mr;
	struct ibv_wc wc;
	static char text[16] = "ping", back[16];
	int n;

	GOOD(rdma_get_devices(&n) != NULL);
	become_child();
	GOOD(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	GOOD(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) == 0);
	GOOD(rdma_resolve_route(id, 1000) == 0);
	queue_pair(id);
	GOOD((mr = rdma_reg_msgs(id, text, sizeof(text))) != NULL);
	GOOD((back_mr = rdma_reg_msgs(id, back, sizeof(back))) != NULL);
	GOOD(rdma_post_recv(id, NULL, back, sizeof(back), back_mr) == 0);
	GOOD(rdma_connect(id, &p) == 0);
	GOOD(rdma_post_send(id, NULL, text, sizeof(text), mr, 0) == 0);
	GOOD(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	GOOD(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	GOOD(strcmp(back, "ping") == 0);
	GOOD(rdma_disconnect(id) == 0);
	rdma_destroy_ep(id);
	puts("answered");
}

/* ---- storm */

static atomic_bool stop;

static void *
make_ids(void *arg)
{
	while (!stop) {
		struct rdma_event_channel *channel = rdma_create_event_channel();
		struct sockaddr_in any = {.sin_family = AF_INET};
		struct rdma_cm_id *id;

		GOOD(channel != NULL && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
		GOOD(rdma_bind_addr(id, (struct sockaddr *)&any) == 0);
		(void)rdma_listen(id, 1); /* another thread may have the port */
		GOOD(rdma_destroy_id(id) == 0);
		rdma_destroy_event_channel(channel);
	}
	return arg;
}

static void *
make_sockets(void *arg)
{
	int on = 1;

	while (!stop) {
		int s = rsocket(AF_INET, SOCK_STREAM, 0);

		GOOD(s >= 0);
		(void)rsetsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		GOOD(rclose(s) == 0);
	}
	return arg;
}

static void
child(const char *host, const char *peer, int socket)
{
	struct sockaddr_in own = address(host, 0), to = address(peer, PORT);
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *listener;
	int s;

	alarm(HANGS);
	GOOD(rrecv(socket, &s, sizeof(s), MSG_DONTWAIT) == -1 && errno == EBADF);
	GOOD((channel = rdma_create_event_channel()) != NULL);
	GOOD(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	GOOD(rdma_bind_addr(listener, (struct sockaddr *)&own) == 0);
	GOOD(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	GOOD(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
	next_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, &id);
	GOOD((s = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	GOOD(rbind(s, (struct sockaddr *)&own, sizeof(own)) == 0);
	GOOD(rclose(s) == 0);
	GOOD(rclose(socket) == 0);
	_exit(0);
}

static void
storm(const char *host, const char *peer)
{
	int status, bad = 0, socket = rsocket(AF_INET, SOCK_STREAM, 0);
	pthread_t t[3];

	GOOD(socket >= 0);
	for (int i = 0; i < 3; i++)
		GOOD(pthread_create(&t[i], NULL, i == 2 ? make_sockets : make_ids, NULL) == 0);
	for (int i = 0; i < CHILDREN && bad == 0; i++) {
		pid_t pid = fork();

		GOOD(pid >= 0);
		if (pid == 0)
			child(host, peer, socket);
		GOOD(waitpid(pid, &status, 0) == pid);
		if (status != 0)
			printf("child %d ended with status %#x\n", i, (unsigned int)status);
		bad += status != 0;
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	GOOD(rclose(socket) == 0);
	GOOD(bad == 0);
	puts("weathered");
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "ask") == 0)
		ask(argv[2]);
	else if (argc == 4 && strcmp(argv[1], "storm") == 0)
		storm(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
