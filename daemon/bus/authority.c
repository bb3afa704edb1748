/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Authorization of calls that change something. Root may; for other callers, polkit
 * decides, without waiting: the call is kept, and the answer runs or refuses it.
 */

#include "bus/authority.h"
#include "bus/quota.h"

#define POLKIT "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE POLKIT ".Authority"
#define POLKIT_ALLOW_INTERACTION 1U
#define WITHOUT_POLKIT                                              \
	"polkitd, which permits it to other users than root, does " \
	"not run (package polkitd)"

/* The time to type a password. Without interaction polkit has the default time of sd-bus, 25 s. */
#define INTERACTION_USEC (300 * 1000000ULL)

/** struct bus_authorization - a call that waits for polkit; @question: to polkit */
struct bus_authorization {
	struct bus *bus;
	sd_bus_message *call;
	struct kept kept;
	const char *action;
	bus_method_t change;
	sd_bus_slot *question;
	struct bus_authorization *next;
};

static void authorization_free(struct bus_authorization *a)
{
	struct bus_authorization **at = &a->bus->authorizations;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	bus_release_call(a->bus, &a->kept);
	sd_bus_slot_unref(a->question);
	sd_bus_message_unref(a->call);
	free(a);
}

void bus_drop_authorizations(struct bus *b)
{
	while (b->authorizations)
		authorization_free(b->authorizations);
}

static int refuse(sd_bus_error *error, const char *action, const char *why)
{
	return bus_error(error, SD_BUS_ERROR_ACCESS_DENIED,
			 "Not authorized for %s: %s. Root always is.", action,
			 why);
}

static int run(struct bus_authorization *a, sd_bus_error *error)
{
	uint64_t began = cpu_usec();
	uid_t uid = a->kept.uid;
	int r;

	bus_remember_caller(a->bus, a->call, uid);
	/* The method may keep it again. */
	bus_release_call(a->bus, &a->kept);
	r = a->change(a->bus, a->call, error);
	bus_charge(a->bus, uid, cpu_usec() - began);
	return r;
}

/* Without polkitd, only root may make such calls. */
static const char *polkit_failure(const sd_bus_error *e)
{
	bool is_missing =
		sd_bus_error_has_name(e, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
		sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
		startswith(e->name, "org.freedesktop.DBus.Error.Spawn.") ||
		startswith(e->name, "org.freedesktop.systemd1.");

	return is_missing ? WITHOUT_POLKIT : e->message;
}

static int on_polkit(sd_bus_message *reply, void *userdata,
		     sd_bus_error *unused)
{
	struct bus_authorization *a = userdata;
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	const sd_bus_error *e = sd_bus_message_get_error(reply);
	int allowed = false, challenge = false, r;

	if (e) {
		r = refuse(&error, a->action, polkit_failure(e));
	} else {
		r = sd_bus_message_enter_container(reply, 'r', "bba{ss}");
		if (r >= 0)
			r = sd_bus_message_read(reply, "bb", &allowed,
						&challenge);
		if (r >= 0 && !allowed)
			r = refuse(&error, a->action,
				   challenge ? "a password is needed"
					     : "polkit denied it");
		if (r >= 0)
			r = run(a, &error);
	}
	if (r < 0)
		sd_bus_reply_method_errno(a->call, r, &error);
	authorization_free(a);
	return 0;
}

/* Rules read them with action.lookup("unit"); dialogs show the message. */
static int append_details(sd_bus_message *m, const sd_bus_message *call,
			  const char *unit)
{
	int r = sd_bus_message_open_container(m, 'a', "{ss}");

	if (r >= 0)
		r = sd_bus_message_append(
			m, "{ss}", "method",
			sd_bus_message_get_member((sd_bus_message *)call));
	if (r >= 0 && unit)
		r = sd_bus_message_append(
			m, "{ss}{ss}", "unit", unit, "polkit.message",
			"Authentication is required to change I/O promises of "
			"$(unit).");
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int send_question(struct bus_authorization *a, const char *unit,
			 bool interactive)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	int r = sd_bus_message_new_method_call(a->bus->connection, &m, POLKIT,
					       POLKIT_PATH, POLKIT_INTERFACE,
					       "CheckAuthorization");

	if (r >= 0)
		r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1,
					  "name", "s",
					  sd_bus_message_get_sender(a->call),
					  a->action);
	if (r >= 0)
		r = append_details(m, a->call, unit);
	if (r >= 0)
		r = sd_bus_message_append(
			m, "us", interactive ? POLKIT_ALLOW_INTERACTION : 0U,
			"");
	return r < 0 ? r
		     : sd_bus_call_async(a->bus->connection, &a->question, m,
					 on_polkit, a,
					 interactive ? INTERACTION_USEC : 0);
}

int bus_with_authority(struct bus *b, sd_bus_message *call, const char *action,
		       const char *unit, bus_method_t change,
		       sd_bus_error *error)
{
	struct bus_authorization *a;
	struct kept kept;
	bool interactive;
	uid_t uid;
	int r;

	if (bus_caller_uid(b, call, &uid) >= 0 && uid == 0)
		return change(b, call, error);
	interactive = sd_bus_message_get_allow_interactive_authorization(call) >
		      0;
	r = bus_keep_call(b, call, &kept, error);
	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a) {
		bus_release_call(b, &kept);
		return -ENOMEM;
	}
	*a = (struct bus_authorization){ .bus = b,
					 .call = sd_bus_message_ref(call),
					 .kept = kept,
					 .action = action,
					 .change = change,
					 .next = b->authorizations };
	b->authorizations = a;
	r = send_question(a, unit, interactive);
	if (r < 0) {
		authorization_free(a);
		return refuse(error, action, "polkit does not answer");
	}
	return 1;
}
