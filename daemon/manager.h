/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_MANAGER_H
#define SUTRO_MANAGER_H

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "bus/bus.h"
#include "control/actuate.h"
#include "control/governor.h"
#include "control/resync-group.h"
#include "host/cgfile.h"
#include "host/cgroup.h"
#include "host/costs-job.h"
#include "host/leaf-switch.h"
#include "host/machine.h"
#include "host/sample.h"
#include "host/uevent.h"
#include "policy/client.h"
#include "policy/conf.h"
#include "policy/policies.h"
#include "policy/unit.h"

/**
 * struct manager - the daemon
 *
 * State of the machine and of the settings:
 * @machine: block devices, cgroups, where files are
 * @systemd: connection to the bus for requests to systemd, whose replies wait behind no call
 * @units: requests to systemd
 * @policies, @clients: settings of units by files and by clients of the bus
 * @watcher: samples for calls of the bus
 * @governor: keeps floors
 *
 * Writers and timers:
 * @switches: leaves that are being switched
 * @costs: saves and restores costs of requests
 * @files: writes cgroup files
 * @actuator: writes weights
 * @marked: cgroups for the next flush
 * @flush: armed while a cgroup is marked, runs when nothing else is ready
 * @flush_due: armed with it, runs after a while in any case
 * @uevents: reports changes of block devices
 * @md: reports changes of md arrays, NULL before the first array
 * @mounts: reports mounts and unmounts, NULL on a fake machine
 * @rescan: armed while the topology is out of date
 * @reconcile: the periodic comparison of everything
 * @compare: armed while it goes on; @compared is the cursor of its second part, and it has taken
 *	@compare_took_usec of CPU time
 * @requests: armed while settings of all cgroups are requested, with the cursor @requested
 * @request_again: they changed since, and are requested once more
 * @volumes: armed while a promise is about any volume that its unit uses
 * @sampling: armed while there are calls for shares, until @sample_until_usec
 * @sample: armed while a sample is taken, which has taken @sample_took_usec of CPU time
 * @compare_after_usec: lost events make no earlier comparison than this
 * @events_lost: since the last requests about all units; the next ones are due, but not before
 *	@request_after_usec
 * @hung: armed when a disk begins to hang, or a call for a disk has returned late
 * @call_has_returned: one has since @hung was armed
 * @schedulers: watches on queue/scheduler of the leaves
 * @is_unwatched: it was logged that a leaf has none, and some have had none since
 */
struct manager {
	struct machine machine;
	struct lookups lookups;
	struct conf *conf;
	struct bus bus;
	sd_bus *systemd;
	struct uevents uevents;

	struct units *units;
	struct policies *policies;
	struct clients clients;
	struct sampler watcher;
	struct governor governor;

	struct leaf_switches switches;
	struct costs_job costs;
	struct cgfiles files;
	struct actuator actuator;
	struct cgroup_list marked;
	sd_event_source *flush;
	sd_event_source *flush_due;
	sd_event_source *md;
	sd_event_source *mounts;
	sd_event_source *rescan;
	sd_event_source *reconcile;
	sd_event_source *compare;
	struct cgroup_cursor compared;
	uint64_t compare_took_usec;
	sd_event_source *requests;
	struct cgroup_cursor requested;
	bool request_again;
	sd_event_source *volumes;
	sd_event_source *sampling;
	sd_event_source *sample;
	uint64_t sample_took_usec;
	sd_event_source *hung;
	sd_event_source **schedulers;
	size_t n_schedulers;
	bool is_unwatched;
	uint64_t sample_until_usec;
	uint64_t compare_after_usec;
	uint64_t request_after_usec;
	bool events_lost;
	bool call_has_returned;
	bool ready;
	bool complained_of_version;
};

/**
 * manager_new() - read configuration and topology
 * @root: "" for this machine, or the directory of a fake one
 */
int manager_new(const char *root, bool dry_run, struct manager **ret);
struct manager *manager_free(struct manager *m);
DEFINE_CLEANUP(struct manager *, manager_free);

/** manager_run() - serve until SIGTERM, then restore the weights */
int manager_run(struct manager *m);

