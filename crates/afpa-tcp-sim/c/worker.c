/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The TCP sender of the eBPF programs as a process, compiled with sanitizers. It reads batches of steps, a
 * count first, and answers each with as many states. Each step names one of SENDERS senders.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef unsigned long long __u64;
typedef long long __s64;

/* Sanitized code that is inlined everywhere takes five times as long to compile. */
#undef __always_inline
#define __always_inline inline
#define __noinline __attribute__((noinline, unused))
#define AFPA_USER_SPACE

#include "steps.h"

#define SENDERS 512

_Static_assert(sizeof(struct step) == 144, "src/step.rs");

int main(void)
{
	static struct sender senders[SENDERS];
	static struct step steps[SENDERS];
	static struct state states[SENDERS];
	__u32 count;

	while (fread(&count, sizeof(count), 1, stdin) == 1) {
		if (count > SENDERS || fread(steps, sizeof(*steps), count, stdin) != count)
			return 1;
		for (__u32 i = 0; i < count; i++)
			take_step(&senders[steps[i].sender % SENDERS], &steps[i], &states[i]);
		if (fwrite(states, sizeof(*states), count, stdout) != count || fflush(stdout))
			return 1;
	}
	return 0;
}
