/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Properties of the scaling for bfq, for random sets of siblings:
 *
 *	every result is in 1..1000;
 *	the order of the weights is kept, equal stays equal;
 *	each ratio to the largest is kept within half a step of bfq's scale;
 *	a set that fits is not changed, and one whose shortened ratio fits is exact.
 */

#include <stdio.h>

#include "actuate.h"
#include "fake.h"

#define SETS cases(20000)
#define SIBLINGS_MAX 40

static uint64_t state = 88172645463325252ULL;

static uint64_t random_below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

/* Small and large weights are as likely as each other. */
static uint64_t random_weight(void)
{
	static const uint64_t tops[] = { 10, 100, 1000, 10000 };
	uint64_t step = random_below(3) ? 1 : 100;
	uint64_t w = random_below(tops[random_below(4)]) / step * step;

	return w ?: 1;
}

static void check_set(const uint64_t *w, size_t n)
{
	uint64_t divisor = 0, largest = 0;
	struct scale s = {};

	for (size_t i = 0; i < n; i++)
		scale_add(&s, w[i]);
	for (size_t i = 0; i < n; i++) {
		uint64_t a = w[i], b = divisor;

		while (b) {
			uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		divisor = a;
		if (w[i] > largest)
			largest = w[i];
	}
	check(s.max == largest && s.gcd == divisor);
	for (size_t i = 0; i < n; i++) {
		uint64_t r = scale_apply(&s, w[i]);
		uint64_t top = scale_apply(&s, largest);
		double exact = (double)w[i] * top / largest;

		check(r >= 1 && r <= 1000);
		if (largest <= 1000)
			check(r == w[i]);
		else if (largest / divisor <= 1000)
			check(r * largest == w[i] * top);
		else
			check(r == 1 ||
			      (r - exact <= 0.5001 && exact - r <= 0.5001));
		for (size_t j = 0; j < n; j++) {
			if (w[i] <= w[j])
				check(r <= scale_apply(&s, w[j]));
		}
	}
}

static uint64_t apply(uint64_t max, uint64_t gcd, uint64_t w)
{
	struct scale s = { .max = max, .gcd = gcd };

	return scale_apply(&s, w);
}

int main(void)
{
	uint64_t w[SIBLINGS_MAX];

	/* 200 against 100 stays so; 1500 : 100 is 990 : 66; 10000 : 1 at best
	 * 1000 : 1.
	 */
	check(apply(200, 100, 200) == 200 && apply(200, 100, 100) == 100);
	check(apply(1500, 100, 1500) == 990 && apply(1500, 100, 100) == 66);
	check(apply(10000, 1, 10000) == 1000 && apply(10000, 1, 1) == 1);
	for (unsigned int set = 0; set < SETS; set++) {
		size_t n = 1 + random_below(SIBLINGS_MAX);

		for (size_t i = 0; i < n; i++)
			w[i] = random_weight();
		check_set(w, n);
	}
	return 0;
}
