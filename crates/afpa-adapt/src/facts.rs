//! A server and a location as everything else sees them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::Context;
use crate::values::{self, duration, quoted, size};

/// Knowledge that the places of a server share.
pub(crate) struct Facts<'d> {
    pub(crate) scope: Scope<'d>,
    /// The directory of the site.
    pub(crate) root: Option<String>,
    /// The servers that run scripts, and the directory as they see it.
    pub(crate) php: Option<(String, Option<String>)>,
    /// The file or script for all that is no file, as an `if` of the server says.
    pub(crate) fallback: Option<String>,
    /// That of all its addresses, if they agree.
    pub(crate) scheme: Option<&'static str>,
    /// The port of all its addresses, if they agree; `None` in it: those of the schemes.
    pub(crate) port: Option<Option<u16>>,
    /// Its first name.
    pub(crate) name: Option<String>,
    /// Whether the limits of the site stand for `limit_req`.
    pub(crate) limited: bool,
    /// A field of routers in front that AFPA does not read.
    pub(crate) unknown_client: Option<&'d Directive>,
    /// Cookies and fields for which no cache is used.
    pub(crate) bypass: RefCell<(BTreeSet<String>, BTreeSet<String>)>,
    /// The `autoindex on` that were met.
    pub(crate) listings: RefCell<Vec<Directive>>,
}

/// A location.
#[derive(Clone)]
pub(crate) struct Place<'d> {
    pub(crate) scope: Scope<'d>,
    /// Its path; for a regular expression, what it is tried below.
    pub(crate) prefix: String,
    pub(crate) exact: bool,
    /// `None`: paths that no location is for.
    pub(crate) location: Option<&'d Directive>,
    pub(crate) is_regex: bool,
    /// Whether a regular expression that runs scripts is tried here.
    pub(crate) runs_scripts: bool,
}

/// Limits of requests to servers; `prefix`: that of the names of time-outs.
pub(crate) fn limits(context: &Context<'_>, place: &Place<'_>, prefix: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let largest = match place.scope.last("client_max_body_size") {
        None => Some(1 << 20),
        Some(directive) => {
            let bytes = values::bytes(directive.word(0)).filter(|bytes| *bytes <= 1 << 40);
            if bytes.is_none() {
                context.ledger.left(directive, "this is no size");
            }
            bytes
        }
    };
    let largest = match largest {
        Some(0) => "1TiB".to_owned(),
        Some(bytes) => size(bytes),
        None => size(1 << 20),
    };
    lines.push(format!("largest_content = {}", quoted(&largest)));
    if place.scope.is_on("gzip") || place.scope.is_on("brotli") {
        lines.push("compress = true".to_owned());
    }
    if let Some(directive) = place.scope.last(&format!("{prefix}_read_timeout")) {
        match duration(directive.word(0), 10, 3_600_000) {
            Some(time) if time == "1m" => {}
            Some(time) => lines.push(format!("first_byte = {}", quoted(&time))),
            None => {
                context.ledger.differs(directive, "AFPA waits for an hour at most");
                lines.push("first_byte = \"1h\"".to_owned());
            }
        }
    }
    lines
}
