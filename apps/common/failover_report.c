/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of a lost adapter: in words, as JSON, and as a plot. */
#include "common/failover.h"

#include "common/clock.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PLOT_POINTS = 200 }; /* most points of a plot */

/* The three parts of a run. */
enum part { BEFORE, DURING, AFTER, PARTS };
static const char *const part_names[PARTS] = {"before", "during", "after"};

/* True when the adapter was lost during the run, so that there are figures. */
static bool
has_acted(const struct urn_failover *f)
{
	return atomic_load(&f->state) == URN_FAILOVER_DONE;
}

/* Begin and end of a part. returns: false: the run has no such part */
static bool
part_times(const struct urn_failover *f, enum part part, uint64_t *from, uint64_t *to)
{
	uint64_t end = urn_samples_end(&f->samples);
	uint64_t moved = f->moved_ns != 0 && f->moved_ns < end ? f->moved_ns : end;
	uint64_t times[PARTS + 1] = {0, f->acted_ns, moved, end};

	*from = times[part];
	*to = times[part + 1];
	return *to > *from;
}

/* Units a second of a part. returns: false: the run has no such part */
static bool
part_rate(const struct urn_failover *f, enum part part, double *rate)
{
	uint64_t from, to;

	if (!part_times(f, part, &from, &to))
		return false;
	*rate = urn_samples_rate(&f->samples, from, to);
	return true;
}

static double
gbps(const struct urn_failover *f, double units)
{
	return units * (double)f->run.unit * 8 / 1e9;
}

/* ---- words */

static void
print_rate(const struct urn_failover *f, enum part part, const char *indent, FILE *out)
{
	double rate, before;
	char text[32];

	fprintf(out, "%srate %-7s  ", indent, part_names[part]);
	if (!part_rate(f, part, &rate)) {
		fputs("-\n", out);
		return;
	}
	fprintf(out, "%.2f Gb/s", gbps(f, rate));
	if (f->run.messages)
		fprintf(out, ", %s", urn_text_rate(text, sizeof(text), rate));
	if (part == AFTER && part_rate(f, BEFORE, &before) && before > 0)
		fprintf(out, " (%.1f %% of the rate before)", 100 * rate / before);
	fputc('\n', out);
}

static void
print_migration(const struct urn_failover *f, const char *indent, FILE *out)
{
	const struct urn_moves *m = &f->moves;
	char all[32], slowest[32], gap[32];

	fprintf(out, "%smigration:    ", indent);
	if (m->moved == 0)
		fprintf(out, "none of %u connection%s\n", m->left, m->left == 1 ? "" : "s");
	else
		fprintf(out, "%s from detection on, %u of %u connection%s, the slowest in %s\n",
			urn_text_time(all, sizeof(all), (m->moved_us - m->noticed_us) * 1000),
			m->moved, m->left, m->left == 1 ? "" : "s",
			urn_text_time(slowest, sizeof(slowest), m->slowest_us * 1000));
	fprintf(out, "%spause:        no completion was seen for %s\n", indent,
		urn_text_time(gap, sizeof(gap), urn_samples_gap(&f->samples, f->acted_ns)));
}

void
urn_failover_print(const struct urn_failover *f, const char *indent, FILE *out)
{
	const struct urn_moves *m = &f->moves;
	char text[32];

	if (!has_acted(f)) {
		fprintf(out, "%sloss:         none\n", indent);
		return;
	}
	fprintf(out, "%sloss:         after %s: %s\n", indent,
		urn_text_time(text, sizeof(text), f->acted_ns), f->loss.what);
	fprintf(out, "%sdetection:    ", indent);
	if (m->noticed_us == 0) {
		fputs("this side noticed no loss\n", out);
	} else {
		fprintf(out, "%s: %s\n",
			urn_text_time(text, sizeof(text), (m->noticed_us - m->since_us) * 1000),
			m->cause);
		print_migration(f, indent, out);
	}
	for (unsigned int i = BEFORE; i < PARTS; i++)
		print_rate(f, (enum part)i, indent, out);
}

/* ---- JSON */

static void
json_part(const struct urn_failover *f, struct urn_json *j, enum part part)
{
	double rate;

	if (!part_rate(f, part, &rate)) {
		urn_json_null(j, part_names[part]);
		return;
	}
	urn_json_object(j, part_names[part]);
	urn_json_num(j, "gbps", gbps(f, rate), 3);
	if (f->run.messages)
		urn_json_num(j, "msg_rate", rate, 0);
	urn_json_end(j);
}

static void
json_moves(const struct urn_failover *f, struct urn_json *j)
{
	const struct urn_moves *m = &f->moves;

	urn_json_bool(j, "detected", m->noticed_us != 0);
	if (m->noticed_us == 0)
		return;
	urn_json_u64(j, "detection_us", m->noticed_us - m->since_us);
	urn_json_str(j, "cause", m->cause);
	urn_json_u64(j, "connections", m->left);
	urn_json_u64(j, "migrated", m->moved);
	if (m->moved == 0)
		return;
	urn_json_u64(j, "migration_us", m->moved_us - m->noticed_us);
	urn_json_u64(j, "slowest_us", m->slowest_us);
}