/**
 * manager_reload() - read configuration, topology and all units again
 *
 * Mistakes in the configuration are logged, and their assignments ignored.
 */
int manager_reload(struct manager *m);

/** manager_reload_policies() - read policies again, for all units */
int manager_reload_policies(struct manager *m);

/** manager_policy_changed() - the settings of @unit changed; @userdata: manager */
void manager_policy_changed(const char *unit, void *userdata);

/** manager_on_lookups() - the path of a setting leads elsewhere; @userdata: manager */
void manager_on_lookups(void *userdata);

/** manager_drop_paths() - drop the answers for paths that no setting has any more */
void manager_drop_paths(struct manager *m);

/** manager_renew_topology() - look at all block devices again, resolve all paths */
int manager_renew_topology(struct manager *m);

/**
 * manager_catch_up() - look at the machine again if @path is on a device not known yet
 *
 * A node is there before udev has announced its device, and another disk may have
 * come under the name of one that went. Devices found before are gone after this.
 */
void manager_catch_up(struct manager *m, const char *path);

/* manager-cgroups.c: changes of the tree, writes of dirty cgroups, the periodic comparison. */
extern const struct cgroup_ops manager_cgroup_ops;
int manager_on_flush(sd_event_source *s, void *userdata);
int manager_on_flush_due(sd_event_source *s, uint64_t usec, void *userdata);
int manager_on_reconcile(sd_event_source *s, uint64_t usec, void *userdata);
int manager_on_compare(sd_event_source *s, uint64_t usec, void *userdata);

/* manager-policy.c: read the settings of one cgroup, of all; read policies. */
void manager_request(struct manager *m, struct cgroup *c);
/* Begin to read the settings of all, CGROUP_BATCH at a time. */
void manager_request_all(struct manager *m);
int manager_on_requests(sd_event_source *s, uint64_t usec, void *userdata);
/* Request the files of the root slice from systemd. */
void manager_request_root(struct manager *m);
int manager_mirror(struct manager *m, struct cgroup *c);
/* Has another program written io.bfq.weight? */
bool manager_has_new_bfq_weight(const struct manager *m,
				const struct cgroup *c);
int manager_load_policies(struct manager *m);
/* Derive promises for the volumes that @c uses; for all cgroups, once a second. */
int manager_look_at_volumes(struct manager *m, struct cgroup *c);
/* Find paths that lead to another device: a file system was mounted, or a file made.
 *
 * Return: 0 or -ENOMEM.
 */
int manager_compare_paths(struct manager *m);
int manager_on_volumes(sd_event_source *s, uint64_t usec, void *userdata);
void manager_log_sentences(char *const *sentences);
extern const struct unit_ops manager_unit_ops;

/* manager-devices.c: begin and end to listen to udev and mounts, and the timer after udev. */
int manager_watch_devices(struct manager *m);
void manager_unwatch_devices(struct manager *m);
/* Return: 1 if a leaf has another scheduler than before, 0, or -ENOMEM. */
int manager_read_schedulers(struct manager *m);
/* Renew the topology if a device came or went without an event. */
void manager_compare_devices(struct manager *m);
/* Report disks that hang, and look again at disks whose calls have returned late. */
void manager_on_hung_changed(bool has_returned, void *userdata);
int manager_on_hung(sd_event_source *s, void *userdata);
int manager_on_rescan(sd_event_source *s, uint64_t usec, void *userdata);

/** manager_arm_batch() - let a walk over all cgroups take its next batch */
int manager_arm_batch(sd_event_source *s);

/** manager_mark() - compare the files of @c with its settings, soon */
void manager_mark(struct manager *m, struct cgroup *c);

/** manager_flush_soon() - write dirty cgroups when nothing else is ready, or in 50 ms */
void manager_flush_soon(struct manager *m);

/** manager_mark_all() - compare all files with the settings, soon */
void manager_mark_all(struct manager *m);

/** manager_leaf_switched() - the scheduler of a leaf changed */
void manager_leaf_switched(struct manager *m, const struct device *leaf);

#endif
