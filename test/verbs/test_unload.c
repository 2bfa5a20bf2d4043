/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library as a part of an object that is loaded at run time, and unloaded: its fork()
 * handlers and its threads must not be left without their code. argv[1]: urnicd, argv[2]:
 * the object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "death.h"
#include "plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *object;

struct plugin {
	void *handle;
	__typeof__(plugin_list) *list;
	__typeof__(plugin_open) *open;
	__typeof__(plugin_close) *close;
};

/* A check for a process that may crash. */
#define MUST(what)                                                                  \
	do {                                                                        \
		if (!(what)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);  \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

static void
load(struct plugin *p)
{
	p->handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
	if (p->handle == NULL)
		fprintf(stderr, "%s\n", dlerror());
	MUST(p->handle != NULL);
	/* POSIX's way, for ISO C has no such conversion. */
	*(void **)&p->list = dlsym(p->handle, "plugin_list");
	*(void **)&p->open = dlsym(p->handle, "plugin_open");
	*(void **)&p->close = dlsym(p->handle, "plugin_close");
	MUST(p->list != NULL && p->open != NULL && p->close != NULL);
}

static void
unload(struct plugin *p)
{
	MUST(dlclose(p->handle) == 0);
}

/* The fork() handlers run, before and after. */
static void
forks(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static unsigned int
threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;

	for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* ---- each in a process of its own */

static void
only_looks(pid_t nicd)
{
	struct plugin p;

	(void)nicd;
	for (int i = 0; i < 3; i++) {
		load(&p);
		MUST(p.list() == 2);
		unload(&p);
		forks();
	}
	MUST(dlopen(object, RTLD_NOW | RTLD_NOLOAD) == NULL); /* the object is unloaded, for none of its code runs */
}

static void
opens_and_closes(pid_t nicd)
{
	struct plugin p;
	void *device;

	(void)nicd;
	for (int i = 0; i < 3; i++) {
		load(&p);
		device = p.open(death_sock);
		MUST(device != NULL);
		forks();
		MUST(p.close(device) == 0);
		unload(&p);
		forks();
	}
	MUST(threads() == 1);
}

/* The object's device is open when it is unloaded; then the dataplane dies, and a thread handles that. */
static void
leaves_it_open(pid_t nicd)
{
	struct plugin p;

	load(&p);
	MUST(p.open(death_sock) != NULL);
	MUST(threads() == 2);
	unload(&p);
	forks();
	MUST(kill(nicd, SIGTERM) == 0);
	for (uint64_t end = death_now_ms() + 30000; threads() != 1 && death_now_ms() < end;)
		death_nap_us(1000);
	MUST(threads() == 1);
	forks();
}

/* stops: does() stops the dataplane itself; a second signal would not let the dataplane end in order */
static void
in_a_process(void (*does)(pid_t nicd), bool stops)
{
	pid_t nicd = death_start(1), pid;
	int status;

	setenv("URNIC_SOCKET", death_sock, 1);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		does(nicd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unsetenv("URNIC_SOCKET");
	if (!stops || status != 0)
		assert_int_equal(kill(nicd, SIGTERM), 0);
	assert_int_equal(waitpid(nicd, NULL, 0), nicd);
	if (status != 0)
		fail_msg("%s", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "a step of it failed");
}

static void
test_looks(void **state)
{
	(void)state;
	in_a_process(only_looks, false);
}

static void
test_closes(void **state)
{
	(void)state;
	in_a_process(opens_and_closes, false);
}

static void
test_leaves_open(void **state)
{
	(void)state;
	in_a_process(leaves_it_open, true);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_closes),
		cmocka_unit_test(test_leaves_open),
	};
	int rc = argc == 3 ? death_begin(argc, argv) : 2;

	if (rc != 0)
		return rc;
	object = argv[2];
	return death_finish(cmocka_run_group_tests_name("unload", tests, NULL, NULL));
}
