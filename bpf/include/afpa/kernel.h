/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few kernel types the programs touch, written by hand instead of a dumped vmlinux.h.
 *
 * Two kinds stand here. Wire formats and user ABI (`ethhdr`, `__sk_buff`, ...) have fixed offsets and
 * must be complete. Kernel-internal structures (`tcp_sock`, ...) name only the fields that are read;
 * `preserve_access_index` lets the loader find their offsets in the running kernel's BTF, and refuse
 * the program where one is missing.
 */
#ifndef AFPA_KERNEL_H
#define AFPA_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

/* --- user ABI: <linux/bpf.h> --- */

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_QUEUE = 22, BPF_MAP_TYPE_SK_STORAGE = 24, BPF_MAP_TYPE_RINGBUF = 27,
};

enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 << 0, BPF_F_CLONE = 1 << 9, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { BPF_F_CURRENT_NETNS = -1 };
enum { BPF_F_INGRESS = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

#define PACKET_HOST 0      /* a frame for this very device: the kernel's TCP takes no others */
#define LOOPBACK_IFINDEX 1 /* `lo`, in every network namespace */

/* Verdicts of a tcx program. */
enum tcx_action { TCX_NEXT = -1, TCX_PASS = 0, TCX_DROP = 2, TCX_REDIRECT = 7 };

struct bpf_spin_lock {
	__u32 val;
};

struct bpf_sock_tuple {
	union {
		struct {
			__be32 saddr, daddr;
			__be16 sport, dport;
		} ipv4;
		struct {
			__be32 saddr[4], daddr[4];
			__be16 sport, dport;
		} ipv6;
	};
};

struct bpf_sock {
	__u32 bound_dev_if, family, type, protocol, mark, priority, src_ip4, src_ip6[4], src_port;
	__be16 dst_port, padding;
	__u32 dst_ip4, dst_ip6[4], state;
	__s32 rx_queue_mapping;
};

struct __sk_buff {
	__u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	__u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid;
	__u32 data, data_end;
	__u32 napi_id, family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port;
	__u32 data_meta;
	__u64 flow_keys, tstamp;
	__u32 wire_len, gso_segs;
	__u64 sk;
	__u32 gso_size;
	__u8 tstamp_type, padding[3];
	__u64 hwtstamp;
};

/* --- wire formats --- */

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86DD
#define IPPROTO_TCP 6
#define VLAN_ID_MASK 0x0fff
#define AF_INET 2
#define AF_INET6 10

struct ethhdr {
	__u8 destination[6], source[6];
	__be16 protocol;
} __attribute__((packed));

struct iphdr {
	__u8 version_ihl, tos;
	__be16 total_length, id, fragment;
	__u8 ttl, protocol;
	__u16 check;
	__be32 source, destination;
};

struct ipv6hdr {
	__u8 version_class, class_label;
	__be16 label;
	__be16 payload_length;
	__u8 next_header, hop_limit;
	__be32 source[4], destination[4];
};

struct tcphdr {
	__be16 source, destination;
	__be32 seq, ack;
	__u8 offset, flags;
	__be16 window;
	__u16 check, urgent;
};

/* --- kernel-internal, relocated against BTF --- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	__u32 inum;
};

struct net {
	struct ns_common ns;
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	__be32 words[4];
};

struct sock_common {
	unsigned short skc_family;
	volatile unsigned char skc_state;
	__u8 skc_ipv6only : 1;
	__u16 skc_num;
	__be32 skc_rcv_saddr;
	struct in6_addr skc_v6_rcv_saddr;
	int skc_bound_dev_if;
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	__u8 sk_shutdown;
	__u8 sk_userlocks : 4;
	__u32 sk_ack_backlog, sk_max_ack_backlog;
	struct {
		int len;
	} sk_backlog;
};

struct ipv6_pinfo {
	__u8 min_hopcount;
};

struct inet_sock {
	struct sock sk;
	struct ipv6_pinfo *pinet6; /* not in kernels without IPv6 */
	__u8 min_ttl;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_probes_out;
	const void *icsk_ulp_ops;
};

