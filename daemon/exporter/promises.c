/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Families of declared capacities and of promises. Rates and latencies have a family for each unit of
 * their values.
 */

#include "exporter/families.h"
#include "exporter/promises.h"

/* Units of values: the end of a name, words, and how a value is written in the base unit. */
#define BYTES "bytes_per_second"
#define IOS "ios_per_second"
#define SECONDS "seconds"
#define IN_BYTES ", in bytes per second."
#define IN_IOS ", in requests per second."
#define IN_SECONDS ", in seconds of latency."

/* ---- capacities ---- */

/* The rates of a capacity, and after them the unit. */
enum rate { CAPACITY, PROMISED, LEFT, RATES };
#define RATE(rate, unit) ((unit) * RATES + (rate))

static const struct state_capacity *capacity_of(const struct scrape *s,
						size_t row)
{
	return &s->state.capacities[row];
}

static size_t count_capacities(const struct scrape *s)
{
	return s->state.n_capacities;
}

static void write_capacity(struct writer *w, size_t start,
			   const struct scrape *s, size_t row)
{
	writer_label(w, start, "key", capacity_of(s, row)->key);
	writer_label(w, start, "path", capacity_of(s, row)->path);
}

static struct number get_rate(const struct scrape *s, size_t row,
			      unsigned int of)
{
	const struct state_capacity *c = capacity_of(s, row);

	if (!c->info || c->info->unit != of / RATES)
		return number_none();
	return number_of(NUMBER_COUNT, of % RATES == CAPACITY	? c->capacity
				       : of % RATES == PROMISED ? c->promised
								: c->left);
}

static const struct family of_capacities[] = {
	FAMILY("sutro_capacity_" BYTES, GAUGE, "Declared capacity" IN_BYTES,
	       get_rate, .of = RATE(CAPACITY, PROMISE_UNIT_BYTES)),
	FAMILY("sutro_capacity_" IOS, GAUGE, "Declared capacity" IN_IOS,
	       get_rate, .of = RATE(CAPACITY, PROMISE_UNIT_IOS)),
	FAMILY("sutro_capacity_promised_" BYTES, GAUGE,
	       "Sum of the floors" IN_BYTES, get_rate,
	       .of = RATE(PROMISED, PROMISE_UNIT_BYTES)),
	FAMILY("sutro_capacity_promised_" IOS, GAUGE,
	       "Sum of the floors" IN_IOS, get_rate,
	       .of = RATE(PROMISED, PROMISE_UNIT_IOS)),
	FAMILY("sutro_capacity_left_" BYTES, GAUGE,
	       "Capacity without the floors" IN_BYTES, get_rate,
	       .of = RATE(LEFT, PROMISE_UNIT_BYTES)),
	FAMILY("sutro_capacity_left_" IOS, GAUGE,
	       "Capacity without the floors" IN_IOS, get_rate,
	       .of = RATE(LEFT, PROMISE_UNIT_IOS)),
};

/* ---- promises ---- */

static const struct state_promise *promise_of(const struct scrape *s,
					      size_t row)
{
	return &s->state.promises[row];
}

static size_t count_promises(const struct scrape *s)
{
	return s->state.n_promises;
}

static void write_promise(struct writer *w, size_t start,
			  const struct scrape *s, size_t row)
{
	const struct state_promise *p = promise_of(s, row);

	writer_label(w, start, "cgroup", p->cgroup);
	writer_label(w, start, "device", p->device);
	writer_label(w, start, "key", p->key);
	writer_label(w, start, "path", p->path);
	writer_label(w, start, "unit", p->unit);
}

/* Is it a floor, a ceiling or a target? Others, and keys of a later sutrod, have no metrics. */
static bool has_value(const struct state_promise *p)
{
	return p->info && p->info->unit != PROMISE_UNIT_NUMBER;
}

static bool is_floor(const struct state_promise *p)
{
	return has_value(p) && p->info->kind == PROMISE_KIND_FLOOR;
}

