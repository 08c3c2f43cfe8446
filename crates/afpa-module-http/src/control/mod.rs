//! The operations of the HTTP module on the control socket.

mod purge;
mod types;

use std::sync::Arc;

use afpa_framework::{Arguments, Control, Operation, Refusal, Reply};
use afpa_router::{Action, RequestSet};
use serde_json::{Value, json};

use crate::doc_root::DocRoot;
use crate::global::Global;

const OPERATIONS: &[Operation] = &[
    Operation::look(
        "top",
        "[most=COUNT]",
        "the kept answers of servers that have saved most time, as JSON",
    ),
    Operation::change(
        "purge",
        "path=PATH|host=NAME|tag=TAG|group=GROUP [query=QUERY] [below=yes] [soft=yes]",
        "drops kept answers",
    ),
    Operation::look(
        "types",
        "[extension=EXTENSION] [host=NAME]",
        "the media types of files that are not the built-in ones, or that of an extension",
    ),
    Operation::change(
        "types/set",
        "extension=EXTENSION type=TYPE [host=NAME]",
        "another media type for files, until the next reload",
    ),
    Operation::change(
        "types/remove",
        "extension=EXTENSION [host=NAME]",
        "the built-in media type for files again, until the next reload",
    ),
    Operation::change("drain", "server=SERVER [group=NAME]", "a server gets no new requests"),
    Operation::change(
        "ready",
        "server=SERVER [group=NAME]",
        "a server that drains gets requests again",
    ),
];

impl Control for Global {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        match name {
            "top" => Ok(self.top(arguments)),
            "purge" => self.purge(arguments),
            "types" => self.types(arguments),
            "types/set" => self.set_type(arguments),
            "types/remove" => self.remove_type(arguments),
            "drain" => self.order(arguments, true),
            "ready" => self.order(arguments, false),
            _ => Err(Refusal::Failed),
        }
    }
}

/// Answers that are listed unless the request says how many, and at most.
const TOP: usize = 20;
const MOST_TOP: usize = 10_000;

impl Global {
    /// The kept answers of servers that save most.
    fn top(&self, arguments: &Arguments<'_>) -> Reply {
        let most = arguments.text("most").and_then(|most| most.parse().ok()).unwrap_or(TOP);
        let savers = self.responses.as_ref().map(|responses| responses.top(most.min(MOST_TOP)));
        let savers = savers.unwrap_or_default().into_iter().map(|saver| {
            json!({
                "saved_us": saver.saved_us,
                "hits": saver.hits,
                "bytes": saver.bytes,
                "url": saver.url,
            })
        });
        Reply::json(json!({ "answers_of_servers": savers.collect::<Value>() }).to_string())
    }

    /// Lets a server drain, or take requests again.
    fn order(&self, arguments: &Arguments<'_>, drain: bool) -> Result<Reply, Refusal> {
        let Some(server) = arguments.text("server") else {
            return Err(Refusal::Invalid("this needs a server: server=NAME".to_owned()));
        };
        let wanted = arguments.text("group");
        let what = if drain { "drains" } else { "is ready" };
        let mut text = String::new();
        for group in self.groups.iter().map(|group| &group.group) {
            if wanted.as_deref().is_some_and(|wanted| wanted != group.name()) {
                continue;
            }
            for meant in group.order_drain(&server, drain) {
                text.push_str(&format!("{meant} of {} {what}\n", group.name()));
            }
        }
        match text.is_empty() {
            true => {
                Err(Refusal::Absent(format!("no server is called {server}: afpa stats lists them")))
            }
            false => Ok(Reply::text(text)),
        }
    }

    /// The document roots of the sites of a host (without its port), with the request sets that lead to each; or else of
    /// every site. `None`: no site has this host.
    fn roots_of(&self, host: Option<&str>) -> Option<Vec<(&Arc<DocRoot>, Option<&RequestSet>)>> {
        let Some(router) = &self.router else {
            let root = self.roots.first()?;
            let hosts = &root.settings().hosts;
            let known = |host: &str| {
                hosts.is_empty() || hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
            };
            return host.is_none_or(known).then(|| vec![(root, None)]);
        };
        let sites = host.map(|host| router.sites(host));
        if sites.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
        let meant =
            |set: &&RequestSet| sites.as_ref().is_none_or(|sites| sites.contains(&set.site));
        let with_roots = router.sets().iter().filter(meant).filter_map(|set| {
            let Action::Cached { root, .. } = set.behaviour.action else { return None };
            Some((self.roots.get(root.0 as usize)?, Some(set)))
        });
        Some(with_roots.collect())
    }
}
