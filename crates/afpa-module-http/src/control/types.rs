//! The table of media types, which operations change until the next reload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afpa_framework::{Arguments, Refusal, Reply};
use afpa_http::syntax::is_token;

use super::purge::host_name;
use crate::doc_root::DocRoot;
use crate::global::Global;

impl Global {
    /// A line for each extension and type, with the number of document roots if not all have it.
    pub(super) fn types(&self, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let roots = self.typed_roots(arguments)?;
        let wanted = arguments.bytes("extension").map(|_| extension(arguments)).transpose()?;
        let mut lines = BTreeMap::<_, usize>::new();
        for root in &roots {
            let types = match &wanted {
                Some(extension) => vec![(extension.clone(), root.type_of(extension))],
                None => root.types(),
            };
            types.into_iter().for_each(|line| *lines.entry(line).or_default() += 1);
        }
        let lines = lines.into_iter().map(|((extension, kind), count)| {
            let all = roots.len();
            let some = format!("  (in {count} of {all} document roots)");
            format!("{extension} {kind}{}\n", if count < all { &some } else { "" })
        });
        Ok(Reply::text(lines.collect::<String>()))
    }

    pub(super) fn set_type(&self, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let extension = extension(arguments)?;
        let kind = arguments.text("type").unwrap_or_default();
        if !is_type(&kind) {
            let why =
                format!("{kind:?} is no media type: write type=text/html, or with parameters");
            return Err(Refusal::Invalid(why));
        }
        for root in self.typed_roots(arguments)? {
            root.change_types(|types| types.set(&extension, &kind));
        }
        tracing::info!("files with the extension {extension} are {kind} until the next reload");
        Ok(Reply::text(format!("files with the extension {extension} are {kind}\n")))
    }

    pub(super) fn remove_type(&self, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let extension = extension(arguments)?;
        let roots = self.typed_roots(arguments)?;
        let has_one = |root: &&Arc<DocRoot>| root.types().iter().any(|(of, _)| *of == extension);
        let changed: Vec<_> = roots.into_iter().filter(has_one).collect();
        let Some(first) = changed.first() else {
            let why =
                format!("{extension} has the built-in type: afpa call types lists the others");
            return Err(Refusal::Absent(why));
        };
        changed.iter().for_each(|root| root.change_types(|types| types.remove(&extension)));
        let kind = first.type_of(&extension);
        tracing::info!("files with the extension {extension} are {kind} until the next reload");
        Ok(Reply::text(format!("files with the extension {extension} are {kind}\n")))
    }

    /// Each document root that is meant, once.
    fn typed_roots(&self, arguments: &Arguments<'_>) -> Result<Vec<&Arc<DocRoot>>, Refusal> {
        let host = arguments.bytes("host");
        let Some(host) = host.as_deref().map(host_name).transpose()? else {
            return Ok(self.roots.iter().collect());
        };
        let Some(roots) = self.roots_of(Some(host)) else {
            return Err(Refusal::Absent(format!("no site has the host {host}")));
        };
        let mut seen = BTreeSet::new();
        let roots = roots.into_iter().map(|(root, _)| root);
        Ok(roots.filter(|root| seen.insert(root.key())).collect())
    }
}

/// The argument `extension`, in lower case: the part of a name after the last dot.
fn extension(arguments: &Arguments<'_>) -> Result<String, Refusal> {
    let given = arguments.text("extension").unwrap_or_default();
    let extension = given.trim_start_matches('.').to_ascii_lowercase();
    if extension.is_empty()
        || extension.contains(['/', '.'])
        || extension.contains(char::is_control)
    {
        let why = format!("{given:?} is no extension: write extension=md for files such as a.md");
        return Err(Refusal::Invalid(why));
    }
    Ok(extension)
}

/// Whether a text is one media type, which may have parameters (RFC 9110 section 8.3.1), and can be a field's value.
fn is_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let halves = essence.split_once('/');
    halves.is_some_and(|(kind, subtype)| {
        is_token(kind.as_bytes()) && is_token(subtype.as_bytes()) && subtype != "*"
    }) && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && !text.ends_with(' ')
}

#[cfg(test)]
mod tests {
    use super::is_type;

    #[test]
    fn types_are_one_type_in_one_line() {
        for good in ["text/html", "text/markdown; charset=utf-8", "application/vnd.a+json"] {
            assert!(is_type(good), "{good:?}");
        }
        for bad in
            ["", "text", "text/", "/html", "text/*", "text/html\r\nX: y", "text/ä", "text/a "]
        {
            assert!(!is_type(bad), "{bad:?}");
        }
    }
}
