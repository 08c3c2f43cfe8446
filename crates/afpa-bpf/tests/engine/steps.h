/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One step of the engine by numbers, and its whole state as numbers: how the model is compared with it. */
#ifndef AFPA_TEST_STEPS_H
#define AFPA_TEST_STEPS_H

#include <afpa/tcp/ack.h>
#include <afpa/tcp/transmit.h>

enum what { STEP_BEGIN, STEP_ACK, STEP_TIME, STEP_SEND, STEP_NARROWED };

/* What happens. */
struct step {
	__u64 now;
	__u32 what;
	__u32 length, segment, window; /* STEP_BEGIN */
	struct acknowledgement ack;    /* STEP_ACK */
};

/* What came of it: `result`, a transmission, and the state behind it. */
#define STATE_NUMBERS 49

struct state {
	__u64 result;
	__u64 offset, length, again, reduced, markable, last;
	__u64 numbers[STATE_NUMBERS];
};

static __always_inline void tell(const struct flight *f, struct state *state)
{
	__u64 *to = state->numbers;
	__u32 i = 0;

	to[i++] = f->timer == TIMER_NONE ? 0 : f->deadline;
	to[i++] = f->base;
	to[i++] = f->progress;
	to[i++] = f->path.used;
	to[i++] = f->path.smoothed;
	to[i++] = f->path.variation;
	to[i++] = f->path.shortest;
	to[i++] = f->path.window;
	to[i++] = f->path.threshold;
	to[i++] = f->path.reordering;
	to[i++] = f->path.patience;
	to[i++] = f->path.persist;
	to[i++] = f->sacked.word[0];
	to[i++] = f->sacked.word[1];
	to[i++] = f->lost.word[0];
	to[i++] = f->lost.word[1];
	to[i++] = f->again.word[0];
	to[i++] = f->again.word[1];
	to[i++] = f->length;
	to[i++] = f->unit;
	to[i++] = f->una;
	to[i++] = f->edge;
	to[i++] = f->newest_sent_at;
	to[i++] = f->newest_round_trip;
	to[i++] = f->path.credit;
	to[i++] = f->peak;
	to[i++] = f->path.undo_window;
	to[i++] = f->path.undo_threshold;
	to[i++] = f->path.undo_open;
	to[i++] = f->count;
	to[i++] = f->next;
	to[i++] = f->front;
	to[i++] = f->newest_known;
	to[i++] = f->newest_segment;
	to[i++] = f->recovery;
	to[i++] = f->recovery_until;
	to[i++] = f->urgent;
	to[i++] = f->probe;
	to[i++] = f->probe_segment;
	to[i++] = f->asking;
	to[i++] = f->timer;
	to[i++] = f->backoff;
	to[i++] = f->path.reduced;
	to[i++] = f->reduced_until;
	to[i++] = f->patient_until;
	to[i++] = f->narrow;
	to[i++] = f->sent_at[0];
	to[i++] = f->sent_at[f->next & (ENGINE_SEGMENTS - 1)];
	to[i++] = f->sent_at[(f->next - 1) & (ENGINE_SEGMENTS - 1)];
}

static __always_inline void take_step(struct flight *f, struct step *step, struct state *state)
{
	struct transmission t = {};
	struct path path;

	switch (step->what) {
	case STEP_BEGIN:
		path_new(&path);
		state->result = flight_begin(f, step->now, step->length, step->segment, step->window, &path);
		break;
	case STEP_ACK:
		state->result = flight_on_ack(f, step->now, &step->ack);
		break;
	case STEP_TIME:
		state->result = flight_on_time(f, step->now);
		break;
	case STEP_NARROWED:
		flight_narrowed(f, step->now);
		state->result = PROGRESS_GOING;
		break;
	case STEP_SEND:
		state->result = flight_poll_send(f, step->now, &t);
		break;
	}
	state->offset = t.offset;
	state->length = t.length;
	state->again = t.again;
	state->reduced = t.reduced;
	state->markable = t.markable;
	state->last = t.last;
	tell(f, state);
}

#endif