struct rb_root {
	const void *rb_node;
};

struct tcp_options_received {
	__u16 tstamp_ok : 1, wscale_ok : 1, sack_ok : 3, snd_wscale : 4, rcv_wscale : 4;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt, copied_seq, snd_nxt, snd_una, write_seq, rcv_wnd, mss_cache, tsoffset, srtt_us;
	__u64 bytes_received, bytes_sent, tcp_mstamp;
	__u8 repair : 1, tcp_usec_ts : 1;
	__u8 ecn_flags;
	bool is_mptcp;
	const void *md5sig_info, *ao_info;
	struct tcp_options_received rx_opt;
	struct rb_root out_of_order_queue;
};

struct tcp_request_sock {
	__u32 rcv_isn, snt_isn, rcv_nxt;
};

struct net_device {
	const void *rx_handler;
	possible_net_t nd_net;
	int ifindex;
	__u32 mtu;
};

struct dst_entry {
	struct net_device *dev;
};

struct sk_buff {
	struct net_device *dev;
	unsigned long _skb_refdst;
	unsigned long _nfct; /* not in kernels without connection tracking */
	__u8 ip_summed : 2;
};

struct socket {
	struct sock *sk;
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct task_struct {
	int tgid;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#pragma clang attribute pop

#define SOCK_RCVBUF_LOCK 2 /* of `sk_userlocks`: the receive buffer was set by the server */

/* State of a connection that the kernel's TCP takes in the middle: Linux's own layout (include/net/tcp.h). */
struct bpf_tcp_req_attrs {
	__u32 rcv_tsval, rcv_tsecr;
	__u16 mss;
	__u8 rcv_wscale, snd_wscale, ecn_ok, wscale_ok, sack_ok, tstamp_ok, usec_ts_ok, reserved[3];
};

/*
 * The listener makes a connection of the segment, as of the last one of a handshake: the segment's numbers are the first
 * ones. 0: it will. Not in kernels before 6.9.
 */
extern int bpf_sk_assign_tcp_reqsk(struct __sk_buff *skb, struct sock *sk, struct bpf_tcp_req_attrs *attrs,
				   int attrs__sz) __ksym __weak;

enum { TCP_ESTABLISHED = 1, TCP_LISTEN = 10, TCP_NEW_SYN_RECV = 12 };
enum { CHECKSUM_NONE = 0, CHECKSUM_UNNECESSARY = 1, CHECKSUM_COMPLETE = 2, CHECKSUM_PARTIAL = 3 };

/* Sequence arithmetic (RFC 9293, 3.4), as in the kernel's net/tcp.h. */
static inline __attribute__((always_inline)) bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* The packet as the kernel has it; and an object to read of only. Not in kernels before 6.2. */
extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak;

/*
 * An object to read pointers of. For each pointer that it reads out of a trusted object the verifier searches all types of
 * the kernel, four times, half a millisecond each: so it had better not be trusted.
 */
#define read_only(object, type) ((type *)bpf_rdonly_cast(object, bpf_core_type_id_kernel(type)))

/*
 * A field of the kernel's packet, `skb_field(skb, dev, ifindex)` is `dev->ifindex`; and a bit field of it. Before Linux
 * 6.2 by calls, which take the packet for an address; the loader decides, and the verifier removes the way that is not
 * taken.
 */
#define skb_field(skb, ...)                                                                    \
	(bpf_ksym_exists(bpf_cast_to_kern_ctx) ?                                                   \
		 ___arrow(read_only(bpf_cast_to_kern_ctx(skb), struct sk_buff), __VA_ARGS__) :        \
		 BPF_CORE_READ((struct sk_buff *)(void *)(skb), __VA_ARGS__))
#define skb_bits(skb, field)                                                                   \
	(bpf_ksym_exists(bpf_cast_to_kern_ctx) ?                                                   \
		 BPF_CORE_READ_BITFIELD((struct sk_buff *)bpf_cast_to_kern_ctx(skb), field) :          \
		 BPF_CORE_READ_BITFIELD_PROBED((struct sk_buff *)(void *)(skb), field))

#endif
