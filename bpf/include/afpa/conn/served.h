/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose socket is it? Sockets are served, and not addresses.
 *
 *  P3 A connection is answered only if the socket that listened for it was marked as served: by `afpa serve`, which
 *     marks its own, or by `afpa attach`, which marks those of the server that it accelerates. The kernel copies the
 *     mark to each socket that is accepted. Another server's connections on the same port have none, and neither have
 *     those that were open before the mark.
 */
#ifndef AFPA_CONN_SERVED_H
#define AFPA_CONN_SERVED_H

#include <afpa/maps.h>

/* The mark of a socket: that it has an entry. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, __u32);
} served SEC(".maps");

/*
 * Sockets by which AFPA itself asks the server. User mode answers the requests that leave by them over `lo`, and they are
 * not counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} questions SEC(".maps");

static __always_inline bool is_question(struct __sk_buff *skb)
{
	struct bpf_sock *socket = (struct bpf_sock *)skb->sk;

	if (!socket)
		return false;
	socket = bpf_sk_fullsock(socket);
	return socket && bpf_sk_storage_get(&questions, socket, 0, 0);
}

/* Has the socket, or had the one that listened for it, the mark? A request socket has none. */
#define is_served(socket) (bpf_sk_storage_get(&served, socket, 0, 0) != NULL)

#endif
