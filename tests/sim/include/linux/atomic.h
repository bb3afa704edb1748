/* SPDX-License-Identifier: GPL-2.0-only */
/* Atomic operations of the kernel in userspace, for one thread. */
#ifndef SIM_LINUX_ATOMIC_H
#define SIM_LINUX_ATOMIC_H

typedef struct {
	int counter;
} atomic_t;

#define atomic_read(v) ((v)->counter)
#define atomic_inc_return(v) (++(v)->counter)
#define atomic_dec_and_test(v) (!--(v)->counter)

#define try_cmpxchg(p, old, value)                            \
	({                                                    \
		__auto_type p_ = (p);                         \
		__auto_type old_ = (old);                     \
		bool same_ = *p_ == *old_;                    \
                                                              \
		*(same_ ? p_ : old_) = same_ ? (value) : *p_; \
		same_;                                        \
	})

#endif /* SIM_LINUX_ATOMIC_H */
