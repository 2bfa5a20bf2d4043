/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls in the C library's place that execute other programs: each hands the twins on by a table
 * (heir.h). The new environment lies on the stack, because a child of vfork() must change nothing
 * in its parent's memory. When the call fails the table is closed, and all is as before.
 */
#include "sockets/call.h"

#include "sockets/heir.h"
#include "sockets/tcp.h"

#include <alloca.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

/* A program that is to be executed, by one of the C library's functions. */
struct urn_exec {
	enum { URN_EXEC_PATH, URN_EXEC_SEARCH, URN_EXEC_FD, URN_EXEC_AT, URN_EXEC_SPAWN } how;
	int fd, flags;	  /* fexecve() and execveat() have them */
	const char *path; /* NULL with URN_EXEC_FD */
	char *const *argv;
	/* posix_spawn() and posix_spawnp() have these. */
	int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		     const posix_spawnattr_t *, char *const[], char *const[]);
	pid_t *pid;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attr;
};

/* returns: like the C library's function */
static int
urn_exec_call(const struct urn_exec *x, char *const envp[])
{
	switch (x->how) {
	case URN_EXEC_PATH:
		return urn_real()->execve(x->path, x->argv, envp);
	case URN_EXEC_SEARCH:
		return urn_real()->execvpe(x->path, x->argv, envp);
	case URN_EXEC_FD:
		return urn_real()->fexecve(x->fd, x->argv, envp);
	case URN_EXEC_AT:
		return urn_real()->execveat(x->fd, x->path, x->argv, envp, x->flags);
	case URN_EXEC_SPAWN:
		break;
	}
	return x->spawn(x->pid, x->path, x->actions, x->attr, x->argv, envp);
}

/* Call with the table named in the environment. n: variables of envp */
static int
urn_exec_with(const struct urn_exec *x, char *const envp[], size_t n, int table)
{
	char text[URN_HEIR_TEXT];
	char **env = alloca((n + 2) * sizeof(*env));

	urn_heir_env(env, text, envp, table);
	return urn_exec_call(x, env);
}

/* True when a program may be there: a look along a path (Python's os.execvp()) has calls that fail,
 * and change nothing. */
static bool
urn_exec_is_there(const struct urn_exec *x)
{
	/* A filter of system calls may refuse the look itself. */
	return x->how != URN_EXEC_PATH || x->path == NULL ||
	       faccessat(AT_FDCWD, x->path, X_OK, AT_EACCESS) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
}

/* Hand the twins on, and call. returns: like the C library's function */
static int
urn_exec(const struct urn_exec *x, char *const envp[])
{
	/* Descriptors of a child of vfork() and of posix_spawn() may change unseen. */
	bool all = x->how == URN_EXEC_SPAWN || urn_real_stranger();
	size_t n = urn_heir_env_count(envp);
	int err, why, table;

	if (x->how != URN_EXEC_SPAWN && urn_exec_is_there(x))
		urn_tcp_held_exec();
	table = n <= URN_HEIR_ENV ? urn_heir_write(all) : -1;
	if (table < 0)
		return urn_exec_call(x, envp);
	err = urn_exec_with(x, envp, n, table);
	why = errno;
	(void)urn_real()->close(table);
	errno = why;
	return err;
}

URN_CALL int
execve(const char *path, char *const argv[], char *const envp[])
{
	const struct urn_exec x = {.how = URN_EXEC_PATH, .path = path, .argv = argv};

	return urn_exec(&x, envp);
}

URN_CALL int
execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

URN_CALL int
execvpe(const char *file, char *const argv[], char *const envp[])
{
	const struct urn_exec x = {.how = URN_EXEC_SEARCH, .path = file, .argv = argv};

	return urn_exec(&x, envp);
}

URN_CALL int
execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

URN_CALL int
fexecve(int fd, char *const argv[], char *const envp[])
{
	const struct urn_exec x = {.how = URN_EXEC_FD, .fd = fd, .argv = argv};

	return urn_exec(&x, envp);
}

URN_CALL int
execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	const struct urn_exec x = {
		.how = URN_EXEC_AT, .fd = fd, .path = path, .argv = argv, .flags = flags};

	return urn_exec(&x, envp);
}

URN_CALL int
posix_spawn(pid_t *restrict pid, const char *restrict path,
	    const posix_spawn_file_actions_t *restrict actions,
	    const posix_spawnattr_t *restrict attr, char *const argv[restrict],
	    char *const envp[restrict])
{
	const struct urn_exec x = {.how = URN_EXEC_SPAWN,
				   .path = path,
				   .argv = argv,
				   .spawn = urn_real()->posix_spawn,
				   .pid = pid,
				   .actions = actions,
				   .attr = attr};

	return urn_exec(&x, envp);
}

URN_CALL int
posix_spawnp(pid_t *restrict pid, const char *restrict file,
	     const posix_spawn_file_actions_t *restrict actions,
	     const posix_spawnattr_t *restrict attr, char *const argv[restrict],
	     char *const envp[restrict])
{
	const struct urn_exec x = {.how = URN_EXEC_SPAWN,
				   .path = file,
				   .argv = argv,
				   .spawn = urn_real()->posix_spawnp,
				   .pid = pid,
				   .actions = actions,
				   .attr = attr};

	return urn_exec(&x, envp);
}

/* ---- the arguments one by one */

/* Count the arguments up to NULL, first among them. */
static size_t
urn_exec_count(const char *first, va_list *ap)
{
	size_t n = 0;

	for (; first != NULL; first = va_arg(*ap, const char *))
		n++;
	return n;
}

/* Get the arguments up to NULL. argv: room for them and NULL */
static void
urn_exec_list(char *argv[], const char *first, va_list *ap)
{
	for (; first != NULL; first = va_arg(*ap, const char *))
		*argv++ = (char *)(uintptr_t)first;
	*argv = NULL;
}

/* Count and get the arguments of a function that has `first` and more. */
// NOLINTBEGIN(bugprone-macro-parentheses): a parameter's name, and not a value
#define URN_EXEC_ARGS(argv, ap, first)                                       \
	va_start(ap, first);                                                 \
	argv = alloca((urn_exec_count(first, &(ap)) + 1) * sizeof(*(argv))); \
	va_end(ap);                                                          \
	va_start(ap, first);                                                 \
	urn_exec_list(argv, first, &(ap))
// NOLINTEND(bugprone-macro-parentheses)

URN_CALL int
execl(const char *path, const char *first, ...)
{
	char **argv;
	va_list ap;

	URN_EXEC_ARGS(argv, ap, first);
	va_end(ap);
	return execv(path, argv);
}

URN_CALL int
execlp(const char *file, const char *first, ...)
{
	char **argv;
	va_list ap;

	URN_EXEC_ARGS(argv, ap, first);
	va_end(ap);
	return execvp(file, argv);
}

URN_CALL int
execle(const char *path, const char *first, ...)
{
	char *const *envp;
	char **argv;
	va_list ap;

	URN_EXEC_ARGS(argv, ap, first);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, argv, envp);
}
