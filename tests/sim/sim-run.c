// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: sim-run < SCENARIO
 *
 * Runs a scenario in simulated time and prints the result (result.c) as JSON. A line of a scenario
 * is a word and numbers, "name=number"; defaults are shown. A number of a disk that
 * has names for its values has one of these, "bus_order=round-robin". Leaves, volumes, cgroups (0
 * is the root) and clients are numbered in the order of their lines. scenes.py and
 * promises.py write such scenarios.
 *
 *	run seconds=10 tick_ms=250 lag_ms=5 noise=0 seed=1 control=1 warmup=0 truth=0
 *			windows=0
 *		control: the daemon runs; truth: record device times; windows: record cycles
 *		with protected groups; warmup: seconds without latencies
 *	leaf kind=0 NUMBER=... nr_requests=0 tags=0 budget=0 none=0 oracle=0 fairness=0
 *			protect=0
 *		a disk, 0 hdd, 1 ssd, 2 nvme, with the numbers of tests/modeldisk; none:
 *		no scheduler; oracle: requests are charged their exact device time
 *	costs TEXT
 *		costs that the elevator of the leaf above begins with, as in
 *		queue/iosched/costs, on one line
 *	volume kind=0 leaves=0 chunk=65536 part=0 parts=1
 *		0 stripe, 1 linear, 2 mirror, on the leaves of the bits that are set, of each
 *		the given part
 *	cgroup parent=0 weight=100 class=1 latency_us=0
 *		0 rt, 1 be, 2 idle; its latency target on each leaf
 *	client cgroup=0 volume=0 write=0 mixed=0 discard=0 async=0 flush=0 random=0
 *			bytes=131072 iodepth=16 burst=1 think_us=0 poisson=0 await=0
 *			start=0 stop=0 first=0 last=1 late_us=0
 *		mixed: percent of reads, 0 = all or none; after a burst it waits until others
 *		have transferred await bytes; times in seconds; between the two
 *		given places of the volume; its requests that take longer than late_us are
 *		late
 *	promise cgroup=0 volume=0 reads=1 writes=0 ios=0 floor=0 part=0 importance=100
 *		a rate, or a part of the time of the leaves; its floor is what that was worth
 *		in the end
 *	disk at=0 leaf=0 NUMBER=...
 *	weight at=0 cgroup=0 weight=100
 *	move at=0 client=0 first=0 last=1
 *		at that second a disk has other numbers, a cgroup another weight, a client
 *		another place
 *	recall at=0 promise=0 like=0
 *		the law takes the cost of one promise for that of another one
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "result.h"
#include "sutro-prior.h"

/**
 * struct option - a number of a line
 * @initial:	its default
 * @to:		the place that gets it, as a number of @type
 * @factor:	the value there of 1 in the line
 */
struct option {
	const char *name;
	double low;
	double high;
	double initial;
	void *to;
	enum { TO_BOOL, TO_U32, TO_U64, TO_DOUBLE } type;
	double factor;
};

#define TO_TIMES(x, factor)         \
	&(x),                       \
		_Generic((x),       \
		bool: TO_BOOL,      \
		unsigned: TO_U32,   \
		u64: TO_U64,        \
		double: TO_DOUBLE), \
		factor
#define TO(x) TO_TIMES(x, 1)

static unsigned int line_number;
static bool wants_truth;
static bool wants_windows;

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "line %u: ", line_number);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

/* The next name=value of the line; NULL at its end. */
static const char *next_word(const char **ret_value)
{
	char *word = strtok(NULL, " \t\n"), *sign;

	if (!word)
		return NULL;
	sign = strchr(word, '=');
	if (!sign)
		die("%s: not name=number", word);
	*sign = '\0';
	*ret_value = sign + 1;
	return word;
}

static double to_number(const char *name, const char *value)
{
	char *end;
	double number = strtod(value, &end);

	if (end == value || *end || isnan(number))
		die("%s=%s: not a number", name, value);
	return number;
}

static double to_choice(const struct mdisk_number *number, const char *value)
{
	u32 i;

	for (i = 0; i <= number->max; i++)
		if (!strcmp(number->names[i], value))
			return i;
	die("%s=%s: not a value of it", number->name, value);
}

static void check_range(const char *name, double value, double low, double high)
{
	if (value < low || value > high)
		die("%s=%g: a number from %g to %g", name, value, low, high);
}

