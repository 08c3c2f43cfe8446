//! The clients that may use a path.

use std::borrow::Cow;

use afpa_module_http::readings;
use afpa_police::Prefix;
use afpa_router::{Action, Fields, Question, RequestSet, SiteId, Unrouted, Verdict};

use super::told::Told;
use afpa_config::{Access, BasicAuth, ForwardAuth, Guarded, Guards, Routes};

impl Told<'_> {
    /// The clients that may use the path. Whether not everybody may.
    pub(super) fn access<F: Fields + Copy>(
        &mut self,
        question: &Question<'_, F>,
        verdict: &Result<Verdict<'_, '_>, Unrouted>,
        others: &[Cow<'_, [u8]>],
    ) -> bool {
        let site = match verdict {
            Ok(verdict) => verdict.site,
            Err(Unrouted::NotFound(site)) => *site,
            Err(Unrouted::Misdirected) => return false,
        };
        let Guarded { addresses, passwords, consents } = &self.routes.guarded;
        // The rights of each reading of the path are needed; most of them are those of the path itself.
        let mut told: Vec<&RequestSet> = Vec::new();
        let is_new = |told: &[&RequestSet], set| !told.iter().any(|one| std::ptr::eq(*one, set));
        for path in std::iter::once(question.path).chain(others.iter().map(|other| &**other)) {
            let question = &Question { path, ..*question };
            if let Some((set, access)) = demand(addresses, site, question)
                && is_new(&told, set)
            {
                told.push(set);
                self.addresses(set, access);
            }
            if let Some((set, demand)) = demand(passwords, site, question)
                && is_new(&told, set)
            {
                told.push(set);
                self.users(set, demand);
            }
            if let Some((set, demand)) = demand(consents, site, question)
                && is_new(&told, set)
            {
                told.push(set);
                self.consents(set, demand);
            }
        }
        let guarded = !told.is_empty();
        if guarded {
            self.row("kernel", "never answers: not everybody may use it");
        }
        guarded
    }

    fn consents(&mut self, set: &RequestSet, demand: &ForwardAuth) {
        let who = match demand {
            ForwardAuth::Off => "no server is asked for its consent".to_owned(),
            ForwardAuth::Server { to, path, copy } => {
                let copied = match &copy[..] {
                    [] => String::new(),
                    names => format!(", which gives {}, so that nothing is kept", names.join(", ")),
                };
                format!("{to} is asked for {path}{copied}")
            }
        };
        self.row("consent", &format!("{who}  (by {})", place(set)));
    }

    fn users(&mut self, set: &RequestSet, demand: &BasicAuth) {
        let who = match demand {
            BasicAuth::Off => "nobody is asked for a password".to_owned(),
            BasicAuth::Users { file, realm } => {
                format!("those of {} with their passwords, realm {realm:?}", file.display())
            }
        };
        self.row("users", &format!("{who}  (by {})", place(set)));
    }

    fn addresses(&mut self, set: &RequestSet, access: &Access) {
        let list = |prefixes: &[Prefix]| {
            prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let others = if access.allow.is_empty() { "allowed" } else { "denied" };
        let lists = [("allow", &access.allow), ("deny", &access.deny)];
        let lists = lists.iter().filter(|(_, prefixes)| !prefixes.is_empty());
        let lists: Vec<_> = lists.map(|(name, all)| format!("{name} {}", list(all))).collect();
        let lists = lists.join(", ");
        self.row("access", &format!("{lists}, others {others}  (by {})", place(set)));
    }
}

/// The paths whose rights a request needs beside its own.
pub(super) fn other_readings<'p>(
    routes: &Routes,
    verdict: &Result<Verdict<'_, '_>, Unrouted>,
    path: &'p [u8],
    apart: &'p [Vec<u8>],
) -> Vec<Cow<'p, [u8]>> {
    let action = verdict.as_ref().ok().map(|verdict| verdict.action);
    let Some(Action::Cached { root, .. }) = action else {
        return readings(path, apart, &[], false);
    };
    let index = routes.hierarchy.root(*root).map_or(&[][..], |root| &root.index);
    readings(path, apart, index, true)
}

/// The demand of guarded parts that meets a question.
fn demand<'r, T, F: Fields>(
    guards: &'r Guards<T>,
    site: SiteId,
    question: &Question<'_, F>,
) -> Option<(&'r RequestSet, &'r T)> {
    let found = guards.router.route_in(site, question).ok()?;
    guards.router.set(found.set).zip(guards.demands.get(found.set.0 as usize))
}

/// A request set of guarded parts, by its prefix and group.
fn place(set: &RequestSet) -> String {
    format!("{} {}", String::from_utf8_lossy(&set.prefix), set.behaviour.group)
}
