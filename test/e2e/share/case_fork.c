/* SPDX-License-Identifier: BSD-3-Clause */
/* fork() of a program with shared pages. */
#include "share.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two pipes by which parent and child take turns. */
static int to_child[2], to_parent[2];

static void
say(const int fd[2])
{
	CHECK(write(fd[1], "x", 1) == 1);
}

static void
hear(const int fd[2])
{
	char c;

	CHECK(read(fd[0], &c, 1) == 1);
}

static void
ended_well(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fprintf(stderr, "child: status 0x%x\n", (unsigned int)status);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The grandchild has its own copy of its parent's memory. */
static void
grandchild(char *large, char *small)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(strcmp(large, "child") == 0 && strcmp(small, "child") == 0);
		words(large, "grand");
		words(small, "grand");
		CHECK(!shared(large) && !shared(small));
		_exit(0);
	}
	ended_well(pid);
	CHECK(strcmp(large, "child") == 0 && strcmp(small, "child") == 0);
}

static void
child(char *large, char *small, char *end, struct ibv_mr *mr)
{
	CHECK(!shared(large) && !shared(small));
	CHECK(strcmp(large, "before") == 0 && strcmp(small, "before") == 0 &&
	      strcmp(end, "end") == 0);
	words(large, "child");
	words(small, "child");
	say(to_parent);
	hear(to_child); /* the parent, and a remote write, have changed it meanwhile */
	CHECK(strcmp(large, "child") == 0 && strcmp(small, "child") == 0 &&
	      strcmp(end, "end") == 0);
	grandchild(large, small);
	CHECK(ibv_dereg_mr(mr) == 0 || 1); /* the parent's: nothing happens */
	CHECK(strcmp(large, "child") == 0 && strcmp(small, "child") == 0);
	free(small);
	CHECK(munmap(large, 2 * MIB) == 0);
	_exit(0);
}

void
case_fork(void)
{
	char *large = fresh(2 * MIB), *small = malloc(100), *end = large + 2 * MIB - 8;
	struct ibv_mr *mr = reg(large, 2 * MIB), *other = reg(small, 100);
	pid_t pid;

	CHECK(shared(large) && shared(small) && pipe(to_child) == 0 && pipe(to_parent) == 0);
	words(large, "before");
	words(small, "before");
	words(end, "end");
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(large, small, end, mr);
	hear(to_parent); /* the child has changed its memory */
	CHECK(strcmp(large, "before") == 0 && strcmp(small, "before") == 0 &&
	      strcmp(end, "end") == 0);
	words(large, "parent");
	words(small, "parent");
	put(mr, end, "wire", 5);
	CHECK(strcmp(end, "wire") == 0);
	say(to_child);
	ended_well(pid);
	CHECK(strcmp(large, "parent") == 0 && strcmp(small, "parent") == 0 &&
	      strcmp(end, "wire") == 0);
	put(mr, large, "still", 6);
	CHECK(strcmp(large, "still") == 0 && shared(large) && shared(small));
	dereg(mr);
	dereg(other);
}

static _Atomic bool over;

/* Registers and allocates while others fork. */
static void *
busy(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; !over; i++) {
		size_t length = 64 + i % 5 * 30000;
		char *p = malloc(length);
		struct ibv_mr *mr = reg(p, length);
		FILE *f = fopen(
			"/dev/null",
			"w"); /* its lock lies on the heap, and fork() resets it in the child */

		CHECK(f != NULL);
		fputs("x", f);
		memset(p, (int)i, length);
		fclose(f);
		dereg(mr);
		CHECK(p[0] == (char)i && p[length - 1] == (char)i);
		free(p);
	}
	return NULL;
}

static void *
forks(void *arg)
{
	volatile uint64_t *mine = malloc(64);
	struct ibv_mr *mr = reg((void *)(uintptr_t)mine, 64);
	uint64_t i;

	(void)arg;
	for (i = 1; i <= 20; i++) {
		pid_t pid;

		*mine = i;
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			char *p = malloc(100000);

			CHECK(*mine == i && p != NULL);
			*mine = 0;
			memset(p, 1, 100000);
			free(p);
			_exit(0);
		}
		*mine = i + 1;
		ended_well(pid);
		CHECK(*mine == i + 1);
	}
	dereg(mr);
	free((void *)(uintptr_t)mine);
	return NULL;
}