static void set(const struct option *option, double value)
{
	value *= option->factor;
	if (option->type == TO_BOOL)
		*(bool *)option->to = value;
	else if (option->type == TO_U32)
		*(u32 *)option->to = value;
	else if (option->type == TO_U64)
		*(u64 *)option->to = value;
	else
		*(double *)option->to = value;
}

/* Options, and the numbers of a disk where @event has room for them. */
static void parse(const struct option *options, struct loop_event *event)
{
	const struct mdisk_number *number;
	const struct option *option;
	const char *word, *text;
	u32 nr = 0;
	double value;

	for (option = options; option->name; option++)
		set(option, option->initial);
	while ((word = next_word(&text))) {
		number = event ? mdisk_number_find(word) : NULL;
		value = number && number->names ? to_choice(number, text)
						: to_number(word, text);
		if (number) {
			check_range(word, value, number->min, number->max);
			if (nr == LOOP_NUMBERS)
				die("no more than %u numbers", LOOP_NUMBERS);
			event->number[nr] = number;
			event->value[nr++] = value;
			continue;
		}
		for (option = options; option->name; option++)
			if (!strcmp(option->name, word))
				break;
		if (!option->name)
			die("there is no %s here", word);
		check_range(word, value, option->low, option->high);
		set(option, value);
	}
}

static u32 next(u32 nr, u32 most)
{
	if (nr == most)
		die("no more than %u of these", most);
	return nr;
}

static void say_run(struct loop *loop)
{
	const struct option o[] = {
		{ "seconds", 0, 1000, 10,
		  TO_TIMES(loop->run_ns, NSEC_PER_SEC) },
		{ "tick_ms", 1, 5000, 250,
		  TO_TIMES(loop->tick_ns, NSEC_PER_MSEC) },
		{ "lag_ms", 0, 5000, 5, TO_TIMES(loop->lag_ns, NSEC_PER_MSEC) },
		{ "noise", 0, 1, 0, TO(loop->noise) },
		{ "seed", 0, 1e9, 1, TO(loop->seed) },
		{ "control", 0, 1, 1, TO(loop->is_controlled) },
		{ "warmup", 0, 1000, 0,
		  TO_TIMES(loop->warmup_ns, NSEC_PER_SEC) },
		{ "truth", 0, 1, 0, TO(wants_truth) },
		{ "windows", 0, 1, 0, TO(wants_windows) },
		{},
	};

	parse(o, NULL);
}

static void say_leaf(struct loop *loop)
{
	struct loop_event numbers = {
		.leaf = next(loop->leaves, LOOP_LEAVES),
	};
	struct leaf *leaf = &loop->leaf[numbers.leaf];
	struct sutro_tunables *tunables = &leaf->core.tunables;
	u32 kind, slots, tags, fairness, protect;
	bool fifo, oracle, budget;
	const struct option o[] = {
		{ "kind", 0, MDISK_KINDS - 1, MDISK_HDD, TO(kind) },
		{ "nr_requests", 0, 1e5, 0, TO(slots) },
		{ "tags", 0, 1e5, 0, TO(tags) },
		{ "budget", 0, 1, 0, TO(budget) },
		{ "none", 0, 1, 0, TO(fifo) },
		{ "oracle", 0, 1, 0, TO(oracle) },
		{ "fairness", 0, 1, 0, TO(fairness) },
		{ "protect", 0, SUTRO_PROTECT_MAX, SUTRO_PROTECT_DFL,
		  TO(protect) },
		{},
	};

	parse(o, &numbers);
	leaf_init(leaf, &loop->clock, kind, client_done);
	loop_change_disk(loop, &numbers);
	leaf->slots = slots;
	leaf->tags = tags;
	leaf->has_budget = budget;
	leaf->fifo = fifo;
	leaf->oracle = oracle;
	tunables->fairness = fairness;
	tunables->protect = protect;
	loop->leaves++;
}

static void say_costs(struct loop *loop)
{
	const char *text = strtok(NULL, "\n");
	struct sutro_prior prior;

	if (!loop->leaves)
		die("costs come after their leaf");
	if (!text || sutro_prior_parse(text, &prior) ||
	    sutro_prior_write(&loop->leaf[loop->leaves - 1].device, &prior))
		die("the elevator does not take these costs");
}