void
urn_failover_json(const struct urn_failover *f, struct urn_json *j)
{
	double before, after;

	if (!has_acted(f)) {
		urn_json_null(j, "failover");
		return;
	}
	urn_json_object(j, "failover");
	urn_json_str(j, "loss", f->loss.what);
	urn_json_num(j, "at_seconds", (double)f->acted_ns / 1e9, 6);
	json_moves(f, j);
	urn_json_num(j, "pause_us", (double)urn_samples_gap(&f->samples, f->acted_ns) / 1000, 0);
	urn_json_object(j, "rate");
	for (unsigned int i = BEFORE; i < PARTS; i++)
		json_part(f, j, (enum part)i);
	urn_json_end(j);
	if (part_rate(f, BEFORE, &before) && part_rate(f, AFTER, &after) && before > 0)
		urn_json_num(j, "after_to_before", after / before, 4);
	else
		urn_json_null(j, "after_to_before");
	urn_json_end(j);
}

/* ---- progress */

/* CLOCK_REALTIME of the begin of the run, which the log of steps has, too; ns */
static uint64_t
begun_at(const struct urn_failover *f)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec -
	       (urn_clock_ns() - f->begun_ns);
}

int
urn_failover_progress(const struct urn_failover *f, const char *path, struct urn_err *err)
{
	FILE *to = fopen(path, "we");
	uint64_t begun = begun_at(f);
	bool failed;

	if (to == NULL) {
		urn_err_set(err, "--progress: '%.120s' can't be written: %s", path,
			    strerror(errno));
		return -1;
	}
	fputs("seconds,bytes\n", to);
	for (uint32_t i = 0; i < f->samples.n; i++) {
		const struct urn_sample *s = &f->samples.at[i];
		uint64_t at = begun + s->ns;

		fprintf(to, "%" PRIu64 ".%06" PRIu64 ",%" PRIu64 "\n", at / 1000000000,
			at % 1000000000 / 1000, s->units * f->run.unit);
	}
	failed = ferror(to) != 0;
	if (fclose(to) == 0 && !failed)
		return 0;
	urn_err_set(err, "--progress: '%.120s' is not whole: %s", path, strerror(errno));
	return -1;
}

/* ---- plot */

/* A line across the plot at a time. */
static void
script_mark(FILE *out, unsigned int tag, uint64_t ns, const char *color, const char *text)
{
	double at = (double)ns / 1e9;

	fprintf(out, "set arrow %u from %.6f, graph 0 to %.6f, graph 1 nohead lc rgb '%s' dt 2\n",
		tag, at, at, color);
	fprintf(out, "set label %u '%s' at %.6f, graph %.2f offset 0.5,0 textcolor rgb '%s'\n", tag,
		text, at, 0.98 - 0.05 * (tag - 1), color);
}

void
urn_failover_script(const struct urn_failover *f, bool svg, FILE *out)
{
	uint64_t end = urn_samples_end(&f->samples), step = end / PLOT_POINTS;

	if (step < f->samples.every_ns)
		step = f->samples.every_ns;
	fprintf(out, "set terminal %s\n",
		svg ? "svg size 960,420 dynamic noenhanced font 'sans,13' background '#ffffff'"
		    : "pngcairo size 960,420 noenhanced font 'sans,11'");
	fputs("set grid\nset xlabel 'seconds'\nset ylabel 'Gb/s'\nset yrange [0:]\nunset key\n",
	      out);
	if (has_acted(f))
		script_mark(out, 1, f->acted_ns, "#c0392b", "adapter lost");
	if (has_acted(f) && f->moved_ns != 0)
		script_mark(out, 2, f->moved_ns, "#1e8449", "connections moved");
	fputs("$rate << EOD\n", out);
	for (uint64_t at = 0; at + step <= end; at += step)
		fprintf(out, "%.6f %.6f\n", (double)at / 1e9,
			gbps(f, urn_samples_rate(&f->samples, at, at + step)));
	fputs("EOD\nplot $rate using 1:2 with steps lw 1.5 lc rgb '#1f4e8c'\n", out);
}

/* Run gnuplot with a script, and with its standard output in a file. returns: 0 or an errno value
 */
static int
run_gnuplot(FILE *script, int to)
{
	char *const argv[] = {"gnuplot", NULL};
	posix_spawn_file_actions_t files;
	int rc, status = 0;
	pid_t pid, got;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fileno(script), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
	rc = posix_spawnp(&pid, "gnuplot", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (rc != 0)
		return rc;
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EIO;
}

int
urn_failover_plot(const struct urn_failover *f, const char *path, struct urn_err *err)
{
	FILE *script = tmpfile();
	int to = script != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
	int rc = errno;

	if (to >= 0) {
		urn_failover_script(f, urn_plot_kind(path) == URN_PLOT_SVG, script);
		rc = fflush(script) == 0 && fseek(script, 0, SEEK_SET) == 0
			     ? run_gnuplot(script, to)
			     : errno;
		close(to);
	}
	if (script != NULL)
		fclose(script);
	if (to >= 0 && rc == 0)
		return 0;
	if (to >= 0)
		(void)unlink(path);
	if (to >= 0 && rc == ENOENT)
		urn_err_set(err,
			    "there is no gnuplot for --plot; scripts/setup.sh --bench installs it");
	else
		urn_err_set(err, "--plot: '%.120s' can't be drawn: %s", path,
			    rc == EIO ? "gnuplot failed" : strerror(rc));
	return -1;
}
