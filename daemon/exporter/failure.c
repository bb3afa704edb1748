/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Why sutrod does not answer: a word for the label of sutro_down_info, a sentence for the log, and
 * a remedy. The words are those of Documentation/man/sutro-exporter.1.
 */

#include "exporter/state.h"

#define ADDRESS "DBUS_SYSTEM_BUS_ADDRESS"
#define NO_ANSWER "no-answer"

/* The last part of the name of a D-Bus error, and its reason. */
static const struct {
	const char *name;
	const char *reason;
} reasons[] = {
	{ "AccessDenied", "not-permitted" },
	{ "AuthFailed", "not-permitted" },
	{ "InteractiveAuthorizationRequired", "not-permitted" },
	{ "UnknownMethod", "too-old" },
	{ "ServiceUnknown", "not-running" },
	{ "NameHasNoOwner", "not-running" },
	{ "Disconnected", "not-running" },
	{ "NoReply", "not-running" },
};

void failure_done(struct failure *f)
{
	free(f->message);
	free(f->hint);
	*f = (struct failure){};
}

/* Take the texts; NULL is a lack of memory. */
static int fill(struct failure *ret, const char *reason, char *message,
		char *hint)
{
	*ret = (struct failure){ reason, message, hint };
	if (message && hint)
		return 0;
	failure_done(ret);
	return -ENOMEM;
}

int failure_of_bus(int err, struct failure *ret)
{
	const char *address = getenv(ADDRESS);
	const char *where = address ?: "its usual place";
	const char *reason = "bus-unavailable";

	if (err == -ENOMEM)
		return err;
	/* It accepted the connection, and then closed it. */
	if (err == -ECONNRESET || err == -ENOTCONN || err == -EPIPE)
		return fill(ret, reason,
			    asprintf_or_null("the system bus at %s closed the "
					     "connection of user %u",
					     where, getuid()),
			    strdup("see: journalctl -u dbus; dbus-daemon "
				   "refuses users of DynamicUser="));
	return fill(ret, reason,
		    asprintf_or_null("there is no system bus at %s (%s)", where,
				     strerror(-err)),
		    asprintf_or_null("%s%s%s",
				     err == -EINVAL ? ""
						    : "start it: systemctl "
						      "start dbus",
				     address && err != -EINVAL ? ", or " : "",
				     address ? "correct " ADDRESS : ""));
}

/* The reason of an error with the name @name, NULL: none of those that have a word. */
static const char *reason_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(reasons); i++)
		if (streq(dot + 1, reasons[i].name))
			return reasons[i].reason;
	return NULL;
}

int failure_of_call(const char *member, const sd_bus_error *error,
		    struct failure *ret)
{
	const char *reason = reason_of(error->name);
	const char *text = error->message ?: error->name;

	if (strstr(error->name, ".Spawn.") ||
	    startswith(error->name, "org.freedesktop.systemd1"))
		return fill(ret, "not-running",
			    asprintf_or_null("sutrod could not be started: %s",
					     text),
			    strdup("see: systemctl status sutrod"));
	if (!reason)
		return fill(ret, "error",
			    asprintf_or_null("sutrod answered: %s", text),
			    strdup("see: journalctl -u sutrod -n 20"));
	if (streq(reason, "not-permitted"))
		return fill(ret, reason,
			    asprintf_or_null("sutrod does not permit this: %s",
					     text),
			    strdup("see: journalctl -u dbus -n 20"));
	if (streq(reason, "too-old"))
		return fill(ret, reason,
			    asprintf_or_null("the running sutrod has no %s: it "
					     "is older than this program",
					     member),
			    strdup("start the new one: systemctl restart "
				   "sutrod"));
	return fill(ret, reason, strdup("sutrod is not running"),
		    strdup("start it: systemctl start sutrod"));
}

int failure_of_timeout(struct failure *ret)
{
	return fill(ret, NO_ANSWER,
		    asprintf_or_null("sutrod did not answer within %llu s",
				     STATE_TIMEOUT_USEC / 1000000),
		    strdup("see: systemctl status sutrod"));
}

bool failure_is_timeout(const struct failure *f)
{
	return f->reason && streq(f->reason, NO_ANSWER);
}

int failure_of_reply(struct failure *ret)
{
	return fill(ret, "error",
		    strdup("sutrod answered with values of other types"),
		    strdup("start the sutrod of this version: systemctl "
			   "restart sutrod"));
}
