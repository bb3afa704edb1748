/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * CPU time that calls of each user may take.
 *
 * All users share one thread. Each call is charged with the time that its method took, so that no
 * list of expensive methods is needed. The account of a user is refilled as time passes; while it
 * is overdrawn, calls of the user are refused, which costs next to nothing. All users other than root
 * have an account in common besides, because one user may have many user IDs (/etc/subuid).
 *
 * The samples that some calls start are charged to the users of these calls, in equal parts.
 *
 * Calls that are kept (for samples, for polkit, for a child process) are limited in number and in
 * bytes: the bus takes arguments of 32 MiB.
 *
 * A connection that reads no replies fills the bus with them, and then the bus takes no more. So all
 * calls are refused while many replies wait for the bus. While many refusals wait, calls have no
 * reply at all. This holds for all users but root, because the replies of all wait in one queue, and
 * for the calls that sd-bus answers by itself. Requests to systemd have a connection of their own.
 *
 * The user of a connection is known to the bus. Its first calls wait for the answer of the bus, and
 * the daemon does not.
 */

#include <search.h>
#include <sys/queue.h>

#include "bus/bus.h"
#include "bus/quota.h"
#include "bus/size.h"

/* A user has a quarter of the CPU time, and saves it up for four seconds at most. */
#define SHARE 4U
#define SAVED_MAX_USEC 1000000
/* All users other than root have half of it. */
#define COMMON_SHARE 2U
#define COMMON_SAVED_MAX_USEC 2000000

/* Of an overdrawn account, a call each second goes on. */
#define OVERDRAWN_CALL_USEC 1000000U

#define KEPT_MAX 32U
/* Bytes of calls that are kept. A single call may have more: the bus limits it. */
#define KEPT_BYTES_MAX (8U << 20)
#define COMMON_KEPT_BYTES_MAX (64U << 20)

/* Messages that wait for the bus to take them: calls are refused, and are dropped. */
#define QUEUED_MAX 32U
#define QUEUED_REFUSALS_MAX 1024U

/* More users are hardly active at once: a further one takes the entry used longest ago. */
#define ACCOUNTS_MAX 64U
/* dbus-daemon allows a user this many connections. */
#define SENDERS_MAX 256U
/* While the bus is looking up the users of more connections, one call of each is kept only. The
 * number of connections has no limit here, for one may be root's: it is that of the connections
 * whose first calls wait in the bus, before its first answer.
 */
#define LOOKUPS_OF_CALLS_MAX 64U
/* Bytes of all of them. Beyond these, a call with more than some arguments is refused: it may be
 * root's, but it waits for no other one.
 */
#define LOOKED_UP_BYTES_MAX COMMON_KEPT_BYTES_MAX
#define LOOKED_UP_BYTES_SMALL (64U << 10)

#define DRIVER "org.freedesktop.DBus"
#define DRIVER_PATH "/org/freedesktop/DBus"

/**
 * struct account - of a user
 * @saved_usec: CPU time that is left, negative: overdrawn
 * @refilled_usec: monotonic time of the last refill, 0: the entry is free
 * @kept: number of calls that are kept
 * @kept_bytes: that they have
 * @sampled_until_usec: the user pays for samples until then
 * @called_usec: the last call that went on although the account was overdrawn
 */
struct account {
	uid_t uid;
	int64_t saved_usec;
	uint64_t refilled_usec;
	unsigned int kept;
	size_t kept_bytes;
	uint64_t sampled_until_usec;
	uint64_t called_usec;
};

/** struct sender - user of a connection; a unique name is never given twice */
struct sender {
	char *name;
	uid_t uid;
};

struct senders {
	struct sender list[SENDERS_MAX];
	unsigned int next;
};

/** struct looked_up - a call that is run when the user is known */
struct looked_up {
	sd_bus_message *call;
	size_t bytes;
	sd_bus_message_handler_t method;
};

