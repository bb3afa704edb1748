/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "host/util.h"

/* sysfs and cgroup files are small; io.stat of a host with many disks is the
 * largest. A larger file is an error.
 */
#define FILE_MAX_BYTES (4U * 1024 * 1024)

static int log_max_level = LOG_INFO;

bool endswith(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n > m && streq(s + n - m, suffix);
}

size_t strv_length(char *const *l)
{
	size_t n = 0;

	while (l && l[n])
		n++;
	return n;
}

bool strv_contains(char *const *l, const char *s)
{
	for (; l && *l; l++)
		if (streq(*l, s))
			return true;
	return false;
}

int strv_add(char ***l, const char *s)
{
	size_t n = strv_length(*l);
	char **grown, *copy = strdup(s);

	if (!copy)
		return -ENOMEM;
	grown = reallocarray(*l, n + 2, sizeof(char *));
	if (!grown) {
		free(copy);
		return -ENOMEM;
	}
	grown[n] = copy;
	grown[n + 1] = NULL;
	*l = grown;
	return 0;
}

void strv_free(char **l)
{
	for (char **s = l; s && *s; s++)
		free(*s);
	free(l);
}

int text_add(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if (t->length + n + 1 > t->size) {
		size_t size = (t->length + n + 1) * 2;
		char *p = realloc(t->p, size);

		if (!p)
			return -ENOMEM;
		t->p = p;
		t->size = size;
	}
	va_start(ap, format);
	vsnprintf(t->p + t->length, n + 1, format, ap);
	va_end(ap);
	t->length += n;
	return 0;
}

/* The number of bytes of the character at @s; 0: no valid one, or a control
 * character. Characters that D-Bus refuses are not valid: surrogates, U+FFFE and the like.
 */
static size_t plain_character(const char *s)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char c = *s;
	size_t n = c < 0x80   ? 1
		   : c < 0xc0 ? 0
		   : c < 0xe0 ? 2
		   : c < 0xf0 ? 3
		   : c < 0xf8 ? 4
			      : 0;
	uint32_t u = n == 1 ? c : c & (0x7f >> n);

	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		u = u << 6 | (s[i] & 0x3f);
	}
	if (!n || u < smallest[n] || u > 0x10ffff || (u & 0xfffe) == 0xfffe ||
	    (u >= 0xd800 && u <= 0xdfff) || (u >= 0xfdd0 && u <= 0xfdef))
		return 0;
	return u < 0x20 || (u >= 0x7f && u < 0xa0) ? 0 : n;
}

bool text_is_plain(const char *s)
{
	for (size_t n; *s; s += n) {
		n = plain_character(s);
		if (!n)
			return false;
	}
	return true;
}

/* The bytes of the plain characters at the beginning of @s, at most @max. */
static size_t plain_bytes(const char *s, size_t max)
{
	size_t length = 0;

	for (size_t n; s[length]; length += n) {
		n = plain_character(s + length);
		if (!n || length + n > max)
			break;
	}
	return length;
}

int text_add_plain(struct text *t, const char *s, size_t max_bytes)
{
	size_t left = max_bytes, n;
	int err = text_add(t, "%s", "");

	while (*s && !err) {
		n = plain_bytes(s, left);
		if (!n && (plain_character(s) ?: 1) > left)
			return text_add(t, "...");
		err = n ? text_add(t, "%.*s", (int)n, s) : text_add(t, "?");
		n = n ?: 1;
		left -= n;
		s += n;
	}
	return err;
}

char *asprintf_or_null(const char *format, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, format);
	n = vasprintf(&s, format, ap);
	va_end(ap);
	return n < 0 ? NULL : s;
}

char *format_percent(double share)
{
	/* A need of "0 %" would be none. */
	return share < 0.01 ? strdup("less than 1 %")
			    : asprintf_or_null("%.0f %%", share * 100);
}

int read_file_at(int dirfd, const char *path, char **ret)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_fd(fd, ret);
}

int read_fd(int fd, char **ret)
{
	_cleanup_free_ char *buffer = NULL;
	size_t size = 0, length = 0;

	for (;;) {
		ssize_t n;

		if (length + 1 >= size) {
			char *p;

			size = size ? size * 4 : 4096;
			if (size > FILE_MAX_BYTES)
				return -EFBIG;
			p = realloc(buffer, size);
			if (!p)
				return -ENOMEM;
			buffer = p;
		}
		n = read(fd, buffer + length, size - length - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += n;
	}
	while (length > 0 && buffer[length - 1] == '\n')
		length--;
	buffer[length] = '\0';
	*ret = TAKE_PTR(buffer);
	return 0;
}

bool path_is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

int write_all(int fd, const char *s, size_t length)
{
	while (length) {
		ssize_t n = write(fd, s, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		s += n > 0 ? n : 0;
		length -= n > 0 ? n : 0;
	}
	return 0;
}

int read_lines(int fd, int (*on_line)(char *line, void *userdata),
	       void *userdata)
{
	char buffer[16384];
	size_t length = 0;

	for (;;) {
		char *line = buffer, *end;
		ssize_t n =
			read(fd, buffer + length, sizeof(buffer) - 1 - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += n;
		while ((end = memchr(line, '\n', buffer + length - line))) {
			int r;

			*end = '\0';
			r = on_line(line, userdata);
			if (r)
				return r;
			line = end + 1;
		}
		length -= line - buffer;
		if (length == sizeof(buffer) - 1)
			return -EFBIG;
		memmove(buffer, line, length);
	}
	buffer[length] = '\0';
	return length ? on_line(buffer, userdata) : 0;
}

int parse_u64(const char *s, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno)
		return -errno;
	if (*end)
		return -EINVAL;
	*ret = v;
	return 0;
}

bool skip_devno(const char **s, dev_t *ret)
{
	const char *colon, *end;
	uint64_t high, low;

	colon = skip_u64(*s, &high);
	if (colon == *s || *colon != ':')
		return false;
	end = skip_u64(colon + 1, &low);
	if (end == colon + 1 || high > UINT32_MAX || low > UINT32_MAX)
		return false;
	*ret = makedev(high, low);
	*s = end;
	return true;
}

int parse_devno(const char *s, dev_t *ret)
{
	dev_t devno;

	if (!skip_devno(&s, &devno) || *s)
		return -EINVAL;
	*ret = devno;
	return 0;
}

static uint64_t clock_usec(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

uint64_t monotonic_usec(void)
{
	return clock_usec(CLOCK_MONOTONIC);
}

uint64_t cpu_usec(void)
{
	return clock_usec(CLOCK_THREAD_CPUTIME_ID);
}

void log_set_max_level(int level)
{
	log_max_level = level;
}

int log_get_max_level(void)
{
	return log_max_level;
}

int log_write(int level, int error, const char *format, ...)
{
	_cleanup_free_ char *message = NULL;
	va_list ap;
	int n;

	error = abs(error);
	if (level <= log_max_level) {
		errno = error;
		va_start(ap, format);
		n = vasprintf(&message, format, ap);
		va_end(ap);
		if (n < 0)
			message = NULL;
		/* journald takes the priority off; a terminal shows none. */
		if (getenv("JOURNAL_STREAM"))
			fprintf(stderr, "<%d>%s\n", level, message ?: format);
		else
			fprintf(stderr, "%s\n", message ?: format);
	}
	return -error;
}