void
case_forks(void)
{
	pthread_t thread[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&thread[i], NULL, i < 2 ? busy : forks, NULL) == 0);
	for (i = 2; i < 4; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	over = true;
	for (i = 0; i < 2; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

/* Let the traced parent fork, and go on; hold its child. returns: the child */
static pid_t
hold_child(pid_t parent)
{
	pid_t pid, held = 0;
	bool forked = false;
	int status;

	while (!forked || held == 0) {
		pid = waitpid(-1, &status, __WALL);
		CHECK(pid > 0 && WIFSTOPPED(status));
		if (pid != parent) {
			held = pid;
			continue;
		}
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8)) {
			forked = true;
			status = 0;
		}
		CHECK(ptrace(PTRACE_CONT, pid, NULL, status == 0 ? 0 : WSTOPSIG(status)) == 0);
	}
	return held;
}

/* A debugger: it lets the child go once the parent has told on `err` that fork() waits. */
static void
debugger(pid_t parent, int err, const _Atomic bool *returned)
{
	char text[4096];
	size_t n = 0;
	pid_t held;

	hear(to_child);
	CHECK(ptrace(PTRACE_SEIZE, parent, NULL, PTRACE_O_TRACEFORK) == 0);
	say(to_parent);
	held = hold_child(parent);
	do {
		ssize_t more = read(err, text + n, sizeof(text) - 1 - n);

		CHECK(more > 0);
		text[n += (size_t)more] = '\0';
	} while (strstr(text, "fork() waits") == NULL);
	fputs(text, stderr);
	usleep(100000); /* a parent that goes on shows it */
	CHECK(!*returned);
	CHECK(ptrace(PTRACE_DETACH, held, NULL, NULL) == 0);
	_exit(0);
}

/* The child sees memory as of the fork, however long it is held. */
void
case_held(void)
{
	_Atomic bool *returned =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *p = fresh(2 * MIB);
	int err[2], before = dup(STDERR_FILENO);
	pid_t parent = getpid(), tracer, pid;
	struct ibv_mr *mr;

	CHECK(returned != MAP_FAILED && pipe(err) == 0);
	CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
	tracer = fork();
	CHECK(tracer >= 0);
	if (tracer == 0) {
		close(err[1]);
		debugger(parent, err[0], returned);
	}
	(void)prctl(PR_SET_PTRACER, tracer, 0, 0, 0); /* fails where nobody needs to be allowed */
	say(to_child);
	hear(to_parent);
	mr = reg(p, 2 * MIB);
	CHECK(shared(p));
	words(p, "before");
	CHECK(dup2(err[1], STDERR_FILENO) == STDERR_FILENO);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(strcmp(p, "before") == 0);
		_exit(0);
	}
	*returned = true;
	words(p, "after");
	CHECK(dup2(before, STDERR_FILENO) == STDERR_FILENO);
	ended_well(pid);
	ended_well(tracer);
	dereg(mr);
}

/* The first byte at p in a child that no hook of fork() has seen. returns: the child's status */
static int
reads_in_clone(const volatile char *p)
{
	int status;
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	CHECK(pid >= 0);
	if (pid == 0) {
		/* The child dies without a core file. */
		(void)prctl(PR_SET_DUMPABLE, 0);
		(void)signal(SIGSEGV, SIG_DFL);
		_exit(*p == 'x' ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* A child of a bare clone() lacks the shared pages, and has all others. */
void
case_clone(void)
{
	char *p = fresh(PAGE), *other = fresh(PAGE), got[2];
	struct ibv_mr *mr = reg(p, PAGE);
	int status;

	CHECK(shared(p) && !shared(other));
	words(p, "x");
	words(other, "x");
	status = reads_in_clone(other);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	status = reads_in_clone(p);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	put(mr, p, "y", 2);
	CHECK(shared(p) && strcmp(p, "y") == 0);
	get(mr, p, got, 2);
	CHECK(strcmp(got, "y") == 0);
	dereg(mr);
}

void
case_spawn(void)
{
	char *text = malloc(100), *argv[] = {(char *)"true", NULL}, *env[] = {NULL};
	struct ibv_mr *mr = reg(text, 100);
	pid_t pid;
	FILE *f;

	CHECK(shared(text));
	words(text, "echo spawned");
	f = popen(text, "r");
	CHECK(f != NULL && fgets(text, 100, f) != NULL && strcmp(text, "spawned\n") == 0 &&
	      pclose(f) == 0);
	words(text, "/bin/true");
	CHECK(posix_spawn(&pid, text, NULL, NULL, argv, env) == 0);
	ended_well(pid);
	pid = vfork();
	if (pid == 0) {
		execl(text, text, (char *)NULL);
		_exit(1);
	}
	ended_well(pid);
	/* A child that executes another program. */
	pid = fork();
	if (pid == 0) {
		execl(text, text, (char *)NULL);
		_exit(1);
	}
	ended_well(pid);
	put(mr, text, "after", 6);
	CHECK(strcmp(text, "after") == 0);
	dereg(mr);
	free(text);
}