/**
 * struct lookup - the calls of a connection until the bus has named its user, in their order
 * @sender: a part of the first call
 */
struct lookup {
	struct bus *bus;
	TAILQ_ENTRY(lookup) list;
	const char *sender;
	sd_bus_slot *slot;
	struct looked_up *calls;
	size_t n_calls;
};

/**
 * struct bus_quotas - of all users
 * @common: of all users other than root
 * @root_sampled_until_usec: root pays its part of samples until then, from no account
 * @root, @others: connections; those of others take no entries from root
 * @index: @lookups by sender
 * @looked_up_bytes: of the calls in @lookups
 */
struct bus_quotas {
	struct account accounts[ACCOUNTS_MAX];
	struct account common;
	uint64_t root_sampled_until_usec;
	struct senders root;
	struct senders others;
	TAILQ_HEAD(, lookup) lookups;
	void *index;
	unsigned int n_lookups;
	size_t looked_up_bytes;
};

static struct bus_quotas *quotas_of(struct bus *b)
{
	if (b->quotas)
		return b->quotas;
	b->quotas = calloc(1, sizeof(*b->quotas));
	if (!b->quotas)
		return NULL;
	b->quotas->common.saved_usec = COMMON_SAVED_MAX_USEC;
	TAILQ_INIT(&b->quotas->lookups);
	return b->quotas;
}

/* ---- users ---- */

static const struct sender *find_sender(const struct senders *l,
					const char *name)
{
	for (size_t i = 0; i < SENDERS_MAX; i++)
		if (l->list[i].name && streq(l->list[i].name, name))
			return &l->list[i];
	return NULL;
}

int bus_caller_uid(struct bus *b, sd_bus_message *call, uid_t *ret)
{
	const char *name = sd_bus_message_get_sender(call);
	struct bus_quotas *q = quotas_of(b);
	const struct sender *s;

	if (!q)
		return -ENOMEM;
	if (!name)
		return -ENODATA;
	s = find_sender(&q->root, name) ?: find_sender(&q->others, name);
	if (!s)
		return -ENODATA;
	*ret = s->uid;
	return 0;
}

static void add_sender(struct bus_quotas *q, const char *name, uid_t uid)
{
	struct senders *l = uid == 0 ? &q->root : &q->others;
	struct sender *s = &l->list[l->next++ % SENDERS_MAX];

	free(s->name);
	*s = (struct sender){ strdup(name), uid };
}

void bus_remember_caller(struct bus *b, sd_bus_message *call, uid_t uid)
{
	uid_t known;

	if (bus_caller_uid(b, call, &known) == -ENODATA)
		add_sender(b->quotas, sd_bus_message_get_sender(call), uid);
}

/* ---- accounts ---- */

static struct account *add_account(struct bus_quotas *q, uid_t uid)
{
	struct account *oldest = NULL;

	for (size_t i = 0; i < ACCOUNTS_MAX; i++) {
		struct account *a = &q->accounts[i];

		if (!a->kept &&
		    (!oldest || a->refilled_usec < oldest->refilled_usec))
			oldest = a;
	}
	if (oldest)
		*oldest = (struct account){ .uid = uid,
					    .saved_usec = SAVED_MAX_USEC };
	return oldest;
}

static struct account *find_account(struct bus *b, uid_t uid)
{
	struct bus_quotas *q = b->quotas;

	for (size_t i = 0; i < ACCOUNTS_MAX; i++)
		if (q->accounts[i].refilled_usec && q->accounts[i].uid == uid)
			return &q->accounts[i];
	return NULL;
}

static void refill(struct account *a, uint64_t now_usec, unsigned int share,
		   int64_t max_usec)
{
	if (a->refilled_usec)
		a->saved_usec += (now_usec - a->refilled_usec) / share;
	if (a->saved_usec > max_usec)
		a->saved_usec = max_usec;
	a->refilled_usec = now_usec;
}

