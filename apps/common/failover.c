/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/failover.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOG_VARIABLE "URNIC_SESSION_LOG"
#define LEVEL_VARIABLE "URNIC_SESSION_LOG_LEVEL" /* times need all lines */
#define EVERY_NS 1000000ull	   /* between two samples */
#define PATIENCE_NS 60000000000ull /* for a loss that was begun */

/* ---- the log of steps */

/* Have a log in a file without a name, which only this process has. returns: 0, or -1 with *err */
static int
make_log(struct urn_failover *f, struct urn_err *err)
{
	int fd = memfd_create("urnic-session-log", MFD_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	f->log = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (f->log != NULL && setenv(LOG_VARIABLE, path, 1) == 0) {
		f->log_ours = true;
		return 0;
	}
	urn_err_set(err, "no memory for the log of steps: %s", strerror(errno));
	if (f->log == NULL && fd >= 0)
		close(fd);
	return -1;
}

/* Have a log: the one that the environment names, from its present end on, or one of our own. */
static int
open_log(struct urn_failover *f, struct urn_err *err)
{
	const char *told = getenv(LOG_VARIABLE);
	int fd;

	(void)unsetenv(LEVEL_VARIABLE);
	if (told == NULL || told[0] == '\0')
		return make_log(f, err);
	if (strcmp(told, "stderr") == 0) {
		urn_err_set(err, LOG_VARIABLE " is stderr, from which times can't be read; give it "
					      "the name of a file, or unset it");
		return -1;
	}
	fd = open(told, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	f->log = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (f->log != NULL && fseeko(f->log, 0, SEEK_END) == 0)
		return 0;
	urn_err_set(err, LOG_VARIABLE ": '%.120s' can't be read: %s", told, strerror(errno));
	if (f->log == NULL && fd >= 0)
		close(fd);
	return -1;
}

static void
read_log(struct urn_failover *f)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	clearerr(f->log);
	if (f->log_ours)
		rewind(f->log);
	while ((n = getline(&line, &room, f->log)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		urn_moves_line(&f->moves, line);
	}
	free(line);
}

int
urn_failover_prepare(struct urn_failover *f, const struct urn_loss_spec *spec, struct urn_err *err)
{
	const char *session = getenv("URNIC_SESSION");

	memset(f, 0, sizeof(*f));
	f->loss.fd = -1;
	f->patience_ns = PATIENCE_NS;
	if (urn_samples_make(&f->samples, EVERY_NS) != 0) {
		urn_err_set(err, "no memory for samples of the rate");
		return -1;
	}
	if (urn_loss_prepare(&f->loss, spec, session != NULL ? session : "", err) != 0)
		return -1;
	return open_log(f, err);
}

/* ---- the thread */

static void
set_state(struct urn_failover *f, enum urn_failover_state state)
{
	atomic_store_explicit(&f->state, state, memory_order_release);
}

static enum urn_failover_state
state_of(const struct urn_failover *f)
{
	return (enum urn_failover_state)atomic_load_explicit(&f->state, memory_order_acquire);
}

/* CLOCK_REALTIME, which the log has */
static uint64_t
real_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Have the adapter lost. */
static void
act(struct urn_failover *f)
{
	f->acted_ns = urn_clock_ns() - f->begun_ns;
	urn_moves_begin(&f->moves, (int)getpid(), real_us());
	set_state(f, URN_FAILOVER_ACTS);
	if (urn_loss_begin(&f->loss, &f->err) != 0)
		set_state(f, URN_FAILOVER_FAILED);
}

/* Look whether the loss that was begun is done. The run may wait for it, so it has a time limit. */
static void
follow(struct urn_failover *f)
{
	int rc = urn_loss_done(&f->loss, &f->err);

	if (rc == 0 && urn_clock_ns() - f->begun_ns - f->acted_ns > f->patience_ns) {
		urn_err_set(&f->err, "the adapter is still not lost after a minute");
		rc = -1;
	}
	if (rc != 0)
		set_state(f, rc > 0 ? URN_FAILOVER_DONE : URN_FAILOVER_FAILED);
}

/* Take a sample, and begin the loss when it is due. */
static void
look(struct urn_failover *f)
{
	uint64_t units = 0, now;
	enum urn_run_state run = f->run.look(f->run.arg, &units);

	now = urn_clock_ns();
	if (run == URN_RUN_WARM || f->over)
		return;
	if (f->begun_ns == 0)
		f->begun_ns = now;
	urn_samples_add(&f->samples, now - f->begun_ns, units);
	f->over = run == URN_RUN_OVER;
	if (!f->over && state_of(f) == URN_FAILOVER_WAITS &&
	    (now - f->begun_ns >= f->run.at_ns || atomic_load(&f->asked)))
		act(f);
}

/* Wait until the next sample, the loss, or a call. */
static void
nap(struct urn_failover *f)
{
	uint64_t now = urn_clock_ns(), until = now + f->samples.every_ns;
	uint64_t due = f->begun_ns + f->run.at_ns;
	struct timespec ts;

	if (f->begun_ns != 0 && due > now && due < until)
		until = due;
	ts.tv_sec = (time_t)(until / 1000000000);
	ts.tv_nsec = (long)(until % 1000000000);
	while (sem_clockwait(&f->wake, CLOCK_MONOTONIC, &ts) != 0 && errno == EINTR)
		;
}

static void *
watch(void *arg)
{
	struct urn_failover *f = arg;

	pthread_setname_np(pthread_self(), "failover");
	while (!atomic_load(&f->stop)) {
		look(f);
		if (state_of(f) == URN_FAILOVER_ACTS)
			follow(f);
		nap(f);
	}
	return NULL;
}

int
urn_failover_start(struct urn_failover *f, const struct urn_failover_run *run, struct urn_err *err)
{
	f->run = *run;
	look(f); /* the run may begin here, and the thread may get a processor late */
	sem_init(&f->wake, 0, 0);
	f->started = pthread_create(&f->thread, NULL, watch, f) == 0;
	if (f->started)
		return 0;
	sem_destroy(&f->wake);
	urn_err_set(err, "no thread to lose the adapter with");
	return -1;
}

void
urn_failover_now(struct urn_failover *f)
{
	if (!atomic_exchange(&f->asked, true))
		sem_post(&f->wake);
}

/* ---- the end */

/* Take the last sample, if the thread did not see the end of the run. */
static void
look_last(struct urn_failover *f)
{
	uint64_t units = 0;

	if (f->begun_ns == 0 || f->over)
		return;
	(void)f->run.look(f->run.arg, &units);
	urn_samples_add(&f->samples, urn_clock_ns() - f->begun_ns, units);
}

/* Wait for the end of a loss that was begun: a command may take longer than the run. */
static void
await_loss(struct urn_failover *f)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	while (state_of(f) == URN_FAILOVER_ACTS) {
		follow(f);
		nanosleep(&ms, NULL);
	}
}

void
urn_failover_stop(struct urn_failover *f)
{
	const struct urn_moves *m = &f->moves;
	struct urn_err err;

	if (!f->started)
		return;
	atomic_store(&f->stop, true);
	sem_post(&f->wake);
	pthread_join(f->thread, NULL);
	sem_destroy(&f->wake);
	f->started = false;
	look_last(f);
	await_loss(f);
	if (urn_loss_close(&f->loss, &err) != 0 && state_of(f) == URN_FAILOVER_DONE) {
		f->err = err;
		set_state(f, URN_FAILOVER_FAILED);
	}
	if (state_of(f) < URN_FAILOVER_ACTS)
		return;
	read_log(f);
	if (m->left > 0 && m->moved == m->left)
		f->moved_ns = f->acted_ns + (m->moved_us - m->since_us) * 1000;
}

int
urn_failover_judge(const struct urn_failover *f, struct urn_err *err)
{
	switch (state_of(f)) {
	case URN_FAILOVER_DONE:
		return 0;
	case URN_FAILOVER_FAILED:
		*err = f->err;
		break;
	default:
		urn_err_set(err, "the run was over before the adapter was lost");
		break;
	}
	return -1;
}

void
urn_failover_close(struct urn_failover *f)
{
	struct urn_err ignored;

	urn_failover_stop(f);
	(void)urn_loss_close(&f->loss, &ignored);
	if (f->log != NULL)
		fclose(f->log);
	f->log = NULL;
	urn_moves_end(&f->moves);
	urn_samples_free(&f->samples);
}
