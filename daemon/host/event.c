// SPDX-License-Identifier: LGPL-2.1-or-later

/* Messages in the journal with an id and fields, see event.h. */

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "host/event.h"
#include "host/util.h"

#define JOURNAL "/run/systemd/journal/socket"

/* The ids of dist/sutro.catalog. */
static const char *const ids[] = {
	[EVENT_PROMISE_FAILS] = "675631796b7b48fc924f9eefb133a4d2",
	[EVENT_PROMISE_HOLDS] = "b58b79105bcc456ead91d0bb75e84ac3",
	[EVENT_POLICY_MISTAKE] = "b16564f493cb42bbaa49929cba75ddb0",
	[EVENT_CAPACITY_EXCEEDED] = "85b46d7b842844fab435a1f5490acd4b",
	[EVENT_LEAF_SWITCHED] = "0f22d51bf84b47ff9711331e4731a114",
	[EVENT_LEAF_NOT_SWITCHED] = "814fa2f3e2294e80bf257c799cc0830d",
	[EVENT_WEIGHT_REFUSED] = "5f98a0bcc1a3454fb71612227f2fb0cc",
	[EVENT_RESYNC_MOVED] = "93bfa09bdd4b42b4bc19edf367f88588",
	[EVENT_RESYNC_NOT_MOVED] = "80fe02145c5c482cb8e24e633ee4f361",
	[EVENT_LATENCY_AT_LEAVES] = "9670436e411b46bbb35a710cce11886f",
	[EVENT_MODULE_DIFFERS] = "1e77ac3eb2914800adf82ba11072a324",
	[EVENT_WEIGHTS_TAKEN_BACK] = "08a07eb35ae240f7b33512fd167551bf",
	[EVENT_PATH_UNRESOLVED] = "81133afa369d4b50a46dd271f72642a3",
	[EVENT_PATH_RESOLVED] = "a71a033ca875448a9d0efd037d723c3e",
	[EVENT_LOOKUP_TIMEOUT] = "1a1279ea571b442bb6d1dceaa1d302ad",
	[EVENT_POLICY_SET] = "288603bce4d74150bb59e1e4870c948f",
	[EVENT_POLICY_RESET] = "1fd21cf31ce649b8967c49f7a16a8177",
	[EVENT_LEAF_GONE] = "d7bd5bc919504ab095c0107c1bf7e88f",
	[EVENT_SIZE_SET] = "2481a7ea26504ef6a24caff24aeea26b",
	[EVENT_SIZE_NOT_SET] = "8a9810c733f74c74851a83a8b1b10ac4",
	[EVENT_DISK_HANGS] = "f55ec5dc2c584bb0b9ab77f8d9c4a952",
	[EVENT_DISK_ANSWERS] = "7bce3a4fb7b249e7ae4e7b00bc9172cd",
	[EVENT_CAPACITY_TWICE] = "11744e59b6ac4cfd91b38f2fa95e8b97",
	[EVENT_STARTED] = "45b0cd7b22164c7690df47279cd179e4",
	[EVENT_STOPPED] = "6e13f2f84f7b4bf5a1786d2aabc31ae9",
	[EVENT_RESTARTS] = "80134e4104a544a78f0dfe89e300b410",
	[EVENT_POLICIES_RELOADED] = "5e2725a39ff94cef9e63c38d368f10fb",
	[EVENT_RELOADED] = "31817baef67c461e93e5a0e353dd0101",
	[EVENT_COSTS_IGNORED] = "f9a9d810c6364f06b3fb9ff23525c696",
	[EVENT_LEAF_SWITCHED_BY_OTHERS] = "63a7f2567a9b41a885ca28491d17d5c3",
	[EVENT_CAPACITY_KEPT] = "2cc69027291b4140ac0d30e46ba51a59",
	[EVENT_CONTROL_FAILED] = "b91d6208e2414920ac99f87c556f7349",
	[EVENT_CONTROL_RESUMED] = "64047584aeb44f27a5c53386c9e8b624",
	[EVENT_WATCH_FAILED] = "a198b4c3c90f445692ce6811d6e9ea3a",
	[EVENT_WATCHES_LIMITED] = "3d2b51289d1c4df9a0db57e430f6700a",
	[EVENT_COSTS_NOT_SAVED] = "39be9cc8f1b64a1b8f6dbcbae79ef7b8",
	[EVENT_VARLINK_FAILED] = "3fb15eecd7824a1fac383be96c10b8a3",
	[EVENT_LOG_LEVEL_SET] = "7c06c4442e204fb6922f03f486acc3ba",
	[EVENT_SLOTS_RAISED] = "b8673728f552468997cc99061562e96d",
	[EVENT_SLOTS_NOT_RAISED] = "36bc813a711a4f63ae6aace14163fa8b",
};

/* Name, newline, size of the value, value, newline: any value has this form. */
#define FIELD_PARTS 5U

static struct iovec part(const void *p, size_t size)
{
	return (struct iovec){ (void *)p, size };
}

/* A child has closed the socket that libsystemd keeps, so each message has a socket of its own. */
static int send_parts(struct iovec *parts, size_t n)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = JOURNAL };
	const struct msghdr message = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = parts,
		.msg_iovlen = n,
	};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

static int send_event(enum event event, int level,
		      const struct event_field *fields, const char *text)
{
	const char priority[] = { (char)('0' + level), '\0' };
	struct event_field all[4 + EVENT_FIELDS_MAX] = {
		{ "MESSAGE_ID", ids[event] },
		{ "PRIORITY", priority },
		{ "SYSLOG_IDENTIFIER", program_invocation_short_name },
		{ "MESSAGE", text },
	};
	struct iovec parts[ARRAY_SIZE(all) * FIELD_PARTS];
	uint64_t sizes[ARRAY_SIZE(all)];
	size_t n_all = 4, n = 0;

	for (; fields && fields->name; fields++)
		all[n_all++] = *fields;
	for (size_t i = 0; i < n_all; i++) {
		const char *value = all[i].value ?: "";
		size_t size = strlen(value);

		sizes[i] = htole64(size);
		parts[n++] = part(all[i].name, strlen(all[i].name));
		parts[n++] = part("\n", 1);
		parts[n++] = part(&sizes[i], sizeof(sizes[i]));
		parts[n++] = part(value, size);
		parts[n++] = part("\n", 1);
	}
	return send_parts(parts, n);
}

void log_event(enum event event, int level, const struct event_field *fields,
	       const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	if (level > log_get_max_level())
		return;
	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		log_oom();
	} else if (!getenv("JOURNAL_STREAM") ||
		   send_event(event, level, fields, text) < 0) {
		log_write(level, 0, "%s", text);
	}
}

void log_unwatched(const char *path, const char *changes, int err)
{
	const char *remedy =
		err == -ENOSPC
			? "; raise fs.inotify.max_user_watches, see sysctl(8)"
			: "";

	log_event(
		EVENT_WATCH_FAILED, LOG_WARNING,
		EVENT_FIELDS({ "SUTRO_FILE", path }),
		"Cannot watch %s, %s are found by the periodic comparison: %s%s",
		path, changes, strerror(-err), remedy);
}
