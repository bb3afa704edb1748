/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Usage: fuzz-sample [libFuzzer's arguments, FILES]
 *
 * A libFuzzer target: the input is the content of the counter files of three cgroups, /, /a and
 * /a/b, in sections that begin with "@CGROUP/FILE" (io.stat, io.sutro.stat, io.sutro.active). Both
 * samplers read them on a machine with a leaf of sutro and one of another scheduler. A section
 * may come again: the later one is what the next sample reads. When the files no longer change, the
 * sums no longer change either.
 *
 *	@a/io.sutro.stat
 *	8:0 time_ns=1000 rbytes=4096 rios=1 queued=2
 */

#include <math.h>

#include "fake.h"
#include "host/sampler.h"

#define CGROUPS 3U
#define DEVICES 2U
#define SAMPLES 8U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[CGROUPS] = { "/", "a", "b" };
static const char *const files[] = { "io.stat", "io.sutro.stat",
				     "io.sutro.active" };

/** struct world - three cgroups, each in the one before */
static struct world {
	struct cgroup cgroups[CGROUPS];
	char *contents[CGROUPS][ARRAY_SIZE(files)];
	struct device devices[DEVICES];
} world;

/* ---- functions of cgroup.c, on the contents ---- */

struct cgroup *cgroup_next(const struct cgroup *top, struct cgroup *c)
{
	return c < &world.cgroups[CGROUPS - 1] ? c + 1 : NULL;
}

void cgroup_cursor_begin(struct cgroup_cursor *k, struct cgroup *root)
{
	k->top = root;
	k->next = root;
}

struct cgroup *cgroup_cursor_next(struct cgroup_cursor *k)
{
	struct cgroup *c = k->next;

	k->next = c ? cgroup_next(k->top, c) : NULL;
	return c;
}

struct cgroup *cgroup_by_inode(const struct cgroup_tree *t, uint64_t inode)
{
	for (size_t i = 0; i < CGROUPS; i++)
		if (world.cgroups[i].inode == inode)
			return &world.cgroups[i];
	return NULL;
}

int cgroup_read_lines(const struct cgroup *c, const char *file,
		      int (*on_line)(char *line, void *userdata),
		      void *userdata)
{
	_cleanup_free_ char *text = NULL;
	char *save = NULL;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (streq(files[i], file))
			text = world.contents[c - world.cgroups][i];
	if (!text)
		return -ENOENT;
	text = strdup(text);
	check(text);
	for (char *line = strtok_r(text, "\n", &save); line && !r;
	     line = strtok_r(NULL, "\n", &save))
		r = on_line(line, userdata);
	return r;
}

/* ---- the input ---- */

/* Return: the content that a section "@CGROUP/FILE" replaces; NULL: no section begins here. */
static char **section(const char *line)
{
	for (size_t c = 0; c < CGROUPS && *line == '@'; c++) {
		const char *file = startswith(line + 1, names[c]);

		for (size_t f = 0; file && f < ARRAY_SIZE(files); f++)
			if (streq(file + (*file == '/'), files[f]))
				return &world.contents[c][f];
	}
	return NULL;
}

static void take_samples(struct sampler *samplers, const struct topology *t)
{
	for (size_t i = 0; i < SAMPLER_SLOTS; i++)
		check(sampler_take(&samplers[i], world.cgroups, t,
				   (samplers[i].n + 1) * 1000000ULL) == 0);
}

/* A repeated section ends a period: the samplers see what stands there before. */
static void read_input(char *text, struct sampler *samplers,
		       const struct topology *t)
{
	unsigned int n_samples = 0;
	char **now = NULL, *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char **next = section(line), *longer;

		if (next && *next && n_samples++ < SAMPLES)
			take_samples(samplers, t);
		if (next) {
			free(*next);
			*next = strdup("");
			check(*next);
			now = next;
		} else if (now) {
			longer = asprintf_or_null("%s%s\n", *now, line);
			check(longer);
			free(*now);
			*now = longer;
		}
	}
}

static void check_sums(const struct sampler *s, struct usage *sums,
		       bool is_steady)
{
	for (size_t c = 0; c < CGROUPS; c++)
		for (size_t d = 0; d < DEVICES; d++) {
			const struct device *device = &world.devices[d];
			struct cgroup *cgroup = &world.cgroups[c];
			struct usage *before = &sums[c * DEVICES + d];
			const struct usage *u = sample_usage(s, cgroup, device);
			struct latencies l = {};

			check(!is_steady || (u->time_ns == before->time_ns &&
					     u->rbytes == before->rbytes &&
					     u->wbytes == before->wbytes &&
					     u->wait_ns == before->wait_ns &&
					     u->queued == before->queued));
			*before = *u;
			check(isfinite(sample_got(s, cgroup, device)));
			sample_add_latencies(s, cgroup, device, &l);
			sample_latency_us(&l, 0.99);
		}
}

static void check_steady(struct sampler *samplers, const struct topology *t)
{
	struct usage sums[SAMPLER_SLOTS][CGROUPS * DEVICES] = {};

	for (size_t n = 0; n < 4; n++) {
		take_samples(samplers, t);
		for (size_t i = 0; i < SAMPLER_SLOTS; i++)
			check_sums(&samplers[i], sums[i], n == 3);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct device *devices[DEVICES] = { &world.devices[0],
					    &world.devices[1] };
	const struct topology t = { .devices = devices, .n_devices = DEVICES };
	struct sampler samplers[SAMPLER_SLOTS] = {
		[SAMPLER_WATCHER] = { .slot = SAMPLER_WATCHER },
		[SAMPLER_GOVERNOR] = { .slot = SAMPLER_GOVERNOR },
	};
	char *text = strndup((const char *)data, size);

	check(text);
	world.devices[0] = (struct device){ .name = "sda",
					    .devno = 0x800,
					    .leaf = true,
					    .scheduler = "sutro" };
	world.devices[1] = (struct device){
		.name = "sdb", .devno = 0x810, .leaf = true, .scheduler = "bfq"
	};
	for (size_t i = 0; i < CGROUPS; i++)
		world.cgroups[i] = (struct cgroup){
			.inode = i + 1,
			.parent = i ? &world.cgroups[i - 1] : NULL,
			.sampled = SAMPLE_TIME | SAMPLE_RATE | SAMPLE_LATENCY,
		};
	read_input(text, samplers, &t);
	check_steady(samplers, &t);
	free(text);
	for (size_t i = 0; i < CGROUPS; i++) {
		samples_drop(&world.cgroups[i]);
		for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
			free(world.contents[i][f]);
			world.contents[i][f] = NULL;
		}
	}
	return 0;
}
