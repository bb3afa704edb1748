/* SPDX-License-Identifier: GPL-2.0-only */
/* Those who read and write: each keeps some requests on their way. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "histogram.h"
#include "volume.h"

/**
 * struct job - the requests of a client
 * @op:		SUTRO_READ, SUTRO_WRITE, or SUTRO_OTHER: discards
 * @mixed:	percent of reads, each request a read or a write at random; 0 = all are @op
 * @async:	no task waits for its requests: writeback
 * @flush:	a flush of the drives' caches follows each write, as with fsync()
 * @random:	anywhere in its region, else in order
 * @bytes:	of a request
 * @iodepth:	requests on their way
 * @burst:	requests that are sent without thinking; all of them complete before it thinks
 * @think_ns:	from a completion to the next request, or burst
 * @poisson:	@think_ns is the mean of an exponential distribution
 * @await_bytes: after a burst it waits until other clients have transferred as much, if there are
 *		any
 * @start_ns:	when it begins
 * @stop_ns:	when it ends, 0 = never
 * @late_ns:	a request that takes longer is late, 0 = none is
 */
struct job {
	enum sutro_op op;
	u32 mixed;
	bool async;
	bool flush;
	bool random;
	u32 bytes;
	u32 iodepth;
	u32 burst;
	u64 think_ns;
	bool poisson;
	u64 await_bytes;
	u64 start_ns;
	u64 stop_ns;
	u64 late_ns;
};

/**
 * struct client - a job at work
 * @group:	its cgroup on each leaf
 * @first_byte:	where its region begins
 * @region_bytes: and how long that is
 * @next_byte:	where the next sequential request begins
 * @begin_ns:	the time from which the job's times count
 * @outstanding: requests on their way
 * @sent:	requests of this burst that were sent
 * @all_bytes:	completed bytes of all clients that wait for no other one
 * @awaits_bytes: the value of @all_bytes that it waits for
 * @asleep:	the leaf of which it waits for a slot, or NULL
 * @asleep_as:	its cgroup there, while it waits
 * @split:	the request that is being submitted in pieces
 * @split_op:	its operation
 * @split_byte:	its first byte
 * @split_next:	its next piece
 * @done_bytes:	completed bytes
 * @done_late:	requests among that that were late
 * @latency:	in ns
 */
struct client {
	const struct job *job;
	struct volume *volume;
	struct clock *clock;
	struct leaf_group *group[MAX_LEAVES];
	u64 first_byte;
	u64 region_bytes;
	u64 next_byte;
	u64 random;
	u64 begin_ns;
	u32 outstanding;
	u32 sent;
	u64 *all_bytes;
	u64 awaits_bytes;
	struct leaf *asleep;
	struct leaf_group *asleep_as;
	struct whole *split;
	enum sutro_op split_op;
	u64 split_byte;
	u32 split_next;
	u64 done_bytes;
	u64 done_ios;
	u64 done_late;
	struct histogram latency;
};

void client_start(struct client *client);
void client_done(void *client, void *whole, u32 bytes);

#endif /* SIM_CLIENT_H */
