/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_QUOTA_H
#define SUTRO_QUOTA_H

#include <stdbool.h>
#include <systemd/sd-bus.h>

struct bus;

/**
 * bus_metered() - run a method on account of its caller
 *
 * Calls of a user other than root may take a quarter of the time of the daemon, over some seconds, and
 * calls of all such users half of it; then they are refused for a while.
 */
int bus_metered(struct bus *b, sd_bus_message *call,
		sd_bus_message_handler_t method, sd_bus_error *error);

/**
 * bus_limit_replies() - refuse calls while many replies wait for the bus to take them
 *
 * For all calls of a connection, those that sd-bus answers too. Calls of root are refused only before its
 * connection is known.
 */
int bus_limit_replies(struct bus *b);

/** struct kept - the user of a call that is kept, and its bytes; user 0 is not counted */
struct kept {
	uid_t uid;
	size_t bytes;
};

/**
 * bus_keep_call() - may @call be kept until its reply can be sent?
 * @ret: for bus_release_call(), which has to follow
 *
 * Users other than root have a limited number of such calls, with a limited number of bytes. The
 * call is read from its begin afterwards.
 * Return: 0, or a bus error.
 */
int bus_keep_call(struct bus *b, sd_bus_message *call, struct kept *ret,
		  sd_bus_error *error);
/** bus_release_call() - a second time for the same @kept it does nothing */
void bus_release_call(struct bus *b, struct kept *kept);

/** bus_check_account() - may the user @uid cause work now? Return: 0, -EBUSY if its account is overdrawn */
int bus_check_account(struct bus *b, uid_t uid);

/**
 * bus_call_waits() - has the next call of the user @uid to wait, because its account is overdrawn?
 *
 * For calls that cannot be refused before they run. While the account is overdrawn, one goes on each
 * second: its method may refuse it.
 */
bool bus_call_waits(struct bus *b, uid_t uid);

/** bus_charge() - @usec of CPU time were used for the user @uid, without bus_metered() */
void bus_charge(struct bus *b, uid_t uid, uint64_t usec);

/** bus_share_samples() - the user @uid pays a part of the samples until @until_usec */
void bus_share_samples(struct bus *b, uid_t uid, uint64_t until_usec);

/** bus_charge_samples() - @usec of CPU time were used for a sample */
void bus_charge_samples(struct bus *b, uint64_t usec);

/** bus_caller_uid() - the user that sent @call, or -ENODATA */
int bus_caller_uid(struct bus *b, sd_bus_message *call, uid_t *ret);

/**
 * bus_remember_caller() - a kept call goes on: its user is known to bus_caller_uid()
 * @uid: from bus_keep_call()
 *
 * Meanwhile calls of many connections may have taken the place of this one.
 */
void bus_remember_caller(struct bus *b, sd_bus_message *call, uid_t uid);

void bus_quotas_done(struct bus *b);

#endif
