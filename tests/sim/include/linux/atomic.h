/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's try_cmpxchg() in userspace, for one thread. */
#ifndef SIM_LINUX_ATOMIC_H
#define SIM_LINUX_ATOMIC_H

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