static void say_volume(struct loop *loop)
{
	u32 number = next(loop->volumes, LOOP_VOLUMES), bits, part, parts, l;
	struct volume *volume = &loop->volume[number];
	const struct option o[] = {
		{ "kind", 0, VOLUME_KINDS - 1, 0, TO(volume->kind) },
		{ "leaves", 0, (1U << LOOP_LEAVES) - 1, 1, TO(bits) },
		{ "chunk", 4096, 1 << 24, 65536, TO(volume->chunk_bytes) },
		{ "part", 0, 63, 0, TO(part) },
		{ "parts", 1, 64, 1, TO(parts) },
		{},
	};

	parse(o, NULL);
	volume->leaf_bytes = U64_MAX;
	for (l = 0; l < loop->leaves && volume->nr < MAX_LEAVES; l++)
		if (bits & (1U << l)) {
			struct leaf *leaf = &loop->leaf[l];

			volume->leaf[volume->nr++] = leaf;
			volume->leaf_bytes = min(volume->leaf_bytes,
						 disk_bytes(&leaf->disk));
		}
	if (!volume->nr || bits >> loop->leaves)
		die("a volume is on leaves that there are");
	volume->leaf_bytes /= parts;
	volume->leaf_bytes -= volume->leaf_bytes % (16 << 20);
	for (l = 0; l < volume->nr; l++)
		volume->first_byte[l] = part * volume->leaf_bytes;
	loop->volumes++;
}

static void say_cgroup(struct loop *loop)
{
	struct loop_cgroup *g =
		&loop->cgroup[next(loop->cgroups, LOOP_CGROUPS)];
	const struct option o[] = {
		{ "parent", 0, loop->cgroups - 1, 0, TO(g->parent) },
		{ "weight", 1, 10000, 100, TO(g->weight) },
		{ "class", 0, SUTRO_CLASS_NR - 1, SUTRO_CLASS_BE,
		  TO(g->class) },
		{ "latency_us", 0, SUTRO_LATENCY_TARGET_MAX_US, 0,
		  TO(g->latency_us) },
		{},
	};

	parse(o, NULL);
	loop->cgroups++;
}

static void say_client(struct loop *loop)
{
	struct loop_client *c =
		&loop->client[next(loop->clients, LOOP_CLIENTS)];
	struct job *job = &c->job;
	bool discards;
	const struct option o[] = {
		{ "cgroup", 0, loop->cgroups - 1, 0, TO(c->cgroup) },
		{ "volume", 0, loop->volumes - 1.0, 0, TO(c->volume) },
		{ "write", SUTRO_READ, SUTRO_WRITE, SUTRO_READ, TO(job->op) },
		{ "mixed", 0, 99, 0, TO(job->mixed) },
		{ "discard", 0, 1, 0, TO(discards) },
		{ "async", 0, 1, 0, TO(job->async) },
		{ "flush", 0, 1, 0, TO(job->flush) },
		{ "random", 0, 1, 0, TO(job->random) },
		{ "bytes", 512, 16 << 20, 131072, TO(job->bytes) },
		{ "iodepth", 1, 1024, 16, TO(job->iodepth) },
		{ "burst", 1, 1024, 1, TO(job->burst) },
		{ "think_us", 0, 1e7, 0,
		  TO_TIMES(job->think_ns, NSEC_PER_USEC) },
		{ "poisson", 0, 1, 0, TO(job->poisson) },
		{ "await", 0, 1e12, 0, TO(job->await_bytes) },
		{ "start", 0, 1000, 0, TO_TIMES(job->start_ns, NSEC_PER_SEC) },
		{ "stop", 0, 1000, 0, TO_TIMES(job->stop_ns, NSEC_PER_SEC) },
		{ "late_us", 0, 1e9, 0, TO_TIMES(job->late_ns, NSEC_PER_USEC) },
		{ "first", 0, 1, 0, TO(c->first) },
		{ "last", 0, 1, 1, TO(c->last) },
		{},
	};

	parse(o, NULL);
	if (discards)
		job->op = SUTRO_OTHER;
	loop->clients++;
}

