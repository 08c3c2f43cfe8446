/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Heartbeat and Date in one.
 *
 * User mode beats at least once a second: it writes the Date entries of the second that runs and of
 * the next, then `pulse`, one word, so that no reader sees half of it. A pulse vouches for two
 * seconds from the start of its second; after that nothing new is answered, whatever became of user
 * mode. Entries of the last minutes stay, for answers that have to be given again with the same bytes.
 */
#ifndef AFPA_CLOCK_H
#define AFPA_CLOCK_H

#include <afpa/maps.h>

#define SECOND_NS 1000000000ULL
#define MILLISECOND_NS 1000000ULL

/* The Date entry of now, or NULL: no heartbeat. `now` is coarse monotonic time. */
static __always_inline struct afpa_date *date_now(__u64 now)
{
	__u64 pulse = *(volatile __u64 *)&shared.pulse;
	/* The coarse clock runs a tick behind user mode's: the second may have begun "in the future". */
	__s64 since = now - (pulse & ~255ULL);
	__u32 index = pulse & 255;

	if (pulse == 0 || since >= 2 * (__s64)SECOND_NS)
		return NULL;
	if (since >= (__s64)SECOND_NS)
		index = (index + 1) & 255;
	return &shared.dates[index];
}

/* Where the Date of a past Unix second stands, if it still does: the entry's `second` tells. */
static __always_inline struct afpa_date *date_entry(__u32 second)
{
	return &shared.dates[second & 255];
}

/*
 * The clock of rtx timers and of `bypass_time`: 2^20 ns of coarse monotonic time, about a millisecond, in 32 bits.
 */
static __always_inline __u32 rtx_clock(__u64 ns)
{
	return ns >> AFPA_TICK_SHIFT;
}

/* The TCP sender's clock. */
static __always_inline __u64 microseconds(void)
{
	return bpf_ktime_get_ns() / 1000;
}

#endif
