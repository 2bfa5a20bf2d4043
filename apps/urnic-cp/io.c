/* SPDX-License-Identifier: BSD-3-Clause */
#include "io.h"

#include <signal.h>
#include <string.h>

static struct cp_job *
next_job(struct cp_io *io)
{
	struct cp_job *job;

	pthread_mutex_lock(&io->lock);
	while (io->head == NULL && !io->stop)
		pthread_cond_wait(&io->more, &io->lock);
	job = io->head;
	if (job != NULL) {
		io->head = job->next;
		if (io->head == NULL)
			io->tail = &io->head;
	}
	pthread_mutex_unlock(&io->lock);
	return job;
}

static void *
worker(void *arg)
{
	struct cp_io *io = arg;
	struct cp_job *job;

	while ((job = next_job(io)) != NULL) {
		job->run(job);
		/* Pairs with the acquire in cp_job_done(); from here on the job is the submitter's. */
		atomic_store_explicit(&job->done, true, memory_order_release);
	}
	return NULL;
}

int
cp_io_start(struct cp_io *io, struct urn_err *err)
{
	sigset_t all, old;
	int rc;

	memset(io, 0, sizeof(*io));
	io->tail = &io->head;
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->more, NULL);
	/* The new thread inherits the mask: Ctrl-C must interrupt the main thread's waits. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&io->thread, NULL, worker, io);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	io->running = rc == 0;
	if (rc != 0)
		urn_err_set(err, "cannot start a thread for files: %s.", strerror(rc));
	return rc == 0 ? 0 : -1;
}

void
cp_io_stop(struct cp_io *io)
{
	if (!io->running)
		return;
	pthread_mutex_lock(&io->lock);
	io->stop = true;
	pthread_cond_signal(&io->more);
	pthread_mutex_unlock(&io->lock);
	pthread_join(io->thread, NULL);
	pthread_cond_destroy(&io->more);
	pthread_mutex_destroy(&io->lock);
	io->running = false;
}

void
cp_io_submit(struct cp_io *io, struct cp_job *job)
{
	job->next = NULL;
	atomic_store_explicit(&job->done, false, memory_order_relaxed);
	pthread_mutex_lock(&io->lock);
	*io->tail = job;
	io->tail = &job->next;
	pthread_cond_signal(&io->more);
	pthread_mutex_unlock(&io->lock);
}
