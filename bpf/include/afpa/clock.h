/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Clocks: heartbeat and Date in one, and the units of timers.
 *
 * User mode beats at least once a second: it writes the Date entries of this second and the next, then `pulse`, one
 * word, so that no reader sees half of it. A pulse is valid for two seconds from the start of its second; after that
 * nothing new is answered, whether user mode lives or not. Entries of the last minutes stay, for answers that have to be
 * sent again with the same bytes.
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

/* The entry of a past Unix second. Whether it still is of that second, its field `second` tells. */
static __always_inline struct afpa_date *date_entry(__u32 second)
{
	return &shared.dates[second & 255];
}

/*
 * The clock of rtx timers and of `bypass_time`: 32 bits of coarse monotonic time, in units of 2^20 ns, about a
 * millisecond.
 */
static __always_inline __u32 rtx_clock(__u64 ns)
{
	return ns >> AFPA_TICK_SHIFT;
}

/* The clock of TCP timestamps, without an offset: a finer one than `rtx_clock` is made of. */
static __always_inline __u32 milliseconds(void)
{
	return bpf_ktime_get_ns() / MILLISECOND_NS;
}

/* The TCP sender's clock. */
static __always_inline __u64 microseconds(void)
{
	return bpf_ktime_get_ns() / 1000;
}

#endif
