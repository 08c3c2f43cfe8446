//! Dropping kept answers: answers from files by their paths, answers of servers by URL, host or tag.

use afpa_framework::{Arguments, Refusal, Reply};
use afpa_http::{Host, target};
use afpa_router::Rewrite;
use afpa_shared_cache::Purge;

use crate::global::Global;

impl Global {
    /// `path` and `host` are those of the URL as the user typed them, percent-encoded once more.
    pub(super) fn purge(&self, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let soft = arguments.bytes("soft").is_some();
        let drop = |what: &Purge| {
            self.responses.as_ref().map_or(0, |responses| responses.purge(what, soft))
        };
        let purged = |what: Purge| Ok(Reply::text(purged(drop(&what), soft)));
        if let Some(tag) = arguments.bytes("tag") {
            return purged(Purge::Tag(tag));
        }
        let host = arguments.bytes("host");
        let host = host.as_deref().map(host_name).transpose()?;
        let named = host.map(|host| host.as_bytes().to_vec());
        if let Some(name) = arguments.bytes("group") {
            let needs = "a group is one of a host: purge needs ?host=NAME with it";
            let host = named.ok_or_else(|| Refusal::Invalid(needs.to_owned()))?;
            return purged(Purge::Group { host, name });
        }
        let Some(typed) = arguments.bytes("path") else {
            let needs = "purge needs ?path=/the/path, ?host=NAME or ?tag=TAG";
            let host = named.ok_or_else(|| Refusal::Invalid(needs.to_owned()))?;
            return purged(Purge::Host(host));
        };
        let path = typed.split(|&byte| byte == b'?' || byte == b'#').next().unwrap_or_default();
        let (mut scratch, mut spelled) = (Vec::new(), Vec::new());
        let normal = target::normalise(path, &mut scratch)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        // Files have names, answers of servers have URLs, in which an escape may mean something.
        let url = target::spell(path, &mut spelled).unwrap_or_default().to_vec();
        if arguments.bytes("below").is_some() {
            return purged(Purge::Prefix { host: named, path: url });
        }
        let count = drop(&Purge::Url { host: named, path: url, query: arguments.bytes("query") });
        if soft {
            return Ok(Reply::text(self::purged(count, soft)));
        }
        let shown = target::shown(normal);
        Ok(Reply::text(match self.purge_file(host, normal) {
            Some(_) if count > 0 => format!("{shown} was dropped from the cache\n"),
            Some(true) => format!("{shown} was dropped from the cache\n"),
            Some(false) => format!("{shown} was not in the cache\n"),
            None => format!("no site has the host {}\n", host.unwrap_or_default()),
        }))
    }

    /// Drops the objects that a normalised URL path leads to, in the sites of a host (without its port), or else in every
    /// site. Whether there were any; `None`: no site has this host.
    fn purge_file(&self, host: Option<&str>, path: &[u8]) -> Option<bool> {
        let mut found = false;
        for (root, set) in self.roots_of(host)? {
            if set.is_some_and(|set| !path.starts_with(&set.prefix)) {
                continue;
            }
            let strip = match set.and_then(|set| set.behaviour.rewrite.as_ref()) {
                Some(Rewrite::Prefix { strip, .. }) => *strip,
                Some(Rewrite::Target(_)) | None => 0,
            };
            let path = path.get(strip..);
            found |= path.is_some_and(|path| root.purge(path));
        }
        Some(found)
    }
}

/// The name of a Host value, without its port.
pub(super) fn host_name(host: &[u8]) -> Result<&str, Refusal> {
    let host = Host::parse(host);
    host.map(|host| host.name()).map_err(|why| Refusal::Invalid(format!("host: {why}")))
}

fn purged(count: usize, soft: bool) -> String {
    match (count, soft) {
        (1, false) => "1 answer was dropped from the cache\n".to_owned(),
        (count, false) => format!("{count} answers were dropped from the cache\n"),
        (1, true) => "1 answer has to be validated\n".to_owned(),
        (count, true) => format!("{count} answers have to be validated\n"),
    }
}
