/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Latency of bios at the device to which they were submitted.
 *
 *	block_bio_queue		remember when, if the device and a cgroup above the
 *				bio's owner are a pair that is measured
 *	block_bio_complete	count: the bio of a device with ->submit_bio (dm, md)
 *	block_rq_complete	count: bios of a request-based device (a disk, loop)
 *
 * Each layer of a stack submits bios of its own to the layer below, and block_bio_queue
 * is traced once for each bio: with the device to which it was submitted.
 *
 *	read of a unit ---- bio A on dm-0 (striped)		A is counted for dm-0
 *	                      |-- clone B on sda
 *	                      `-- clone C on sdb		when B and C have ended
 *
 * A driver that splits A chains the parts to A, and one that changes A's device
 * forwards the same bio: A ends when all of it has ended. The request-based layer
 * splits bios, too. There the end of a bio with parts has no tracepoint of its own;
 * see end_of().
 *
 * A bio that waits for io.max is traced when the wait is over: the limit of a unit is
 * not in its latency.
 */

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "host/latency-map.h"

/* Ancestors of the owner of a bio that are searched. */
#define DEPTH_MAX 32
/* A request has at most this many bios: a page each, of 4 MiB. */
#define BIOS_MAX 1024

#define OP_BITS 8
#define OP_READ 0
#define OP_WRITE 1

/* ---- types of the kernel: only the members that are read; BTF has their offsets ---- */

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct block_device {
	struct gendisk *bd_disk;
	__u32 bd_dev;
};

struct gendisk {
	struct block_device *part0;
};

struct bvec_iter {
	__u32 bi_size;
};

typedef struct {
	int counter;
} atomic_t;

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	__u8 bi_status;
	atomic_t __bi_remaining;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct blkcg_gq *bi_blkg;
};

struct request {
	struct bio *bio;
	void *end_io;
};

struct request_queue;

#pragma clang attribute pop

/* CO-RE replaces the values by those of the kernel that runs. */
enum req_flag_bits { __REQ_FUA, __REQ_PREFLUSH };

#define HAS_BIT(word, type, bit) \
	((word) >> bpf_core_enum_value(enum type, bit) & 1)

/* ---- maps ---- */

/**
 * struct flight - a bio that has not ended
 * @dev, @disk: those that are measured, 0 in place of others: where it was submitted,
 *	and the disk of that partition
 * @op: enum latency_op
 * @has_parts: the bio itself has ended before parts that were split from it
 */
struct flight {
	__u64 start_ns;
	__u32 dev;
	__u32 disk;
	__u32 op;
	__u32 has_parts;
};

/* Bios in flight, by address. An entry whose end was not seen is replaced in time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u64);
	__type(value, struct flight);
	__uint(max_entries, 4096); /* latency.c sets it by the number of CPUs */
} flights SEC(".maps");

/* Devices that are in a pair. For other devices, one look-up is enough. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, LATENCY_PAIRS_MAX);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct latency_pair);
	__type(value, struct latency_counts);
	__uint(max_entries, LATENCY_PAIRS_MAX);
} pairs SEC(".maps");

/* ---- owners ---- */

/**
 * struct walk - from the owner of a bio to the root
 * @ns: latency to count for each pair; 0: find out if there is a pair
 */
struct walk {
	struct cgroup_subsys_state *css;
	struct flight flight;
	__u64 ns;
	__u32 found;
};

static void visit(struct walk *w, __u64 cgroup, __u32 dev)
{
	struct latency_pair pair = { .cgroup = cgroup, .dev = dev };
	struct latency_counts *counts;
	__u32 op = w->flight.op, bucket;

	counts = dev ? bpf_map_lookup_elem(&pairs, &pair) : NULL;
	if (!counts)
		return;
	w->found = 1;
	bucket = histogram_bucket(w->ns);
	if (w->ns && op < LATENCY_OPS && bucket < HISTOGRAM_BUCKETS)
		__sync_fetch_and_add(&counts->count[op][bucket], 1);
}

/* BPF_CORE_READ(w->css, ...) would look for struct walk in the kernel. */
static long walk_step(__u64 i, struct walk *w)
{
	struct cgroup_subsys_state *css = w->css;
	__u64 cgroup;

	if (!css)
		return 1;
	cgroup = BPF_CORE_READ(css, cgroup, kn, id);
	visit(w, cgroup, w->flight.dev);
	visit(w, cgroup, w->flight.disk);
	w->css = BPF_CORE_READ(css, parent);
	return !w->ns && w->found;
}

static void walk(struct walk *w, struct bio *bio)
{
	struct blkcg *blkcg = BPF_CORE_READ(bio, bi_blkg, blkcg);

	if (!blkcg)
		return;
	w->css = &blkcg->css;
	bpf_loop(DEPTH_MAX, walk_step, w, 0);
}

/* ---- begin ---- */

/* Return: enum latency_op; LATENCY_OPS: not counted. */
static __u32 op_of(__u32 opf)
{
	switch (opf & ((1U << OP_BITS) - 1)) {
	case OP_READ:
		return LATENCY_READ;
	case OP_WRITE:
		return HAS_BIT(opf, req_flag_bits, __REQ_PREFLUSH) ||
				       HAS_BIT(opf, req_flag_bits, __REQ_FUA)
			       ? LATENCY_FSYNC
			       : LATENCY_WRITE;
	default:
		return LATENCY_OPS;
	}
}

static __u32 if_measured(__u32 dev)
{
	return bpf_map_lookup_elem(&devices, &dev) ? dev : 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	__u32 dev = bio->bi_bdev->bd_dev;
	__u32 disk = bio->bi_bdev->bd_disk->part0->bd_dev;
	struct walk w = {};
	__u64 key = (__u64)bio;

	w.flight.disk = disk != dev ? if_measured(disk) : 0;
	w.flight.dev = if_measured(dev);
	w.flight.op = op_of(bio->bi_opf);
	if ((!w.flight.dev && !w.flight.disk) || w.flight.op == LATENCY_OPS)
		return 0;
	walk(&w, bio);
	if (!w.found)
		return 0;
	w.flight.start_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&flights, &key, &w.flight, BPF_ANY);
	return 0;
}

/* ---- end ---- */

/* Count the latency of a bio, unless it has failed (@failed: a REQ_NOWAIT bio may fail at once). */
static void count(struct bio *bio, const struct flight *flight, bool failed)
{
	struct walk w = { .flight = *flight };
	__u64 key = (__u64)bio;

	/* 0 means that only the pair is searched, and no bio is that fast. */
	w.ns = bpf_ktime_get_ns() - flight->start_ns ?: 1;
	bpf_map_delete_elem(&flights, &key);
	if (!failed && !BPF_CORE_READ(bio, bi_status))
		walk(&w, bio);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, struct request_queue *q, struct bio *bio)
{
	__u64 key = (__u64)bio;
	struct flight *flight = bpf_map_lookup_elem(&flights, &key);

	if (flight)
		count(bio, flight, false);
	return 0;
}

/*
 * A request of the disk has served @bio. __bi_remaining is above 1 while other parts
 * of it have not ended. @bio may also be a part of a bio that is measured, which
 * bio_chain() has made the part's bi_private.
 */
static void end_of(struct bio *bio, bool failed)
{
	__u64 key = (__u64)bio, whole;
	struct flight *flight = bpf_map_lookup_elem(&flights, &key);

	if (flight) {
		if (BPF_CORE_READ(bio, __bi_remaining.counter) > 1)
			flight->has_parts = 1;
		else
			count(bio, flight, failed);
		return;
	}
	whole = (__u64)BPF_CORE_READ(bio, bi_private);
	flight = bpf_map_lookup_elem(&flights, &whole);
	if (flight && flight->has_parts &&
	    BPF_CORE_READ((struct bio *)whole, __bi_remaining.counter) == 1)
		count((struct bio *)whole, flight, failed);
}

/**
 * struct served - bios of a request
 * @bytes: that were completed
 * @failed: with an error
 */
struct served {
	struct bio *bio;
	__u32 bytes;
	bool failed;
};

static long served_step(__u64 i, struct served *s)
{
	struct bio *bio = s->bio;
	__u32 bytes;

	if (!bio)
		return 1;
	bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (bytes > s->bytes)
		return 1;
	s->bytes -= bytes;
	end_of(bio, s->failed);
	s->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_rq_complete, struct request *rq, int error,
	     unsigned int nr_bytes)
{
	struct served s = {
		.bio = rq->bio,
		.bytes = nr_bytes,
		.failed = error,
	};

	/*
	 * A write with flushes is completed once more after the last of them: until
	 * then blk-flush.c has its own end_io.
	 */
	if (s.bio && !rq->end_io)
		bpf_loop(BIOS_MAX, served_step, &s, 0);
	return 0;
}

char _license[] SEC("license") = "GPL";