/* Return: 1 with the account in @ret; 0 for root, which has no account; or -errno. */
static int account_of(struct bus *b, uid_t uid, struct account **ret)
{
	uint64_t now_usec = machine_now_usec(b->machine);
	struct account *a;

	if (uid == 0)
		return 0;
	a = find_account(b, uid) ?: add_account(b->quotas, uid);
	if (!a)
		return -EBUSY;
	refill(a, now_usec, SHARE, SAVED_MAX_USEC);
	refill(&b->quotas->common, now_usec, COMMON_SHARE,
	       COMMON_SAVED_MAX_USEC);
	*ret = a;
	return 1;
}

static bool is_overdrawn(const struct bus *b, const struct account *a)
{
	return a && (a->saved_usec < 0 || b->quotas->common.saved_usec < 0);
}

static int refuse(sd_bus_error *error)
{
	return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
			 "Calls of this user take too much time of sutrod; try "
			 "again in a second.");
}

static int refuse_crowd(sd_bus_error *error)
{
	return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
			 "Too many programs call sutrod for the first time; "
			 "try again in a second.");
}

static int run_metered(struct bus *b, sd_bus_message *call, uid_t uid,
		       sd_bus_message_handler_t method, sd_bus_error *error)
{
	uint64_t began = cpu_usec();
	struct account *a = NULL;
	int r = account_of(b, uid, &a);

	if (r < 0)
		return r;
	if (a && a->saved_usec < 0)
		return refuse(error);
	if (is_overdrawn(b, a))
		return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
				 "Calls of all users other than root take too "
				 "much time of sutrod; try again in a second.");
	r = method(call, b, error);
	bus_charge(b, uid, cpu_usec() - began);
	return r;
}

/* Messages that wait for the bus and count for this call. A caller that is not known yet may be root:
 * for it, questions about users do not count, for the bus takes them without help of a program.
 */
static int count_queued(struct bus *b, sd_bus_message *call, uint64_t *ret)
{
	const struct bus_quotas *q = quotas_of(b);
	uid_t uid;
	int known = bus_caller_uid(b, call, &uid);
	int r = sd_bus_get_n_queued_write(sd_bus_message_get_bus(call), ret);

	if (r < 0)
		return r;
	if (known >= 0 && uid == 0)
		*ret = 0;
	else if (known == -ENODATA && q)
		*ret -= *ret < q->n_lookups ? *ret : q->n_lookups;
	return 0;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct bus *b = userdata;
	uint64_t queued;

	if (!sd_bus_message_is_method_call(m, NULL, NULL) ||
	    count_queued(b, m, &queued) < 0 || queued < QUEUED_MAX)
		return 0;
	if (queued >= QUEUED_REFUSALS_MAX)
		return 1;
	return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
			 "Too many replies wait for the system bus, because "
			 "a program does not read its own; try again later.");
}

int bus_limit_replies(struct bus *b)
{
	return sd_bus_add_filter(b->connection, NULL, on_message, b);
}

/* ---- calls of connections whose user is not known yet ---- */

static int by_sender(const void *a, const void *b)
{
	return strcmp(((const struct lookup *)a)->sender,
		      ((const struct lookup *)b)->sender);
}

static struct lookup *find_lookup(struct bus_quotas *q, const char *sender)
{
	struct lookup key = { .sender = sender }, **found;

	found = tfind(&key, &q->index, by_sender);
	return found ? *found : NULL;
}

