/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_UTIL_H
#define SUTRO_UTIL_H

/*
 * The few helpers every file of the daemon uses: cleanup on scope exit, string
 * lists, whole-file reading, the log.
 *
 * Errors are negative errno. A ret_ argument is not touched on failure.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <syslog.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

#define DEFINE_CLEANUP(type, func)          \
	static inline void func##p(type *p) \
	{                                   \
		if (*p)                     \
			func(*p);           \
	}                                   \
	struct cleanup_needs_a_semicolon

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

#define TAKE_PTR(p)                     \
	({                              \
		__typeof__(p) _p = (p); \
		(p) = NULL;             \
		_p;                     \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/** startswith() - the rest of @s after @prefix, or NULL */
static inline const char *startswith(const char *s, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

/** endswith() - does @s end in @suffix and have something before it? */
bool endswith(const char *s, const char *suffix);

/* NULL-terminated lists of strings; NULL is the empty list. */
size_t strv_length(char *const *l);
bool strv_contains(char *const *l, const char *s);
int strv_add(char ***l, const char *s);
void strv_free(char **l);
DEFINE_CLEANUP(char **, strv_free);
#define _cleanup_strv_ _cleanup_(strv_freep)

/** struct text - a growing string; @p is NULL until something was added */
struct text {
	char *p;
	size_t size;
	size_t length;
};

int text_add(struct text *t, const char *format, ...) _printf_(2, 3);
static inline void text_freep(struct text *t)
{
	free(t->p);
}

/**
 * text_is_plain() - is it UTF-8 without control characters?
 *
 * D-Bus transports no other text, and a terminal cannot show it safely.
 */
bool text_is_plain(const char *s);

/**
 * text_add_plain() - add @s, at most @max_bytes of it, fit to be shown
 *
 * Other characters become "?", and the end of a longer text "...".
 */
int text_add_plain(struct text *t, const char *s, size_t max_bytes);

/** text_quote() - "'" around a name in a command if a shell would remove its backslashes, else "" */
static inline const char *text_quote(const char *name)
{
	return strchr(name, '\\') ? "'" : "";
}

/** asprintf_or_null() - asprintf that returns the string, NULL without memory */
char *asprintf_or_null(const char *format, ...) _printf_(1, 2);

/** format_percent() - a share as "75 %" or "less than 1 %"; to be freed, NULL: no memory */
char *format_percent(double share);

/**
 * read_file_at() - a whole small file as a string
 * @dirfd: as in openat(2)
 * @ret: the content without trailing newlines, to be freed
 */
int read_file_at(int dirfd, const char *path, char **ret);
int read_fd(int fd, char **ret);

/** path_is_link() - is there a link? One that leads nowhere is not a file that was removed */
bool path_is_link(const char *path);

/** write_all() - write all of @s, also where a write takes a part only */
int write_all(int fd, const char *s, size_t length);

/**
 * read_lines() - a file of any length, line by line
 * @on_line: gets a line without its end; a return value other than 0 ends the reading
 *
 * Return: 0, the value of @on_line, -EFBIG for a line of 16 KiB, or another -errno.
 */
int read_lines(int fd, int (*on_line)(char *line, void *userdata),
	       void *userdata);

/** parse_u64() - all of @s is a decimal number (no sign, no blanks) */
int parse_u64(const char *s, uint64_t *ret);

/**
 * skip_u64() - the number that @s begins with, 0 if there is none
 *
 * Return: the rest of the text. For files of the kernel: a number that is too large
 * wraps.
 */
static inline const char *skip_u64(const char *s, uint64_t *ret)
{
	for (*ret = 0; *s >= '0' && *s <= '9'; s++)
		*ret = *ret * 10 + (*s - '0');
	return s;
}

/** skip_devno() - parse "8:16" at the beginning of *s, and move *s behind it */
bool skip_devno(const char **s, dev_t *ret);

/** parse_devno() - parse "8:16", with nothing behind it */
int parse_devno(const char *s, dev_t *ret);

/** monotonic_usec() - the monotonic clock */
uint64_t monotonic_usec(void);

/** cpu_usec() - CPU time of this thread, which a busy machine does not inflate */
uint64_t cpu_usec(void);

#define WEIGHT_MIN 1U
#define WEIGHT_MAX 10000U
#define WEIGHT_DEFAULT 100U

static inline bool weight_is_valid(uint64_t w)
{
	return w >= WEIGHT_MIN && w <= WEIGHT_MAX;
}

/* The log goes to standard error with journal priorities; see sd-daemon(3). */
void log_set_max_level(int level);
int log_get_max_level(void);
int log_write(int level, int error, const char *format, ...) _printf_(3, 4);

#define log_debug(...) log_write(LOG_DEBUG, 0, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, 0, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, 0, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERR, 0, __VA_ARGS__)
/* With an errno value: %m in the format is its text; returns -error. */
#define log_debug_errno(e, ...) log_write(LOG_DEBUG, e, __VA_ARGS__)
#define log_warning_errno(e, ...) log_write(LOG_WARNING, e, __VA_ARGS__)
#define log_error_errno(e, ...) log_write(LOG_ERR, e, __VA_ARGS__)
#define log_oom() log_write(LOG_ERR, ENOMEM, "Out of memory.")

#endif
