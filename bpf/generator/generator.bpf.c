// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
/*
 * Closed-loop HTTP/1.1 client in TC ingress on the client's interface.
 *
 * User mode opens each connection through the kernel's TCP and fetches one response, while LEARN
 * writes down its sequence numbers. Then it hands the flow over (DRIVEN) with a first request sent
 * from a packet socket. From there on a response that is complete becomes the next request, in
 * the same packet buffer: no socket, no thread, no wake-up on the client's side.
 *
 * A DRIVEN flow has at most one request outstanding. Data is taken in order only; a gap or a
 * repetition is acknowledged at once, so the server's own loss recovery works, and user mode
 * re-sends a request that has been outstanding for too long.
 *
 * Flows form rings, and in each ring one flow is busy: when its response is complete, the next
 * flow asks. A ring of one flow asks again on the same; rings of many keep very many connections
 * in use, each now and then, as real clients do.
 */
#include "abi.h"
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536); /* for each client address: index (address, local port) */
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536); /* as many as flows: which flow asks after this one */
	__type(key, __u32);
	__type(value, __u32);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set at load */
	__type(key, __u32);
	__type(value, struct target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set at load: which target comes next, in proportion to weights */
	__type(key, __u32);
	__type(value, __u32);
} schedule SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct peer);
} peer SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HISTOGRAM_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} latency SEC(".maps");

/* The enums are used by value only; this keeps their names in the BTF. */
const volatile enum flow_state keep_flow_state = FLOW_KERNEL;
const volatile enum counter keep_counter = COUNT_RESPONSES;

static __always_inline void count(__u32 what, __u64 amount)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &what);

	if (counter)
		*counter += amount;
}

static __always_inline int drop(__u32 reason)
{
	count(reason, 1);
	return TC_ACT_SHOT;
}

static __always_inline __u32 log2_floor(__u64 value)
{
	__u32 log = 0;

#pragma unroll
	for (int step = 32; step > 0; step /= 2)
		if (value >> step) {
			value >>= step;
			log += step;
		}
	return log;
}

