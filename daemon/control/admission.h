/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_ADMISSION_H
#define SUTRO_ADMISSION_H

#include "control/actuate.h"
#include "control/plant.h"
#include "host/machine.h"
#include "policy/client.h"
#include "policy/policies.h"
#include "policy/policy.h"

/** enum fit - do the floors fit on a device? From best to worst */
enum fit {
	FIT_FITS,
	FIT_UNKNOWN,
	FIT_DOES_NOT,
	FITS,
};

/** fit_to_string() - one word, as the bus has it */
const char *fit_to_string(enum fit f);

/**
 * struct guarantee - a floor
 * @unit: the unit of the floor; it need not run
 * @promise: belongs to the admission
 * @importance: of the unit
 * @device: NULL: there is none; see admission.c
 * @number: of the promise in the plant
 * @rate_alone: capacity of the device for requests like its own, 0: not known
 * @share: part of the time of the leaf where that is most, 0 if it is not known
 * @granted: part of the floor that fits, 0..1; 0 if @share is not known
 */
struct guarantee {
	const char *unit;
	const struct promise *promise;
	uint64_t importance;
	const struct device *device;
	uint32_t number;
	double rate_alone;
	double share;
	double granted;
};

/**
 * struct admitted - a device with floors
 * @device: NULL: of a floor that is on no device
 * @path: for people
 * @leaf: the leaf with the largest need
 * @needed: part of its time that the floors need
 * @reason: a sentence with the cause and the remedy
 */
struct admitted {
	const struct device *device;
	const char *path;
	const struct device *leaf;
	double needed;
	enum fit fit;
	char *reason;
};

/**
 * struct admission_unit - proposed settings of a unit
 * @hidden: of struct stated
 * @cgroup: NULL: it does not run
 */
struct admission_unit {
	struct policy policy;
	struct promises hidden;
	const struct cgroup *cgroup;
};

/**
 * struct admission_base - devices, policies and costs that a check starts from
 * @plant: has the learnt costs
 * @actuator: has the backend of each leaf
 */
struct admission_base {
	const struct machine *machine;
	const struct policies *policies;
	const struct clients *clients;
	const struct plant *plant;
	const struct actuator *actuator;
};

/**
 * struct admission - the question whether a set of floors fits, and its answer
 * @fit: the worst of all devices
 * @guarantees, @devices: the answer, each in the order of the cgroups; the other
 *	members are used to find it
 */
struct admission {
	enum fit fit;
	struct guarantee *guarantees;
	size_t n_guarantees;
	struct admitted *devices;
	size_t n_devices;

	const struct admission_base *base;
	struct policies *policies;
	struct admission_unit **units;
	size_t n_units;
	struct control *control;
	const struct device **leaves;
	uint32_t n_leaves;
	const struct cgroup **nodes;
	uint32_t n_nodes;
};

/**
 * admission_find_devices() - the devices of all promises of a unit
 * @policy: has the promises
 * @c: NULL: it does not run
 */
int admission_find_devices(const struct admission_base *base,
			   struct policy *policy, const struct cgroup *c);

/** admission_expand() - derive the unit's promises about any volume for the volumes that it uses */
int admission_expand(const struct admission_base *base, struct policy *policy,
		     const struct cgroup *c);

/**
 * admission_check() - would all floors fit if these were the policy files?
 * @files: see policies_propose(); none: the present policies
 * @base: must outlive @ret
 * @ret: admission_done() it, also after an error
 * @ret_error: as policies_propose() has it
 */
int admission_check(const struct admission_base *base,
		    const struct proposals *files, struct admission *ret,
		    char **ret_error);
void admission_done(struct admission *a);

#endif
