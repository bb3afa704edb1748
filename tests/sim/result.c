// SPDX-License-Identifier: GPL-2.0-only
/*
 * The result of a scenario as JSON, for program.py.
 *
 * {"tick_s", "writes",
 *	"promises": [{"floor", "ticks": [[]]}],
 *		of each tick: rate, state, phi, gain, reserve, and the weight on each leaf
 *	"clients": [{"rate": [], "late": [], "p50_ns", "p95_ns", "p99_ns", "p999_ns"}],
 *		of each tick: bytes a second, and the part of requests that were late
 *	"truth": [[]],
 *		for each tick, leaf and cgroup: time_ns, rbytes, wbytes, rios, wios,
 *		charged_ns, all since the begin
 *	"windows": [[]],
 *		for each tick and leaf: shared part of 1024, length of a cycle,
 *		&leaf.late_ns
 *	"costs": [""]}
 *		of each leaf in the end, on one line
 */
#include <stdio.h>
#include <string.h>

#include "result.h"
#include "sutro-prior.h"

static void print_promise(const struct loop *loop, const struct loop_promise *p)
{
	u32 t, l;

	printf("{\"floor\": %.17g, \"ticks\": [", p->floor);
	for (t = 0; t < loop->ticks; t++) {
		printf("%s[%.10g, \"%s\", %.5f, %.5f, %.5f", t ? ", " : "",
		       p->ticks[t].rate,
		       control_state_to_string(p->ticks[t].state),
		       p->ticks[t].phi, p->ticks[t].gain, p->ticks[t].reserve);
		for (l = 0; l < loop->leaves; l++)
			printf(", %u", p->ticks[t].weight[l]);
		printf("]");
	}
	printf("]}");
}

static void print_client(const struct loop *loop, const struct loop_client *c)
{
	const struct histogram *latency = &c->client.latency;
	u32 t;

	printf("{\"p50_ns\": %.0f, \"p95_ns\": %.0f, \"p99_ns\": %.0f, "
	       "\"p999_ns\": %.0f, ",
	       histogram_quantile(latency, 0.5),
	       histogram_quantile(latency, 0.95),
	       histogram_quantile(latency, 0.99),
	       histogram_quantile(latency, 0.999));
	printf("\"rate\": [");
	for (t = 0; t < loop->ticks; t++)
		printf("%s%.10g", t ? ", " : "",
		       c->ticks_bytes[t] * 1e9 / loop->tick_ns);
	printf("], \"late\": [");
	for (t = 0; t < loop->ticks; t++)
		printf("%s%.5g", t ? ", " : "", c->ticks_late[t]);
	printf("]}");
}

static void print_truth(const struct loop *loop)
{
	const struct loop_truth *row = loop->truth;
	size_t i, nr = (size_t)loop->ticks * loop->leaves * loop->cgroups;

	for (i = 0; i < nr; i++, row++) {
		const struct mdisk_counts *c = &row->counts;

		printf("%s[%llu, %llu, %llu, %llu, %llu, %llu]", i ? ",\n" : "",
		       c->time_ns, c->bytes[MDISK_READ], c->bytes[MDISK_WRITE],
		       c->ios[MDISK_READ], c->ios[MDISK_WRITE],
		       row->charged_ns);
	}
}

static void print_windows(const struct loop *loop)
{
	const struct loop_window *row = loop->window;
	size_t i, nr = (size_t)loop->ticks * loop->leaves;

	for (i = 0; i < nr; i++, row++)
		printf("%s[%u, %llu, %llu]", i ? ",\n" : "", row->part,
		       row->cycle_ns, row->late_ns);
}

static void print_costs(const struct loop *loop)
{
	char text[SUTRO_PRIOR_TEXT_BYTES], *c;
	struct sutro_prior prior;
	u32 l;

	for (l = 0; l < loop->leaves; l++) {
		sutro_prior_read(&loop->leaf[l].device, &prior);
		sutro_prior_format(&prior, text);
		while ((c = strchr(text, '\n')))
			*c = ' ';
		printf("%s\"%s\"", l ? ", " : "", text);
	}
}

void result_print(const struct loop *loop)
{
	u32 i;

	printf("{\"tick_s\": %g, \"writes\": %llu,\n\"promises\": [",
	       loop->tick_ns / 1e9, (unsigned long long)loop->writes);
	for (i = 0; i < loop->promises; i++) {
		printf("%s", i ? ",\n" : "");
		print_promise(loop, &loop->promise[i]);
	}
	printf("],\n\"clients\": [");
	for (i = 0; i < loop->clients; i++) {
		printf("%s", i ? ",\n" : "");
		print_client(loop, &loop->client[i]);
	}
	printf("],\n\"truth\": [");
	if (loop->truth)
		print_truth(loop);
	printf("],\n\"windows\": [");
	if (loop->window)
		print_windows(loop);
	printf("],\n\"costs\": [");
	print_costs(loop);
	printf("]}\n");
}