static int add_call(struct lookup *l, sd_bus_message *call,
		    sd_bus_message_handler_t method, sd_bus_error *error)
{
	struct bus_quotas *q = l->bus->quotas;
	struct looked_up *calls;
	size_t bytes;
	int r;

	if (l->n_calls >= KEPT_MAX)
		return refuse(error);
	if (l->n_calls && q->n_lookups > LOOKUPS_OF_CALLS_MAX)
		return refuse_crowd(error);
	r = bus_message_bytes(call, LOOKED_UP_BYTES_MAX, &bytes);
	if (r < 0)
		return r;
	if (q->looked_up_bytes && bytes > LOOKED_UP_BYTES_SMALL &&
	    q->looked_up_bytes + bytes > LOOKED_UP_BYTES_MAX)
		return refuse_crowd(error);
	calls = reallocarray(l->calls, l->n_calls + 1, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	l->calls = calls;
	l->calls[l->n_calls++] =
		(struct looked_up){ sd_bus_message_ref(call), bytes, method };
	q->looked_up_bytes += bytes;
	return 1;
}

static void lookup_free(void *userdata)
{
	struct lookup *l = userdata;
	struct bus_quotas *q = l->bus->quotas;

	tdelete(l, &q->index, by_sender);
	TAILQ_REMOVE(&q->lookups, l, list);
	q->n_lookups--;
	sd_bus_slot_unref(l->slot);
	for (size_t i = 0; i < l->n_calls; i++) {
		q->looked_up_bytes -= l->calls[i].bytes;
		sd_bus_message_unref(l->calls[i].call);
	}
	free(l->calls);
	free(l);
}

static int on_uid(sd_bus_message *reply, void *userdata, sd_bus_error *unused)
{
	struct lookup *l = userdata;
	const sd_bus_error *failed = sd_bus_message_get_error(reply);
	uint32_t uid = 0;
	int known = failed ? -sd_bus_error_get_errno(failed)
			   : sd_bus_message_read(reply, "u", &uid);

	if (known >= 0)
		add_sender(l->bus->quotas, l->sender, uid);
	for (size_t i = 0; i < l->n_calls; i++) {
		_cleanup_(sd_bus_error_free)
			sd_bus_error error = SD_BUS_ERROR_NULL;
		sd_bus_message *call = l->calls[i].call;
		int r = known;

		if (r >= 0)
			r = run_metered(l->bus, call, uid, l->calls[i].method,
					&error);
		if (r < 0)
			sd_bus_reply_method_errno(call, r, &error);
	}
	lookup_free(l);
	return 0;
}

/* The bus always answers, late when it is busy: no time limit. */
static int get_uid(struct lookup *l)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	sd_bus *connection = l->bus->connection;
	int r;

	r = sd_bus_message_new_method_call(connection, &m, DRIVER, DRIVER_PATH,
					   DRIVER, "GetConnectionUnixUser");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", l->sender);
	return r < 0 ? r
		     : sd_bus_call_async(connection, &l->slot, m, on_uid, l,
					 UINT64_MAX);
}

/* The daemon does not wait for the answer. */
static int look_up(struct bus *b, sd_bus_message *call,
		   sd_bus_message_handler_t method, sd_bus_error *error)
{
	const char *sender = sd_bus_message_get_sender(call);
	struct bus_quotas *q = quotas_of(b);
	struct lookup *l;
	int r;

	if (!q || !sender)
		return q ? -EINVAL : -ENOMEM;
	l = find_lookup(q, sender);
	if (l)
		return add_call(l, call, method, error);
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct lookup){ .bus = b, .sender = sender };
	if (!tsearch(l, &q->index, by_sender)) {
		free(l);
		return -ENOMEM;
	}
	TAILQ_INSERT_TAIL(&q->lookups, l, list);
	q->n_lookups++;
	r = add_call(l, call, method, error);
	if (r >= 0)
		r = get_uid(l);
	if (r < 0)
		lookup_free(l);
	return r < 0 ? r : 1;
}

int bus_metered(struct bus *b, sd_bus_message *call,
		sd_bus_message_handler_t method, sd_bus_error *error)
{
	uid_t uid;
	int r = bus_caller_uid(b, call, &uid);

	if (r == -ENODATA)
		return look_up(b, call, method, error);
	return r < 0 ? r : run_metered(b, call, uid, method, error);
}

