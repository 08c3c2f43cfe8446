/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Request fields that the parser does not read: allowed by list, not forbidden.
 *
 * Contract: field_classes gives the classes of a field, by its name. User mode fills the table `fields` from the list in
 * crates/afpa-http/src/request/classes.rs, so that there is one list.
 */
#ifndef AFPA_HTTP_FIELDS_H
#define AFPA_HTTP_FIELDS_H

#include <afpa/http/line.h>

/*
 * The classes of a field. Whether a server makes something of it only the server can tell, so each object says which
 * classes do not matter to it.
 */
static __always_inline __u32 field_classes(void)
{
	__u32 *classes, zero = 0;
	struct work *own;

	if (!shared.fields_matter)
		return 0;
	own = bpf_map_lookup_elem(&ingress_work, &zero); /* Linux 6.1 takes no argument of a global function for a key */
	if (!own)
		return AFPA_FIELD_UNKNOWN;
	classes = bpf_map_lookup_elem(&fields, own->scan.line.name);
	return classes ? *classes : AFPA_FIELD_UNKNOWN;
}

#endif