/* Bucket: HISTOGRAM_SUB for each octave, exact below HISTOGRAM_SUB. */
static __always_inline void count_latency(__u64 ns)
{
	__u32 octave = log2_floor(ns | 1);
	__u32 bucket = ns;
	__u64 *counter;

	if (octave >= HISTOGRAM_SUB_BITS)
		bucket = (octave - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB +
			 ((ns >> (octave - HISTOGRAM_SUB_BITS)) & (HISTOGRAM_SUB - 1));
	if (bucket >= HISTOGRAM_BUCKETS)
		bucket = HISTOGRAM_BUCKETS - 1;
	counter = bpf_map_lookup_elem(&latency, &bucket);
	if (counter)
		*counter += 1;
}

/* The place of a flow in its map, from which its address and port follow. */
struct place {
	__u32 index;
	__u32 source_first;
};

/* The flow that the packet belongs to; NULL: it is none of the generator's. */
static __always_inline struct flow *find_flow(struct __sk_buff *skb, const struct settings *set,
					      struct segment *segment, struct place *place)
{
	__u32 source;

	if (!set || read_segment(skb, segment))
		return NULL;
	source = segment->to - set->source_first;
	if (segment->from_port != set->server_port || source >= set->sources)
		return NULL;
	place->index = source << 16 | segment->to_port;
	place->source_first = set->source_first;
	return bpf_map_lookup_elem(&flows, &place->index);
}

static __always_inline struct target *next_target(struct flow *flow, const struct settings *set)
{
	__u32 slot = flow->cursor & set->schedule_mask;
	__u32 *target = bpf_map_lookup_elem(&schedule, &slot);

	if (!target)
		return NULL;
	flow->cursor++;
	flow->target = *target;
	return bpf_map_lookup_elem(&targets, target);
}

static __always_inline int turn_to_ack(struct __sk_buff *skb, const struct segment *segment,
				       struct flow *flow, const struct place *place, __u64 now)
{
	struct outgoing out = {
		.from = place->source_first + (place->index >> 16),
		.from_port = place->index,
		.seq = flow->seq,
		.ack = flow->ack,
		.ts_value = now / 1000000 + flow->ts_offset,
		.ts_echo = flow->ts_recent,
		.flags = TCP_ACK,
	};

	flow->unacked = 0;
	count(COUNT_ACKS, 1);
	return turn_round(skb, segment, &out, REQUEST_MAX, true);
}

static __always_inline int send_ack(struct __sk_buff *skb, const struct segment *segment,
				    struct flow *flow, const struct place *place, __u64 now)
{
	if (turn_to_ack(skb, segment, flow, place, now))
		return drop(COUNT_NO_PACKET);
	return bpf_redirect(skb->ifindex, 0);
}

static __always_inline int send_request(struct __sk_buff *skb, const struct segment *segment,
					struct flow *flow, const struct place *place,
					const struct target *target, __u32 seq, __u64 now,
					const bool swap)
{
	struct outgoing out = {
		.from = place->source_first + (place->index >> 16),
		.from_port = place->index,
		.seq = seq,
		.ack = flow->ack,
		.ts_value = now / 1000000 + flow->ts_offset,
		.ts_echo = flow->ts_recent,
		.payload = target->request,
		.length = target->request_length,
		.sum = target->request_sum,
		.flags = TCP_ACK | TCP_PSH,
	};

	flow->unacked = 0;
	if (turn_round(skb, segment, &out, REQUEST_MAX, swap))
		return drop(COUNT_NO_PACKET);
	return bpf_redirect(skb->ifindex, 0);
}

static __always_inline int ask(struct __sk_buff *skb, const struct segment *segment,
			       struct flow *flow, const struct place *place,
			       const struct settings *set, __u64 now, const bool swap)
{
	const struct target *target = next_target(flow, set);
	__u32 seq = flow->seq;

	if (!target)
		return drop(COUNT_NO_PACKET);
	flow->seq = seq + target->request_length;
	flow->sent_ns = now;
	count(COUNT_REQUESTS, 1);
	return send_request(skb, segment, flow, place, target, seq, now, swap);
}

/* The flow whose turn it is after this one; NULL: this one's again. */
static __always_inline struct flow *next_flow(struct place *place)
{
	__u32 *next = bpf_map_lookup_elem(&ring, &place->index);
	struct flow *flow;

	if (!next || *next == place->index)
		return NULL;
	flow = bpf_map_lookup_elem(&flows, next);
	if (!flow || flow->state != FLOW_DRIVEN || flow->sent_ns)
		return NULL; /* closed, or just being opened again */
	place->index = *next;
	return flow;
}

static __always_inline int complete(struct __sk_buff *skb, const struct segment *segment,
				    struct flow *flow, struct place *place,
				    const struct settings *set)
{
	__u64 now = bpf_ktime_get_ns();
	struct place next_place = *place;
	struct flow *next;

	count(COUNT_RESPONSES, 1);
	count_latency(now - flow->sent_ns);
	flow->responses++;
	flow->got = 0;
	flow->sent_ns = 0;
	if (!set->run)
		return send_ack(skb, segment, flow, place, now);
	next = next_flow(&next_place);
	if (!next)
		return ask(skb, segment, flow, place, set, now, true);
	if (set->late_acks)
		return ask(skb, segment, next, &next_place, set, now, true);
	/* This flow will be silent for a while, so its response is acknowledged by a copy. */
	if (turn_to_ack(skb, segment, flow, place, now) ||
	    bpf_clone_redirect(skb, skb->ifindex, 0))
		return drop(COUNT_NO_PACKET);
	return ask(skb, segment, next, &next_place, set, now, false);
}

/* The server repeats itself: it misses our acknowledgement, or the request that carried it. */
static __always_inline int repeated(struct __sk_buff *skb, const struct segment *segment,
				    struct flow *flow, const struct place *place,
				    const struct target *target)
{
	__u64 now = bpf_ktime_get_ns();

	count(COUNT_DUPLICATES, 1);
	if (flow->got > 0 || !flow->sent_ns)
		return send_ack(skb, segment, flow, place, now);
	count(COUNT_RESENT, 1);
	return send_request(skb, segment, flow, place, target,
			    flow->seq - target->request_length, now, true);
}

static __always_inline void check_status(struct __sk_buff *skb, __u32 payload,
					 const struct target *target)
{
	__u32 status = 0;

	if (bpf_skb_load_bytes(skb, payload + sizeof("HTTP/1.1 ") - 1, &status, sizeof(status)) ||
	    status != *(const __u32 *)target->status)
		count(COUNT_WRONG_STATUS, 1);
}

/*
 * Bytes of the response that begins here. Where the target has an Age, only the number of its digits
 * may differ, and they are counted: any other difference of the length is found as in any response.
 */
static __always_inline __u32 length_of(struct __sk_buff *skb, __u32 payload,
				       const struct target *target)
{
	__u8 age[AGE_DIGITS_MAX + 1];
	__u32 digits = 0;

	if (!target->age_at ||
	    bpf_skb_load_bytes(skb, payload + target->age_at, age, sizeof(age)))
		return target->response_length;
#pragma unroll
	for (int i = 0; i < AGE_DIGITS_MAX; i++)
		if (digits == i && age[i] >= '0' && age[i] <= '9')
			digits++;
	if (!digits || age[digits] != '\r')
		return target->response_length;
	return target->response_length - target->age_digits + digits;
}

/* Data in order: the bytes of it that are new, of a response that has to be as long as the target says. */
static __always_inline void receive(struct __sk_buff *skb, const struct segment *segment,
				    struct flow *flow, const struct target *target, __u32 old)
{
	__u32 fresh = segment->length - old, segments = skb->gso_segs ?: 1;

	if (flow->got == 0) {
		check_status(skb, segment->payload + old, target);
		flow->wanted = length_of(skb, segment->payload + old, target);
	}
	flow->ts_recent = segment->ts_value;
	flow->ack += fresh;
	flow->got += fresh;
	flow->unacked += segments;
	count(COUNT_SEGMENTS, segments);
	count(COUNT_RESPONSE_BYTES, fresh);
	if (flow->got > flow->wanted)
		count(COUNT_TOO_LONG, 1);
}

static __always_inline int take(struct __sk_buff *skb, const struct segment *segment,
				struct flow *flow, struct place *place, const struct settings *set)
{
	const struct target *target = bpf_map_lookup_elem(&targets, &flow->target);
	__u32 old = flow->ack - segment->seq;

	if (!target)
		return drop(COUNT_STRAY);
	if ((__s32)old < 0) {
		count(COUNT_GAPS, 1);
		return send_ack(skb, segment, flow, place, bpf_ktime_get_ns());
	}
	if (old >= segment->length)
		return repeated(skb, segment, flow, place, target);
	if (!flow->sent_ns)
		return drop(COUNT_UNASKED);
	receive(skb, segment, flow, target, old);
	if (flow->got >= flow->wanted)
		return complete(skb, segment, flow, place, set);
	if (flow->unacked >= 2)
		return send_ack(skb, segment, flow, place, bpf_ktime_get_ns());
	return TC_ACT_SHOT;
}

/* An exchange of the kernel's TCP shows the link addresses, and the flow's sequence numbers. */
static __always_inline void learn(struct __sk_buff *skb, const struct segment *segment,
				  struct flow *flow)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *link = data;
	__u32 zero = 0;
	struct peer *addresses = bpf_map_lookup_elem(&peer, &zero);

	if (segment->length == 0 || (void *)(link + 1) > end || !addresses)
		return;
	__builtin_memcpy(addresses->server, link->h_source, ETH_ALEN);
	__builtin_memcpy(addresses->client, link->h_dest, ETH_ALEN);
	flow->seq = segment->ack;
	flow->ack = segment->seq + segment->length;
	flow->stamped = segment->stamped;
	flow->ts_recent = segment->ts_value;
	flow->ts_offset = segment->ts_echo - (__u32)(bpf_ktime_get_ns() / 1000000);
}

SEC("tc")
int generate(struct __sk_buff *skb)
{
	struct segment segment = {};
	struct place place = {};
	__u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct flow *flow = find_flow(skb, set, &segment, &place);

	if (!flow || flow->state == FLOW_KERNEL)
		return TC_ACT_OK;
	if (flow->state == FLOW_LEARN) {
		learn(skb, &segment, flow);
		return TC_ACT_OK;
	}
	if (flow->state != FLOW_DRIVEN)
		return drop(COUNT_STRAY);
	if (segment.flags & (TCP_FIN | TCP_RST)) {
		flow->state = FLOW_CLOSED;
		return drop(COUNT_CLOSED);
	}
	if (segment.length == 0)
		return drop(COUNT_PURE_ACKS_SEEN);
	return take(skb, &segment, flow, &place, set);
}

#include "once.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
