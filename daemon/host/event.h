/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_EVENT_H
#define SUTRO_EVENT_H

/*
 * Changes of state that the journal identifies: each has a message id, and an entry in the
 * catalog (dist/sutro.catalog) that "journalctl -x" shows with it.
 */
enum event {
	EVENT_PROMISE_FAILS,
	EVENT_PROMISE_HOLDS,
	EVENT_POLICY_MISTAKE,
	EVENT_CAPACITY_EXCEEDED,
	EVENT_LEAF_SWITCHED,
	EVENT_LEAF_NOT_SWITCHED,
	EVENT_WEIGHT_REFUSED,
	EVENT_RESYNC_MOVED,
	EVENT_RESYNC_NOT_MOVED,
	EVENT_LATENCY_AT_LEAVES,
	EVENT_MODULE_DIFFERS,
	EVENT_WEIGHTS_TAKEN_BACK,
	EVENT_PATH_UNRESOLVED,
	EVENT_PATH_RESOLVED,
	EVENT_LOOKUP_TIMEOUT,
	EVENT_POLICY_SET,
	EVENT_POLICY_RESET,
	EVENT_LEAF_GONE,
	EVENT_SIZE_SET,
	EVENT_SIZE_NOT_SET,
	EVENT_DISK_HANGS,
	EVENT_DISK_ANSWERS,
	EVENT_CAPACITY_TWICE,
	EVENT_STARTED,
	EVENT_STOPPED,
	EVENT_RESTARTS,
	EVENT_POLICIES_RELOADED,
	EVENT_RELOADED,
	EVENT_COSTS_IGNORED,
	EVENT_LEAF_SWITCHED_BY_OTHERS,
	EVENT_CAPACITY_KEPT,
	EVENT_CONTROL_FAILED,
	EVENT_CONTROL_RESUMED,
	EVENT_WATCH_FAILED,
	EVENT_WATCHES_LIMITED,
	EVENT_COSTS_NOT_SAVED,
	EVENT_VARLINK_FAILED,
	EVENT_LOG_LEVEL_SET,
	EVENT_SLOTS_RAISED,
	EVENT_SLOTS_NOT_RAISED,
};

/** struct event_field - a field of a message in the journal, "SUTRO_UNIT" and its value */
struct event_field {
	const char *name;
	const char *value;
};

#define EVENT_FIELDS_MAX 8U
#define EVENT_FIELDS(...) ((const struct event_field[]){ __VA_ARGS__, {} })

/**
 * log_event() - log a change of state
 * @level: LOG_WARNING, LOG_INFO ...
 * @fields: up to EVENT_FIELDS_MAX, which the entry in the catalog may refer to; or NULL
 *
 * Without a journal, the message goes to standard error as any other.
 */
void log_event(enum event event, int level, const struct event_field *fields,
	       const char *format, ...) __attribute__((format(printf, 4, 5)));

/**
 * log_unwatched() - log that inotify has no watch for a file
 * @path: of the file
 * @changes: those that the periodic comparison finds instead, "changes there and ..."
 * @err: -errno
 */
void log_unwatched(const char *path, const char *changes, int err);

#endif
