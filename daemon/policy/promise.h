/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_PROMISE_H
#define SUTRO_PROMISE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/latency-map.h"
#include "policy/value.h"

struct device;

/** enum promise_key - keys of a section [X-Sutro] */
enum promise_key {
	PROMISE_READ_BANDWIDTH_MIN,
	PROMISE_WRITE_BANDWIDTH_MIN,
	PROMISE_READ_IOPS_MIN,
	PROMISE_WRITE_IOPS_MIN,
	PROMISE_READ_BANDWIDTH_MAX,
	PROMISE_WRITE_BANDWIDTH_MAX,
	PROMISE_READ_IOPS_MAX,
	PROMISE_WRITE_IOPS_MAX,
	PROMISE_LATENCY_TARGET,
	PROMISE_WRITE_LATENCY_TARGET,
	PROMISE_FSYNC_LATENCY_TARGET,
	PROMISE_WEIGHT,
	PROMISE_CLASS,
	PROMISE_IMPORTANCE,
	PROMISE_KEYS,
};

/** enum promise_kind - a minimum, a maximum, a goal, or how a unit is treated */
enum promise_kind {
	PROMISE_KIND_FLOOR,
	PROMISE_KIND_CEILING,
	PROMISE_KIND_TARGET,
	PROMISE_KIND_WEIGHT,
	PROMISE_KIND_CLASS,
	PROMISE_KIND_IMPORTANCE,
};

/** enum promise_unit - the unit of the value */
enum promise_unit {
	PROMISE_UNIT_BYTES, /* per second */
	PROMISE_UNIT_IOS, /* per second */
	PROMISE_UNIT_USEC,
	PROMISE_UNIT_NUMBER,
};

/** enum promise_class - values of PROMISE_CLASS, as io.sutro.class has them */
enum promise_class {
	PROMISE_CLASS_RT,
	PROMISE_CLASS_BE,
	PROMISE_CLASS_IDLE,
	PROMISE_CLASSES,
};

/* In the place of a path: each volume that the unit uses, see policy_expand(). */
#define PROMISE_ANY "any"

/* "infinity": no limit; it overrides limits of weaker sources. */
#define PROMISE_INFINITY UINT64_MAX

#define IMPORTANCE_MAX 1000U
#define IMPORTANCE_DEFAULT 100U

/**
 * struct promise_info - a key
 * @name: as it is written
 * @write: about writes; else about reads
 * @op: of a target, the requests that it is about
 * @allowed: the allowed values, a sentence for people
 */
struct promise_info {
	const char *name;
	enum promise_kind kind;
	enum promise_unit unit;
	bool write;
	const char *allowed;
	enum latency_op op;
};

const struct promise_info *promise_info(enum promise_key key);

/** promise_key_from_name() - "ReadBandwidthMin"; -EINVAL: no such key */
int promise_key_from_name(const char *name, enum promise_key *ret);

/** promise_class_name() - "rt", "be", "idle" */
const char *promise_class_name(enum promise_class class);

/**
 * struct promise - one assignment
 * @path: the device, without superfluous slashes, or PROMISE_ANY; NULL: about the
 *	unit as a whole (Class=, Importance=, Weight= without a path) and for @reset
 * @value: in the unit of the key; an enum promise_class; PROMISE_INFINITY
 * @part: of a floor in percent: 1/10000 of the capacity of the device, PART_MIN to
 *	PART_ALL, and @value is 0; else 0
 * @percentile: of a target, in 1/10000, PERCENTILE_MIN to PERCENTILE_MAX; else 0
 * @reset: an empty assignment: remove earlier settings of this key
 * @source: "FILE:LINE", or a client of the bus
 * @device: where @path leads now, NULL while it leads nowhere; belongs to the
 *	topology, and is filled in by its owner
 * @missed: it was logged that @path leads nowhere
 * @derived: of one with PROMISE_ANY, for the volume @device
 */
struct promise {
	enum promise_key key;
	char *path;
	uint64_t value;
	uint32_t part;
	uint32_t percentile;
	bool reset;
	char *source;
	const struct device *device;
	bool missed;
	bool derived;
};

/** promise_is_any() - is it about each volume that the unit uses? */
bool promise_is_any(const struct promise *p);

/** promise_is_governed() - is it a floor or a target, which the daemon keeps while it runs? */
bool promise_is_governed(const struct promise *p);

/**
 * promise_parse() - read the value of an assignment
 * @text: "/dev/vg/db 200M"; "" resets
 * @ret_allowed: on -EINVAL the allowed values, a static sentence
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int promise_parse(enum promise_key key, const char *text, const char *source,
		  struct promise *ret, const char **ret_allowed);
void promise_done(struct promise *p);

/** promise_format() - the text behind "KEY=" in a file; to be freed, NULL: no memory */
char *promise_format(const struct promise *p);

/**
 * promise_format_value() - the same without the path: "200M", "5ms P99", "idle", "30%"
 * @part, @percentile: as in struct promise
 */
char *promise_format_value(enum promise_key key, uint64_t value, uint32_t part,
			   uint32_t percentile);

/** struct promises - a list; one for each key and path unless a function states otherwise */
struct promises {
	struct promise *items;
	size_t n;
};

/** promises_add() - a copy of @p at the end */
int promises_add(struct promises *l, const struct promise *p);

/**
 * promises_apply() - add @p after all earlier settings
 * @displaced: gets the settings that @p replaces; may be NULL
 *
 * It replaces the promise with the same key and path; a reset removes all of its
 * key. On -ENOMEM @l is as it was.
 */
int promises_apply(struct promises *l, const struct promise *p,
		   struct promises *displaced);

/** promises_find() - find a setting, NULL: there is none; @path NULL: for the unit as a whole */
struct promise *promises_find(const struct promises *l, enum promise_key key,
			      const char *path);

/** promises_importance() - Importance=, or its default */
uint64_t promises_importance(const struct promises *l);

/** paths_fn - is called with a path of a setting */
typedef void paths_fn(const char *path, void *userdata);

/** promises_each_path() - call @fn for the path of each setting that has one */
void promises_each_path(const struct promises *l, paths_fn *fn, void *userdata);

void promises_done(struct promises *l);

#endif
