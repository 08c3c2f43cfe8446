/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The send engine as an ordinary process: steps on standard input, states on standard output. */
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

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline, unused))
#define AFPA_USER_SPACE

#include "steps.h"

int main(void)
{
	static struct sender flight;
	struct step step;

	while (fread(&step, sizeof(step), 1, stdin) == 1) {
		struct state state = {};

		take_step(&flight, &step, &state);
		if (fwrite(&state, sizeof(state), 1, stdout) != 1 || fflush(stdout))
			return 1;
	}
	return 0;
}