static void say_promise(struct loop *loop)
{
	struct loop_promise *p =
		&loop->promise[next(loop->promises, LOOP_PROMISES)];
	const struct option o[] = {
		{ "cgroup", 0, loop->cgroups - 1, 0, TO(p->cgroup) },
		{ "volume", 0, loop->volumes - 1.0, 0, TO(p->volume) },
		{ "reads", 0, 1, 1, TO(p->reads) },
		{ "writes", 0, 1, 0, TO(p->writes) },
		{ "ios", 0, 1, 0, TO(p->ios) },
		{ "floor", 1e-3, 1e12, 0, TO(p->floor) },
		{ "part", 0, 1, 0, TO(p->part) },
		{ "importance", 0, 1000, 100, TO(p->importance) },
		{},
	};

	parse(o, NULL);
	if (!(p->floor > 0) == !(p->part > 0))
		die("a promise has a floor or a part");
	loop->promises++;
}

static struct loop_event *next_event(struct loop *loop)
{
	return &loop->event[next(loop->events, LOOP_EVENTS)];
}

static void say_disk(struct loop *loop)
{
	struct loop_event *event = next_event(loop);
	const struct option o[] = {
		{ "at", 0, 1000, 0, TO_TIMES(event->at_ns, NSEC_PER_SEC) },
		{ "leaf", 0, loop->leaves - 1.0, 0, TO(event->leaf) },
		{},
	};

	parse(o, event);
	event->happen = loop_change_disk;
	loop->events++;
}

static void say_weight(struct loop *loop)
{
	struct loop_event *event = next_event(loop);
	const struct option o[] = {
		{ "at", 0, 1000, 0, TO_TIMES(event->at_ns, NSEC_PER_SEC) },
		{ "cgroup", 1, loop->cgroups - 1.0, 1, TO(event->cgroup) },
		{ "weight", 1, 10000, 100, TO(event->weight) },
		{},
	};

	parse(o, NULL);
	event->happen = loop_change_weight;
	loop->events++;
}

static void say_move(struct loop *loop)
{
	struct loop_event *event = next_event(loop);
	const struct option o[] = {
		{ "at", 0, 1000, 0, TO_TIMES(event->at_ns, NSEC_PER_SEC) },
		{ "client", 0, loop->clients - 1.0, 0, TO(event->client) },
		{ "first", 0, 1, 0, TO(event->first) },
		{ "last", 0, 1, 1, TO(event->last) },
		{},
	};

	parse(o, NULL);
	event->happen = loop_move_client;
	loop->events++;
}

static void say_recall(struct loop *loop)
{
	struct loop_event *event = next_event(loop);
	const struct option o[] = {
		{ "at", 0, 1000, 0, TO_TIMES(event->at_ns, NSEC_PER_SEC) },
		{ "promise", 0, loop->promises - 1.0, 0, TO(event->promise) },
		{ "like", 0, loop->promises - 1.0, 0, TO(event->like) },
		{},
	};

	parse(o, NULL);
	event->happen = loop_recall;
	loop->events++;
}

static const struct {
	const char *word;
	void (*say)(struct loop *loop);
} sayings[] = {
	{ "run", say_run },	  { "leaf", say_leaf },
	{ "volume", say_volume }, { "cgroup", say_cgroup },
	{ "client", say_client }, { "promise", say_promise },
	{ "disk", say_disk },	  { "weight", say_weight },
	{ "move", say_move },	  { "recall", say_recall },
	{ "costs", say_costs },
};

static void read_scenario(struct loop *loop, FILE *file)
{
	char line[1024];

	while (fgets(line, sizeof(line), file)) {
		const char *word;
		size_t i;

		line_number++;
		word = strtok(line, " \t\n");
		if (!word || word[0] == '#')
			continue;
		for (i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++)
			if (!strcmp(word, sayings[i].word))
				break;
		if (i == sizeof(sayings) / sizeof(sayings[0]))
			die("%s: not a word of a scenario", word);
		sayings[i].say(loop);
	}
}

int main(void)
{
	struct loop *loop = loop_new();

	read_scenario(loop, stdin);
	if (wants_truth) {
		loop->truth = calloc((size_t)LOOP_TICKS * loop->leaves *
					     loop->cgroups,
				     sizeof(*loop->truth));
		if (!loop->truth)
			die("no memory");
	}
	if (wants_windows) {
		loop->window = calloc((size_t)LOOP_TICKS * loop->leaves,
				      sizeof(*loop->window));
		if (!loop->window)
			die("no memory");
	}
	loop_run(loop);
	result_print(loop);
	loop_free(loop);
	return 0;
}
