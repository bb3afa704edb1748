/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_H
#define SUTRO_BUS_H

#include <sys/queue.h>
#include <systemd/sd-bus.h>

#include "control/actuate.h"
#include "control/governor.h"
#include "host/leaf-switch.h"
#include "host/sample.h"
#include "policy/client.h"
#include "policy/conf.h"
#include "policy/policies.h"
#include "policy/unit.h"

#define BUS_NAME "org.sutro1"
#define BUS_PATH "/org/sutro1"
#define BUS_INTERFACE "org.sutro1.Manager"

#define ERROR_NO_SUCH_UNIT "org.sutro1.Error.NoSuchUnit"
#define ERROR_NO_SUCH_PATH "org.sutro1.Error.NoSuchPath"
#define ERROR_BAD_POLICY "org.sutro1.Error.BadPolicy"
#define ERROR_NO_SUCH_PROMISE "org.sutro1.Error.NoSuchPromise"
#define ERROR_OVERCOMMITTED "org.sutro1.Error.Overcommitted"
#define ERROR_NO_QUEUE "org.sutro1.Error.NoQueue"
#define ERROR_NOT_SUPPORTED "org.sutro1.Error.NotSupported"

/**
 * struct bus_ops - requests of methods to the owner of the bus
 * @reload: read configuration, topology and all units again
 * @reload_policies: read policies again, for all units
 * @policy_changed: the policy of @unit is another one now
 * @catch_up: read the topology again if @path is on a device that is not in it
 * @want_samples: keep sampling for a while
 * @samples_read: the next sample may begin, see bus_reads_samples()
 * @opened: the name on the bus is the daemon's, and the socket of varlink is there
 */
struct bus_ops {
	int (*reload)(void *userdata);
	int (*reload_policies)(void *userdata);
	void (*policy_changed)(const char *unit, void *userdata);
	void (*catch_up)(const char *path, void *userdata);
	int (*want_samples)(void *userdata);
	void (*samples_read)(void *userdata);
	void (*opened)(void *userdata);
};

/**
 * struct bus - the daemon on the system bus
 * @ops, @userdata: its owner
 * @machine, @switches, @policies, @clients, @watcher, @governor, @actuator: state that methods
 *	show and set; the owner fills it in before bus_open()
 * @conf, @units: the same; set again when they change
 * @members: the vtable of the interface, for reads of properties
 * @is_open: see @ops
 * @waiters: calls that wait for samples
 * @due_waiters: those for which the samples are there
 * @changes: calls that wait for switches of leaves
 * @tasks: calls whose work is done in child processes
 * @pieces, @next_piece: lists that are made in pieces, and the source that goes on with the first
 * @quotas: time that calls of users took, see quota.c
 * @reservations: capacity of settings that are being written, see capacity.c
 * @varlink: the same lists for clients of varlink, or NULL
 */
struct bus {
	sd_bus *connection;
	sd_bus_slot *vtable;
	const struct bus_ops *ops;
	void *userdata;
	const struct machine *machine;
	struct leaf_switches *switches;
	struct policies *policies;
	struct clients *clients;
	const struct sampler *watcher;
	const struct governor *governor;
	const struct actuator *actuator;
	struct conf *conf;
	const struct units *units;
	const sd_bus_vtable *members;
	bool is_open;
	struct bus_waiter *waiters;
	struct bus_waiter *due_waiters;
	struct bus_change *changes;
	struct bus_task *tasks;
	TAILQ_HEAD(, bus_pieces) pieces;
	sd_event_source *next_piece;
	struct bus_authorization *authorizations;
	struct bus_quotas *quotas;
	LIST_HEAD(, reservation) reservations;
	struct varlink *varlink;
};

/** bus_method_t - a method that runs later; it sends its reply itself */
typedef int (*bus_method_t)(struct bus *b, sd_bus_message *call,
			    sd_bus_error *error);

/** bus_resolve() - a path of a caller to a device with leaves, or a bus error */
int bus_resolve(struct bus *b, const char *path, struct device **ret,
		sd_bus_error *error);

/** bus_path_error() - set the error about a path of a caller */
int bus_path_error(sd_bus_error *error, const char *path, int err);

/** bus_append_devno() - {"devno": "8:16"} */
int bus_append_devno(sd_bus_message *r, const struct device *d);

/** bus_open_list(), bus_close_list() - a value of type aa{sv} in a dictionary */
int bus_open_list(sd_bus_message *r, const char *key);
int bus_close_list(sd_bus_message *r);

/**
 * bus_error() - set an error whose text may quote any input of a caller
 *
 * Bytes that are not valid text are replaced: the bus refuses a reply that is cut within a
 * character.
 * Return: a negative errno, for the method to return.
 */
int bus_error(sd_bus_error *error, const char *name, const char *format, ...)
	_printf_(3, 4);

/** bus_no_such_unit() - set the error about a unit that is not there */
int bus_no_such_unit(sd_bus_error *error, const char *unit);

/** bus_source_name() - where latencies are measured, "volume" or "leaves" */
const char *bus_source_name(enum target_source source);

/** bus_send() - send @reply, or return the error @r with which its construction failed */
int bus_send(sd_bus_message *reply, int r);

/** bus_property_changed() - emit PropertiesChanged; nothing before bus_open() */
void bus_property_changed(const struct bus *b, const char *property);

/** bus_weight_changed() - emit WeightChanged; @leaf NULL: the default line */
void bus_weight_changed(struct bus *b, const struct cgroup *c,
			const struct device *leaf, uint64_t old, uint64_t new,
			const char *reason);

/** bus_promise_changed() - emit PromiseChanged */
void bus_promise_changed(struct bus *b, const struct governed *f);

#endif
