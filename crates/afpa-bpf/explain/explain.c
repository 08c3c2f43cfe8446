/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs' request parser as a library, for `afpa explain`: the very file of the differential test, whose process is
 * never run here. So an explanation says what the programs do, and the test says that this is right.
 *
 * One caller at a time: the tables are static.
 */
#define main afpa_explain_unused_process
#include "../tests/agree/user_space.c"
#undef main

enum { SITES, OBJECTS, SLOTS, SHARED, FIELDS };

/* Makes the tables at the first call, and takes the objects out. 0: there is no memory. */
int afpa_explain_clear(void)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		if (!tables[i].entries)
			tables[i].entries = calloc(tables[i].max, tables[i].key_size + tables[i].value_size);
		if (!tables[i].entries)
			return 0;
	}
	tables[OBJECTS].used = 0;
	return 1;
}

/* Enters key and value, of the sizes that the table has. An array's key is its index. 0: they do not fit. */
int afpa_explain_put(__u32 at, const __u8 *key, __u32 key_length, const __u8 *value, __u32 length)
{
	struct table *table = at <= FIELDS ? &tables[at] : NULL;
	__u32 index;

	if (!table || length != table->value_size || key_length != (table->key_size ? table->key_size : sizeof(index)))
		return 0;
	memcpy(&index, key, sizeof(index));
	if (table->map == &shared) {
		memcpy(&shared, value, sizeof(shared));
	} else if (table->key_size) {
		if (table->used == table->max)
			return 0;
		memcpy(entry(table, table->used), key, key_length);
		memcpy((__u8 *)entry(table, table->used++) + key_length, value, length);
	} else {
		if (index >= table->max)
			return 0;
		memcpy(entry(table, index), value, length);
	}
	return 1;
}

/* The verdict on a head, as in verdict.h. */
__u32 afpa_explain_judge(const __u8 *head, __u32 length, __u32 may_close)
{
	struct work *work = own_work();

	work->request.may_close = may_close;
	shared.generation++; /* remember no block: classes of fields may have changed */
	return judge_bytes(work, head, length);
}
