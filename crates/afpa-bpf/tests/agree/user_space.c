/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs' request parser as an ordinary process: the same headers over a few lines that stand
 * in for the kernel's maps and helpers.
 *
 * Commands on standard input, numbers in host byte order:
 *     'U' table:u8 length:u32 key value    put an entry into a table (see `tables`)
 *     'B' count:u32 (length:u32 head)*     judge heads; answers `count` words on standard output
 *     'C' may_close:u8                     are later heads those of a connection that may be closed here?
 *     'F' count:u32 (length:u32 bytes)*    read requests that go up together; answers four words for each
 *     'N' count:u32 (length:u32 bytes)*    the place of an unsafe request's target; answers `count` words, 0 without one
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef unsigned long long __u64;
typedef long long __s64;

#undef __always_inline /* the C library has its own */
#define SEC(name)
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __uint(name, value) int name
#define __type(name, ...) __typeof__(__VA_ARGS__) *name
#define barrier() asm volatile("" ::: "memory")

struct bpf_spin_lock {
	__u32 val;
};

static void *bpf_map_lookup_elem(void *map, const void *key);

/* Nothing here has an age. */
static __u64 bpf_ktime_get_boot_ns(void)
{
	return 0;
}

static __u64 bpf_ktime_get_ns(void)
{
	return 0;
}

static long bpf_loop(__u32 turns, long (*turn)(__u32, void *), void *context, __u64 flags)
{
	for (__u32 i = 0; i < turns; i++)
		if (turn(i, context))
			break;
	return (long)flags;
}

#include <afpa/http/request.h>
#include <afpa/http/unsafe.h>
#include "verdict.h"

#define CHECKED 64 /* few enough for blocks to take each other's place */

/* Stands in for a map; looked through from its end, for new entries to win. Without a key: an array. */
static struct table {
	void *map;
	__u32 key_size, value_size, max, used;
	__u8 *entries;
} tables[] = {
	{ &sites, sizeof(struct afpa_site_key), sizeof(struct afpa_site), 64, 0, NULL },
	{ &objects, sizeof(struct afpa_object_key), sizeof(struct afpa_object), 1024, 0, NULL },
	{ &slots, 0, sizeof(struct afpa_slot), 4096, 0, NULL },
	{ &shared, 0, sizeof(shared), 1, 0, NULL },
	{ &fields, sizeof(struct afpa_field_name), sizeof(__u32), 1024, 0, NULL },
	{ &checked, 0, sizeof(struct afpa_checked), CHECKED, 0, NULL },
	{ &counters, 0, sizeof(__u64), AFPA_REASON_COUNT, 0, NULL },
	{ &ingress_work, 0, sizeof(struct work), 1, 0, NULL },
};

static void *entry(const struct table *table, __u32 at)
{
	return table->entries + (size_t)at * (table->key_size + table->value_size);
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	struct table *table = tables;

	while (table->map != map)
		table++;
	if (table->key_size == 0)
		return *(const __u32 *)key < table->max ? entry(table, *(const __u32 *)key) : NULL;
	for (__u32 i = table->used; i-- > 0;)
		if (memcmp(entry(table, i), key, table->key_size) == 0)
			return (__u8 *)entry(table, i) + table->key_size;
	return NULL;
}

static void take(void *to, size_t size)
{
	if (size && fread(to, size, 1, stdin) != 1)
		exit(2);
}

static __u32 take_number(void)
{
	__u32 number;

	take(&number, sizeof(number));
	return number;
}

static void update(void)
{
	__u32 at = getchar(), length = take_number(), key;
	struct table *table = at < sizeof(tables) / sizeof(*tables) ? &tables[at] : NULL;

	if (!table || length != table->value_size)
		exit(3);
	if (table->map == &shared) {
		take(&key, sizeof(key));
		take(&shared, sizeof(shared));
	} else if (table->key_size == 0) {
		key = take_number();
		if (key >= table->max)
			exit(3);
		take(entry(table, key), length);
	} else {
		if (table->used == table->max)
			exit(3);
		take(entry(table, table->used++), table->key_size + length);
	}
}

/* Bytes of earlier heads stay in it, as in the kernel. */
static struct work *own_work(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&ingress_work, &zero);
}

/* As load_head of the judge in the kernel does. */
static __u32 judge_bytes(struct work *work, const __u8 *bytes, __u32 length)
{
	if (length < 16 || length > AFPA_HEAD_MAX)
		return REQUEST_UNSURE | AFPA_PASS_HEAD_LENGTH << 2;
	memcpy(work->head, bytes, length);
	memset(work->head + length, 0, 64);
	return judge(work, length);
}

/* Each head twice: read line by line, as a rule, and compared with the remembered block. */
static void batch(void)
{
	struct work *work = own_work();
	static __u8 bytes[1 << 16];

	for (__u32 count = take_number(); count > 0; count--) {
		__u32 length = take_number(), verdict;

		if (length > sizeof(bytes))
			exit(3);
		take(bytes, length);
		verdict = judge_bytes(work, bytes, length);
		if (judge_bytes(work, bytes, length) != verdict)
			verdict |= VERDICT_CHANGED;
		fwrite(&verdict, sizeof(verdict), 1, stdout);
	}
	fflush(stdout);
}

/* As afpa_derive_others does, without packets. */
static void frame(struct work *work, const __u8 *bytes, __u32 length)
{
	struct passing *p = &work->passing;
	__u32 taken = TAKEN_ONE, words[4];

	*p = (struct passing){ .length = length, .listener = 1, .any_host_site = 1 };
	memcpy(work->head, bytes, length < AFPA_HEAD_MAX ? length : AFPA_HEAD_MAX);
	p->at = empty_line(work, length);
	for (int i = 0; i < PIPELINED_MAX && taken == TAKEN_ONE; i++) {
		__u32 there = length - p->at < AFPA_HEAD_MAX ? length - p->at : AFPA_HEAD_MAX;

		memcpy(work->head, bytes + p->at, there);
		memset(work->head + there, 0, 64);
		taken = take_request(work, there);
	}
	words[0] = taken;
	words[1] = p->requests;
	words[2] = p->head_bits;
	words[3] = p->at;
	fwrite(words, sizeof(words), 1, stdout);
}

static void frames(void)
{
	struct work *work = own_work();
	static __u8 bytes[1 << 16];

	for (__u32 count = take_number(); count > 0; count--) {
		__u32 length = take_number();

		if (length > sizeof(bytes))
			exit(3);
		take(bytes, length);
		frame(work, bytes, length);
	}
	fflush(stdout);
}

static void unsafe_targets(void)
{
	struct work *work = own_work();
	static __u8 bytes[1 << 16];

	for (__u32 count = take_number(); count > 0; count--) {
		__u32 length = take_number(), found;

		if (length > sizeof(bytes))
			exit(3);
		take(bytes, length);
		if (length > AFPA_HEAD_MAX)
			length = AFPA_HEAD_MAX;
		memcpy(work->head, bytes, length);
		memset(work->head + length, 0, 64);
		found = afpa_unsafe_target(work);
		fwrite(&found, sizeof(found), 1, stdout);
	}
	fflush(stdout);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		tables[i].entries = calloc(tables[i].max, tables[i].key_size + tables[i].value_size);
	for (;;) {
		switch (getchar()) {
		case 'U':
			update();
			break;
		case 'B':
			batch();
			break;
		case 'C':
			own_work()->request.may_close = getchar();
			break;
		case 'F':
			frames();
			break;
		case 'N':
			unsafe_targets();
			break;
		case EOF:
			return 0;
		default:
			return 3;
		}
	}
}
