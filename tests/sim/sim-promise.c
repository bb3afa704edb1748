// SPDX-License-Identifier: GPL-2.0-only
/*
 * Usage: sim-promise < SCENARIO
 *
 * Runs a scenario in simulated time and prints as JSON what came of it. A line of a
 * scenario is a word and numbers, "name=number"; what is not said has the value shown.
 * Leaves, volumes, cgroups (0 is the root), clients are numbered in the order in which
 * they are said.
 *
 *	run seconds=10 tick_ms=250 lag_ms=5 noise=0 seed=1 control=1
 *	leaf hdd=1 slow=1
 *		a disk, or else flash, so many times slower than the usual model
 *	volume kind=0 leaves=0 chunk=65536 part=0 parts=1
 *		0 stripe, 1 linear, 2 mirror, on the leaves whose bits are set, of each
 *		the given part
 *	cgroup parent=0 weight=100
 *	client cgroup=0 volume=0 write=0 async=0 random=0 bytes=131072 depth=16
 *			think_us=0 start=0 stop=0 first=0 last=1
 *		times in seconds; between the two given places of the volume
 *	promise cgroup=0 volume=0 reads=1 writes=0 ios=0 floor=0 importance=100
 *	speed at=0 leaf=0 factor=1
 *		the disk becomes so much faster
 *	move at=0 client=0 first=0 last=1
 *		the client goes elsewhere
 *
 * It prints {"tick_s", "writes", "promises": [{"floor", "rate": [], "state": [],
 * "phi": [], "gain": [], "weight": [[]]}], "clients": [{"rate": []}]} with an element
 * for each tick, of weight one list for each leaf.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"

#define MAX_WORDS 16

/**
 * struct option - a number of a line
 * @value:	what it is if it is not said, then what was said
 */
struct option {
	const char *name;
	double low;
	double high;
	double value;
};

static unsigned int line_number;

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

static struct option *find(struct option *options, const char *name)
{
	for (; options->name; options++)
		if (!strcmp(options->name, name))
			return options;
	die("there is no %s here", name);
}

static double get(struct option *options, const char *name)
{
	return find(options, name)->value;
}

static void parse(struct option *options)
{
	char *word;

	while ((word = strtok(NULL, " \t\n"))) {
		char *sign = strchr(word, '='), *end;
		struct option *option;

		if (!sign)
			die("%s: not name=number", word);
		*sign = '\0';
		option = find(options, word);
		option->value = strtod(sign + 1, &end);
		if (end == sign + 1 || *end || isnan(option->value) ||
		    option->value < option->low || option->value > option->high)
			die("%s=%s: a number from %g to %g", word, sign + 1,
			    option->low, option->high);
	}
}

static u32 next(u32 nr, u32 most)
{
	if (nr == most)
		die("no more than %u of these", most);
	return nr;
}

static u64 ns(double s)
{
	return s * NSEC_PER_SEC;
}

static void say_run(struct loop *loop)
{
	struct option o[] = {
		{ "seconds", 0, 1000, 10 },
		{ "tick_ms", 10, 5000, 250 },
		{ "lag_ms", 0, 5000, 5 },
		{ "noise", 0, 1, 0 },
		{ "seed", 0, 1e9, 1 },
		{ "control", 0, 1, 1 },
		{},
	};

	parse(o);
	loop->run_ns = ns(get(o, "seconds"));
	loop->tick_ns = ns(get(o, "tick_ms") / 1000);
	loop->lag_ns = ns(get(o, "lag_ms") / 1000);
	loop->noise = get(o, "noise");
	loop->seed = get(o, "seed");
	loop->is_controlled = get(o, "control");
}

static void say_leaf(struct loop *loop)
{
	struct option o[] = {
		{ "hdd", 0, 1, 1 },
		{ "slow", 0.1, 1000, 1 },
		{},
	};
	struct hdd_model hdd = hdd_default;
	struct flash_model flash = ssd_default;
	double slow;

	parse(o);
	next(loop->leaves, LOOP_LEAVES);
	slow = get(o, "slow");
	hdd.rpm /= slow;
	hdd.bandwidth_kbps /= slow;
	hdd.seek_min_ns *= slow;
	hdd.seek_max_ns *= slow;
	flash.read_ns *= slow;
	flash.write_ns *= slow;
	flash.bus_kbps /= slow;
	loop_add_leaf(loop, get(o, "hdd") ? &hdd : NULL, &flash);
}

