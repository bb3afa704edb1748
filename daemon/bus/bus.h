/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUTRO_BUS_H
#define SUTRO_BUS_H

#include <stdint.h>

#define BUS_NAME "org.sutro1"
#define BUS_PATH "/org/sutro1"
#define BUS_INTERFACE "org.sutro1.Manager"

struct cgroup;
struct device;
struct governed;
struct manager;

/** bus_open() - connect to the system bus, attach it to the loop, take the name */
int bus_open(struct manager *m);
void bus_close(struct manager *m);

/** bus_samples_taken() - answer those who wait for samples */
void bus_samples_taken(struct manager *m);

/** bus_weight_changed() - emit WeightChanged; @leaf NULL: the default line */
void bus_weight_changed(struct manager *m, const struct cgroup *c,
			const struct device *leaf, uint64_t old, uint64_t new,
			const char *reason);

/** bus_promise_changed() - emit PromiseChanged */
void bus_promise_changed(struct manager *m, const struct governed *f);

/** bus_introspect() - the interface as XML, from the vtable; to be freed */
int bus_introspect(char **ret);

#endif
