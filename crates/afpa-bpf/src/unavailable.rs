//! Reasons why the fast path cannot be had, and remedies.

use crate::verify;

/// Why the fast path cannot be had, and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{reason} ({remedy})")]
pub struct Unavailable {
    /// The missing feature, in a few words.
    pub reason: String,
    /// A remedy for the operator.
    pub remedy: &'static str,
}

pub(crate) fn explain(what: &str, error: &dyn std::error::Error) -> Unavailable {
    refused(what, &verify::words(error))
}

pub(crate) fn refused(what: &str, text: &str) -> Unavailable {
    let denied = text.contains("ermission") || text.contains("not permitted");
    let remedy = if text.contains("No such file") {
        "the folder to keep connections in must exist, on a BPF file system"
    } else if denied {
        "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON are needed, or root"
    } else if text.contains("emory") && !text.contains("verifier") {
        "smaller limits of objects, flows or header blocks"
    } else {
        "please report this with the kernel's version"
    };
    Unavailable { reason: format!("{what}: {text}"), remedy }
}

pub(crate) fn broken_object(name: &str) -> Unavailable {
    Unavailable { reason: format!("eBPF object lacks {name}"), remedy: "rebuild AFPA" }
}