static void say_volume(struct loop *loop)
{
	struct option o[] = {
		{ "kind", 0, VOLUME_KINDS - 1, 0 },
		{ "leaves", 0, (1U << LOOP_LEAVES) - 1, 1 },
		{ "chunk", 4096, 1 << 24, 65536 },
		{ "part", 0, 63, 0 },
		{ "parts", 1, 64, 1 },
		{},
	};
	u32 number = next(loop->volumes, LOOP_VOLUMES), bits, l;
	struct volume *volume = &loop->volume[number];

	parse(o);
	volume->kind = get(o, "kind");
	volume->chunk_bytes = get(o, "chunk");
	volume->leaf_bytes = U64_MAX;
	bits = get(o, "leaves");
	for (l = 0; l < loop->leaves && volume->nr < MAX_LEAVES; l++)
		if (bits & (1U << l)) {
			struct leaf *leaf = &loop->leaf[l];

			volume->leaf[volume->nr++] = leaf;
			volume->leaf_bytes =
				min(volume->leaf_bytes, leaf->disk.size_bytes);
		}
	if (!volume->nr || bits >> loop->leaves)
		die("a volume is on leaves that there are");
	volume->leaf_bytes /= get(o, "parts");
	volume->leaf_bytes -= volume->leaf_bytes % (16 << 20);
	for (l = 0; l < volume->nr; l++)
		volume->first_byte[l] = get(o, "part") * volume->leaf_bytes;
	loop->volumes++;
}

static void say_cgroup(struct loop *loop)
{
	struct option o[] = {
		{ "parent", 0, loop->cgroups - 1, 0 },
		{ "weight", 1, 10000, 100 },
		{},
	};
	u32 number = next(loop->cgroups, LOOP_CGROUPS);

	parse(o);
	loop->cgroup[number].parent = get(o, "parent");
	loop->cgroup[number].weight = get(o, "weight");
	loop->cgroups++;
}

static void say_client(struct loop *loop)
{
	struct option o[] = {
		{ "cgroup", 0, loop->cgroups - 1, 0 },
		{ "volume", 0, loop->volumes - 1.0, 0 },
		{ "write", 0, 1, 0 },
		{ "async", 0, 1, 0 },
		{ "random", 0, 1, 0 },
		{ "bytes", 512, 16 << 20, 131072 },
		{ "depth", 1, 1024, 16 },
		{ "think_us", 0, 1e7, 0 },
		{ "start", 0, 1000, 0 },
		{ "stop", 0, 1000, 0 },
		{ "first", 0, 1, 0 },
		{ "last", 0, 1, 1 },
		{},
	};
	struct loop_client *c =
		&loop->client[next(loop->clients, LOOP_CLIENTS)];

	parse(o);
	c->cgroup = get(o, "cgroup");
	c->volume = get(o, "volume");
	c->first = get(o, "first");
	c->last = get(o, "last");
	c->job = (struct job){
		.op = get(o, "write") ? SUTRO_WRITE : SUTRO_READ,
		.async = get(o, "async"),
		.random = get(o, "random"),
		.bytes = get(o, "bytes"),
		.iodepth = get(o, "depth"),
		.think_ns = get(o, "think_us") * 1000,
		.start_ns = ns(get(o, "start")),
		.stop_ns = ns(get(o, "stop")),
	};
	loop->clients++;
}

static void say_promise(struct loop *loop)
{
	struct option o[] = {
		{ "cgroup", 0, loop->cgroups - 1, 0 },
		{ "volume", 0, loop->volumes - 1.0, 0 },
		{ "reads", 0, 1, 1 },
		{ "writes", 0, 1, 0 },
		{ "ios", 0, 1, 0 },
		{ "floor", 1e-3, 1e12, 0 },
		{ "importance", 0, 1000, 100 },
		{},
	};
	struct loop_promise *p =
		&loop->promise[next(loop->promises, LOOP_PROMISES)];

	parse(o);
	p->cgroup = get(o, "cgroup");
	p->volume = get(o, "volume");
	p->reads = get(o, "reads");
	p->writes = get(o, "writes");
	p->ios = get(o, "ios");
	p->floor = get(o, "floor");
	p->importance = get(o, "importance");
	if (!(p->floor > 0))
		die("a promise has a floor");
	loop->promises++;
}