int bus_check_account(struct bus *b, uid_t uid)
{
	struct account *a = NULL;
	int r = quotas_of(b) ? account_of(b, uid, &a) : -ENOMEM;

	if (r < 0)
		return r;
	return is_overdrawn(b, a) ? -EBUSY : 0;
}

bool bus_call_waits(struct bus *b, uid_t uid)
{
	uint64_t now_usec = machine_now_usec(b->machine);
	struct account *a;

	if (bus_check_account(b, uid) >= 0)
		return false;
	a = find_account(b, uid);
	if (!a || now_usec - a->called_usec < OVERDRAWN_CALL_USEC)
		return true;
	a->called_usec = now_usec;
	return false;
}

void bus_charge(struct bus *b, uid_t uid, uint64_t usec)
{
	struct account *a = NULL;

	if (account_of(b, uid, &a) <= 0)
		return;
	a->saved_usec -= usec;
	b->quotas->common.saved_usec -= usec;
}

void bus_share_samples(struct bus *b, uid_t uid, uint64_t until_usec)
{
	struct account *a = NULL;
	int r = account_of(b, uid, &a);

	if (r > 0)
		a->sampled_until_usec = until_usec;
	else if (r == 0)
		b->quotas->root_sampled_until_usec = until_usec;
}

void bus_charge_samples(struct bus *b, uint64_t usec)
{
	uint64_t now_usec = machine_now_usec(b->machine);
	const struct bus_quotas *q = quotas_of(b);
	uint64_t n;

	if (!q)
		return;
	n = q->root_sampled_until_usec > now_usec;
	for (size_t i = 0; i < ACCOUNTS_MAX; i++)
		n += q->accounts[i].sampled_until_usec > now_usec;
	for (size_t i = 0; i < ACCOUNTS_MAX; i++)
		if (q->accounts[i].sampled_until_usec > now_usec)
			bus_charge(b, q->accounts[i].uid, usec / n);
}

static bool has_room(const struct account *a, size_t bytes, size_t max)
{
	return !a->kept || a->kept_bytes + bytes <= max;
}

static void add_kept(struct account *a, int n, const struct kept *kept)
{
	a->kept += n;
	a->kept_bytes += n * kept->bytes;
}

int bus_keep_call(struct bus *b, sd_bus_message *call, struct kept *ret,
		  sd_bus_error *error)
{
	struct account *a = NULL;
	int r;

	*ret = (struct kept){};
	r = bus_caller_uid(b, call, &ret->uid);
	if (r >= 0)
		r = account_of(b, ret->uid, &a);
	if (r <= 0)
		return r;
	if (a->kept >= KEPT_MAX)
		return refuse(error);
	r = bus_message_bytes(call, COMMON_KEPT_BYTES_MAX, &ret->bytes);
	if (r < 0)
		return r;
	if (!has_room(a, ret->bytes, KEPT_BYTES_MAX) ||
	    !has_room(&b->quotas->common, ret->bytes, COMMON_KEPT_BYTES_MAX))
		return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
				 "The arguments of calls that wait for their "
				 "replies are too large together; try again in "
				 "a second.");
	add_kept(a, 1, ret);
	add_kept(&b->quotas->common, 1, ret);
	return 0;
}

void bus_release_call(struct bus *b, struct kept *kept)
{
	struct account *a = b->quotas ? find_account(b, kept->uid) : NULL;

	if (!a)
		return;
	add_kept(a, -1, kept);
	add_kept(&b->quotas->common, -1, kept);
	*kept = (struct kept){};
}

void bus_quotas_done(struct bus *b)
{
	struct lookup *l;

	while (b->quotas && (l = TAILQ_FIRST(&b->quotas->lookups)))
		lookup_free(l);
	for (size_t i = 0; b->quotas && i < SENDERS_MAX; i++) {
		free(b->quotas->root.list[i].name);
		free(b->quotas->others.list[i].name);
	}
	free(b->quotas);
	b->quotas = NULL;
}
