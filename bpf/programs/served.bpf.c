/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Served sockets: tells which processes listen on a port, and marks the sockets that are to be served.
 *
 * An iterator over the files of all processes: user mode reads one `struct afpa_listening` for each socket that listens
 * on a port in its network namespace. Sockets whose inode is in `served_inodes` are marked. It needs no rights over the
 * processes, so it works on when user mode has given up its own.
 */
#include <afpa/conn/served.h>

/* Where user mode looks: one entry. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_survey);
} served_survey SEC(".maps");

/* Inodes of sockets that are to be marked. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u32);
} served_inodes SEC(".maps");

/* Only here so that BTF knows its layout. */
struct afpa_listening *listening_layout __attribute__((unused));

#define IPPROTO_MPTCP 262

/* Does the socket listen where user mode looks? */
static __always_inline bool is_surveyed(const struct sock *sk, const struct afpa_survey *survey)
{
	if (sk->__sk_common.skc_state != TCP_LISTEN || sk->__sk_common.skc_num != survey->port)
		return false;
	if (sk->__sk_common.skc_family != AF_INET && sk->__sk_common.skc_family != AF_INET6)
		return false;
	if (sk->sk_protocol != IPPROTO_TCP && sk->sk_protocol != IPPROTO_MPTCP)
		return false;
	return sk->__sk_common.skc_net.net->ns.inum == survey->network;
}

/* Where it listens. */
static __always_inline void put_endpoint(struct afpa_endpoint *endpoint, const struct sock *sk)
{
	__be32 *words = (__be32 *)endpoint->address;

	endpoint->port = sk->__sk_common.skc_num;
	if (sk->__sk_common.skc_family == AF_INET) {
		words[2] = bpf_htonl(0xffff);
		words[3] = sk->__sk_common.skc_rcv_saddr;
		return;
	}
	BPF_CORE_READ_INTO(&endpoint->address, sk, __sk_common.skc_v6_rcv_saddr);
}

SEC("iter/task_file")
int afpa_served(struct bpf_iter__task_file *ctx)
{
	struct afpa_listening found = {};
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct afpa_survey *survey;
	struct socket *socket;
	__u32 zero = 0, one = 1;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	survey = bpf_map_lookup_elem(&served_survey, &zero);
	if (!socket || !survey)
		return 0;
	sk = socket->sk;
	if (!sk || !is_surveyed(sk, survey))
		return 0;
	found.inode = file->f_inode->i_ino;
	found.process = task->tgid;
	found.device = sk->__sk_common.skc_bound_dev_if;
	put_endpoint(&found.endpoint, sk);
	found.only_ipv6 = BPF_CORE_READ_BITFIELD_PROBED(sk, __sk_common.skc_ipv6only);
	found.multipath = sk->sk_protocol == IPPROTO_MPTCP;
	if (bpf_map_lookup_elem(&served_inodes, &found.inode))
		bpf_sk_storage_get(&served, sk, &one, BPF_SK_STORAGE_GET_F_CREATE);
	found.marked = bpf_sk_storage_get(&served, sk, 0, 0) != NULL;
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}