static struct number of_unit(uint64_t value, enum promise_unit unit)
{
	return number_of(
		unit == PROMISE_UNIT_USEC ? NUMBER_MICRO : NUMBER_COUNT, value);
}

/* Of a floor in percent the rate may be unknown, which is 0. */
static struct number get_target(const struct scrape *s, size_t row,
				unsigned int unit)
{
	const struct state_promise *p = promise_of(s, row);

	if (!has_value(p) || p->info->unit != unit || !p->value ||
	    p->value == PROMISE_INFINITY)
		return number_none();
	return of_unit(p->value, unit);
}

static struct number get_received(const struct scrape *s, size_t row,
				  unsigned int unit)
{
	const struct state_promise *p = promise_of(s, row);

	if (!has_value(p) || p->info->unit != unit ||
	    p->info->kind == PROMISE_KIND_CEILING)
		return number_none();
	return of_unit(p->got, unit);
}

static struct number get_granted(const struct scrape *s, size_t row,
				 unsigned int unused)
{
	const struct state_promise *p = promise_of(s, row);

	return is_floor(p) ? number_real(p->granted) : number_none();
}

static struct number get_received_ratio(const struct scrape *s, size_t row,
					unsigned int unused)
{
	const struct state_promise *p = promise_of(s, row);
	double rate = p->value * p->granted;

	return is_floor(p) && rate > 0 ? number_real(p->got / rate)
				       : number_none();
}

static struct number get_broken(const struct scrape *s, size_t row,
				unsigned int unused)
{
	const struct state_promise *p = promise_of(s, row);

	return has_value(p) ? number_of(NUMBER_COUNT, promise_is_broken(p))
			    : number_none();
}

static struct number get_state(const struct scrape *s, size_t row,
			       unsigned int unused)
{
	return has_value(promise_of(s, row)) ? number_of(NUMBER_COUNT, 1)
					     : number_none();
}

static const char *get_state_word(const struct scrape *s, size_t row)
{
	return promise_of(s, row)->state;
}

#define TARGET "Stated value of a floor, ceiling or latency target"
#define RECEIVED "Present value of a floor or latency target"

static const struct family of_promises[] = {
	FAMILY("sutro_promise_target_" BYTES, GAUGE, TARGET IN_BYTES,
	       get_target, .of = PROMISE_UNIT_BYTES),
	FAMILY("sutro_promise_target_" IOS, GAUGE, TARGET IN_IOS, get_target,
	       .of = PROMISE_UNIT_IOS),
	FAMILY("sutro_promise_target_" SECONDS, GAUGE, TARGET IN_SECONDS,
	       get_target, .of = PROMISE_UNIT_USEC),
	FAMILY("sutro_promise_received_" BYTES, GAUGE, RECEIVED IN_BYTES,
	       get_received, .of = PROMISE_UNIT_BYTES),
	FAMILY("sutro_promise_received_" IOS, GAUGE, RECEIVED IN_IOS,
	       get_received, .of = PROMISE_UNIT_IOS),
	FAMILY("sutro_promise_received_" SECONDS, GAUGE, RECEIVED IN_SECONDS,
	       get_received, .of = PROMISE_UNIT_USEC),
	FAMILY("sutro_promise_granted_ratio", GAUGE,
	       "Part of a floor that its leaves have the time for.",
	       get_granted),
	FAMILY("sutro_promise_received_ratio", GAUGE,
	       "Received rate, as a part of the granted part of a floor.",
	       get_received_ratio),
	FAMILY("sutro_promise_broken", GAUGE,
	       "1 while a promise does not hold.", get_broken),
	FAMILY("sutro_promise_state", GAUGE,
	       "1, with the state as a label; see "
	       "org.sutro1.Manager.ListPromises.",
	       get_state, .label = "state", .get_label = get_state_word),
};

static const struct subject subjects[] = {
	{ FAMILIES(of_capacities), count_capacities, write_capacity },
	{ FAMILIES(of_promises), count_promises, write_promise },
};

void promises_write(const struct scrape *s, enum format format,
		    struct writer *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		subject_write(&subjects[i], s, format, w);
}
