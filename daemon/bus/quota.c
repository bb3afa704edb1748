/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * CPU time that calls of each user may take.
 *
 * All users share one thread. Each call is charged with the time that its method took, so that no
 * list of expensive methods is needed. The account of a user is refilled as time passes; while it
 * is overdrawn, calls of the user are refused, which costs next to nothing.
 *
 * Calls that are kept (for samples, for polkit, for a child process) are limited in number.
 */

#include "bus/bus.h"
#include "bus/quota.h"

/* A quarter of the time, saved up for four seconds. */
#define SHARE 4U
#define SAVED_MAX_USEC 1000000

#define KEPT_MAX 32U

/* More users or connections than this are not active at once: the oldest entry is replaced. */
#define ACCOUNTS_MAX 64U
#define SENDERS_MAX 64U

/**
 * struct account - of a user
 * @saved_usec: CPU time that is left, negative: overdrawn
 * @refilled_usec: monotonic time of the last refill, 0: the entry is free
 * @kept: number of calls that are kept
 */
struct account {
	uid_t uid;
	int64_t saved_usec;
	uint64_t refilled_usec;
	unsigned int kept;
};

/** struct sender - user of a connection; a unique name is never given twice */
struct sender {
	char *name;
	uid_t uid;
};

struct bus_quotas {
	struct account accounts[ACCOUNTS_MAX];
	struct sender senders[SENDERS_MAX];
	unsigned int next_sender;
};

static struct bus_quotas *quotas_of(struct bus *b)
{
	if (!b->quotas)
		b->quotas = calloc(1, sizeof(*b->quotas));
	return b->quotas;
}

/* ---- users ---- */

static int query_uid(sd_bus_message *call, uid_t *ret)
{
	sd_bus_creds *creds = NULL;
	int r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds);

	if (r >= 0)
		r = sd_bus_creds_get_euid(creds, ret);
	sd_bus_creds_unref(creds);
	return r;
}

int bus_caller_uid(struct bus *b, sd_bus_message *call, uid_t *ret)
{
	const char *name = sd_bus_message_get_sender(call);
	struct bus_quotas *q = quotas_of(b);
	struct sender *s;
	uid_t uid;
	int r;

	if (!q)
		return -ENOMEM;
	for (size_t i = 0; name && i < SENDERS_MAX; i++)
		if (q->senders[i].name && streq(q->senders[i].name, name)) {
			*ret = q->senders[i].uid;
			return 0;
		}
	/* This waits for the bus, so it is done once for a connection. */
	r = query_uid(call, &uid);
	if (r < 0)
		return r;
	*ret = uid;
	s = &q->senders[q->next_sender++ % SENDERS_MAX];
	free(s->name);
	*s = (struct sender){ strdup(name ?: ""), uid };
	return 0;
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

static void refill(struct account *a, uint64_t now_usec)
{
	if (a->refilled_usec)
		a->saved_usec += (now_usec - a->refilled_usec) / SHARE;
	if (a->saved_usec > SAVED_MAX_USEC)
		a->saved_usec = SAVED_MAX_USEC;
	a->refilled_usec = now_usec;
}

/* Return: 1 with the account in @ret, 0 for root, who has none; or -errno. */
static int account_of(struct bus *b, uid_t uid, struct account **ret)
{
	struct account *a;

	if (uid == 0)
		return 0;
	a = find_account(b, uid) ?: add_account(b->quotas, uid);
	if (!a)
		return -EBUSY;
	refill(a, machine_now_usec(b->machine));
	*ret = a;
	return 1;
}

static int refuse(sd_bus_error *error)
{
	return bus_error(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
			 "Calls of this user take too much time of sutrod; try "
			 "again in a second.");
}

int bus_metered(struct bus *b, sd_bus_message *call,
		sd_bus_message_handler_t method, sd_bus_error *error)
{
	uint64_t began = cpu_usec();
	struct account *a = NULL;
	uid_t uid;
	int r = bus_caller_uid(b, call, &uid);

	if (r >= 0)
		r = account_of(b, uid, &a);
	if (r < 0)
		return r;
	if (a && a->saved_usec < 0)
		return refuse(error);
	r = method(call, b, error);
	bus_charge(b, uid, cpu_usec() - began);
	return r;
}

void bus_charge(struct bus *b, uid_t uid, uint64_t usec)
{
	struct account *a = NULL;

	if (account_of(b, uid, &a) > 0)
		a->saved_usec -= usec;
}

int bus_keep_call(struct bus *b, sd_bus_message *call, uid_t *ret,
		  sd_bus_error *error)
{
	struct account *a = NULL;
	int r = bus_caller_uid(b, call, ret);

	if (r >= 0)
		r = account_of(b, *ret, &a);
	if (r < 0)
		return r;
	if (a && a->kept >= KEPT_MAX)
		return refuse(error);
	if (a)
		a->kept++;
	return 0;
}

void bus_release_call(struct bus *b, uid_t uid)
{
	struct account *a = b->quotas ? find_account(b, uid) : NULL;

	if (a)
		a->kept--;
}

void bus_quotas_done(struct bus *b)
{
	for (size_t i = 0; b->quotas && i < SENDERS_MAX; i++)
		free(b->quotas->senders[i].name);
	free(b->quotas);
	b->quotas = NULL;
}