static void say_speed(struct loop *loop)
{
	struct option o[] = {
		{ "at", 0, 1000, 0 },
		{ "leaf", 0, loop->leaves - 1.0, 0 },
		{ "factor", 0.01, 100, 1 },
		{},
	};
	u32 number = next(loop->events, LOOP_EVENTS);

	parse(o);
	loop->event[number] = (struct loop_event){
		.at_ns = ns(get(o, "at")),
		.leaf = get(o, "leaf"),
		.speed = get(o, "factor"),
		.client = CONTROL_NONE,
	};
	loop->events++;
}

static void say_move(struct loop *loop)
{
	struct option o[] = {
		{ "at", 0, 1000, 0 },
		{ "client", 0, loop->clients - 1.0, 0 },
		{ "first", 0, 1, 0 },
		{ "last", 0, 1, 1 },
		{},
	};
	u32 number = next(loop->events, LOOP_EVENTS);

	parse(o);
	loop->event[number] = (struct loop_event){
		.at_ns = ns(get(o, "at")),
		.client = get(o, "client"),
		.first = get(o, "first"),
		.last = get(o, "last"),
	};
	loop->events++;
}

static const struct {
	const char *word;
	void (*say)(struct loop *loop);
} sayings[] = {
	{ "run", say_run },	  { "leaf", say_leaf },
	{ "volume", say_volume }, { "cgroup", say_cgroup },
	{ "client", say_client }, { "promise", say_promise },
	{ "speed", say_speed },	  { "move", say_move },
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

static void print_promise(const struct loop *loop, const struct loop_promise *p)
{
	u32 t, l;

	printf("{\"floor\": %.17g, \"rate\": [", p->floor);
	for (t = 0; t < loop->ticks; t++)
		printf("%s%.10g", t ? ", " : "", p->ticks[t].rate);
	printf("], \"state\": [");
	for (t = 0; t < loop->ticks; t++)
		printf("%s\"%s\"", t ? ", " : "",
		       control_state_to_string(p->ticks[t].state));
	printf("], \"phi\": [");
	for (t = 0; t < loop->ticks; t++)
		printf("%s%.5f", t ? ", " : "", p->ticks[t].phi);
	printf("], \"gain\": [");
	for (t = 0; t < loop->ticks; t++)
		printf("%s%.5f", t ? ", " : "", p->ticks[t].gain);
	printf("], \"weight\": [");
	for (l = 0; l < loop->leaves; l++) {
		printf("%s[", l ? ", " : "");
		for (t = 0; t < loop->ticks; t++)
			printf("%s%u", t ? ", " : "", p->ticks[t].weight[l]);
		printf("]");
	}
	printf("]}");
}

static void print_loop(const struct loop *loop)
{
	u32 i, t;

	printf("{\"tick_s\": %g, \"writes\": %llu,\n\"promises\": [",
	       loop->tick_ns / 1e9, (unsigned long long)loop->writes);
	for (i = 0; i < loop->promises; i++) {
		printf("%s", i ? ",\n" : "");
		print_promise(loop, &loop->promise[i]);
	}
	printf("],\n\"clients\": [");
	for (i = 0; i < loop->clients; i++) {
		const struct loop_client *c = &loop->client[i];

		printf("%s{\"rate\": [", i ? ",\n" : "");
		for (t = 0; t < loop->ticks; t++)
			printf("%s%.10g", t ? ", " : "",
			       c->ticks_bytes[t] * 1e9 / loop->tick_ns);
		printf("]}");
	}
	printf("]}\n");
}

int main(void)
{
	struct loop *loop = loop_new();

	read_scenario(loop, stdin);
	loop_run(loop);
	print_loop(loop);
	loop_free(loop);
	return 0;
}
