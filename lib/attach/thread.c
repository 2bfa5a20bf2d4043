/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/thread.h"

#include <dlfcn.h>
#include <link.h>
#include "attach/stop.h"

#include <errno.h>
#include <signal.h>

/* Bytes of stack; the sanitizers' run-time takes much of it. */
#define URN_THREAD_STACK ((size_t)256 << 10)

int
urn_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	urn_stop_mask(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, URN_THREAD_STACK);
	err = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	/* The C library puts thread-local variables into the stack, and a program may have many. */
	if (err == EINVAL)
		err = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void
urn_thread_stay(void)
{
	static const char here;
	struct link_map *object = NULL;
	Dl_info info;
	void *handle = NULL;

	if (dladdr1(&here, &info, (void **)&object, RTLD_DL_LINKMAP) != 0 && object != NULL &&
	    object->l_name[0] != '\0')
		handle = dlopen(object->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
	if (handle != NULL)
		dlclose(handle);
}
