//! `afpa route URL`: the request set of a URL, and why.

mod cache;
mod files;
mod place;
mod rights;
#[cfg(test)]
mod tests;
mod told;
mod url;
mod way;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use afpa_fast_path::{MOST_WAYS, is_left_out};
use afpa_http::{Method, target};
use afpa_module_http::{separated, shut};
use afpa_router::{
    Action, Explanation, Fallback, ListenerId, MOST_REWRITES, Question, SiteId, Unrouted, Verdict,
};
use anyhow::Context as _;

use super::print;
use crate::cli::Route;
use afpa_config::{Loaded, Machine, Overrides, error_pages, load};
use rights::other_readings;
use told::{Look, Told};
use url::{Url, field, listener};
use way::conditions;

/// `afpa route URL`.
///
/// # Errors
/// When the configuration or the URL cannot be read.
pub fn route(options: &Route) -> anyhow::Result<ExitCode> {
    let file = file(options.config.as_deref())?;
    let loaded = load(Some(&file), &Overrides::default(), &Machine::probe())?;
    let (text, found) = explained(&loaded, options)?;
    print(&loaded.source.hide(text))?;
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn file(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    const USUAL: [&str; 2] = ["afpa.toml", "/etc/afpa/afpa.toml"];
    let usual = || USUAL.iter().map(PathBuf::from).find(|path| path.exists());
    let found = given.map(PathBuf::from).or_else(usual);
    found.context("there is no afpa.toml here or in /etc/afpa: name one with --config")
}

/// The explanation, and whether there is a request set.
fn explained(loaded: &Loaded, options: &Route) -> anyhow::Result<(String, bool)> {
    let url = Url::parse(&options.url)?;
    let fields =
        options.header.iter().map(|line| field(line)).collect::<anyhow::Result<Vec<_>>>()?;
    let routes = &loaded.routes;
    let (listener, note) = listener(routes, &url, options.listen.as_deref())?;
    let mut told = Told { loaded, routes, text: String::new() };
    let address = routes.listeners.listeners().get(listener.0 as usize);
    told.row("address", &format!("{}{note}", address.map(ToString::to_string).unwrap_or_default()));
    let mut again = told.round((&url, options, &fields), listener, true)?;
    for _ in 0..MOST_REWRITES {
        let Next::Again(target) = &again else { break };
        let url = Url { host: url.host, ..Url::parse(target)? };
        again = told.round((&url, options, &fields), listener, false)?;
    }
    if matches!(again, Next::Again(_)) {
        told.row("answer", "500: it is rewritten again and again");
    }
    Ok((told.text, matches!(again, Next::Found)))
}

/// The end of an explanation, or its next round.
enum Next {
    /// There is a request set.
    Found,
    /// There is none.
    Nowhere,
    /// This target is routed in its place.
    Again(String),
}

/// A request: its URL, the options, its fields.
type Request<'a> = (&'a Url<'a>, &'a Route, &'a [(String, String)]);

impl Told<'_> {
    /// Explains one look at the router.
    fn round(
        &mut self,
        (url, options, fields): Request<'_>,
        listener: ListenerId,
        is_first: bool,
    ) -> anyhow::Result<Next> {
        let (mut scratch, mut spelled) = (Vec::new(), Vec::new());
        let path = target::normalise(url.path.as_bytes(), &mut scratch)
            .with_context(|| format!("no request set has the path {}", url.path))?;
        let spelled = target::spell(url.path.as_bytes(), &mut spelled).unwrap_or_default();
        let routes = self.routes;
        let question = Question {
            listener,
            host: url.host,
            method: Method::new(&options.method),
            path,
            query: url.query.map(str::as_bytes),
            fields: (fields, options.client),
        };
        let explanation = routes.router.explain(&question);
        if is_first {
            self.site(&explanation);
        }
        self.path(url, path, &explanation);
        self.tried(&explanation);
        let apart = separated(path);
        let shut = shut(&routes.router, &question, &apart);
        let verdict = shut.map_or_else(|| routes.router.route(&question), Ok);
        let others = other_readings(routes, &verdict, path, &apart);
        let is_counted = self.rates(&question, &verdict, &apart);
        let guarded = self.access(&question, &verdict, &others);
        if is_counted && !guarded && is_first {
            self.row("kernel", "never answers: it counts no request by its place");
        }
        let guarded = guarded || is_counted;
        match verdict {
            Err(Unrouted::Misdirected) => {
                self.row("answer", "421: no site of this address has this host");
                Ok(Next::Nowhere)
            }
            Err(Unrouted::NotFound(SiteId(index))) => {
                self.row("answer", "404: no request set of the site has it");
                if let Some(site) = self.loaded.config.sites.get(index as usize) {
                    self.errors(&error_pages(site, None, None));
                }
                Ok(Next::Nowhere)
            }
            Ok(verdict) => {
                let look = Look { question, method: &options.method, spelled, is_first, guarded };
                Ok(self.reached(&look, &verdict, &explanation))
            }
        }
    }

    /// Explains the request set that a request has reached.
    fn reached(
        &mut self,
        look: &Look<'_>,
        verdict: &Verdict<'_, '_>,
        explanation: &Explanation<'_, '_>,
    ) -> Next {
        let (loaded, routes) = (self.loaded, self.routes);
        let Some(set) = routes.router.set(verdict.set) else { return Next::Found };
        self.row("request set", &set.name);
        self.row("behaviour", &loaded.shown(&routes.hierarchy, &set.behaviour));
        match verdict.action {
            Action::Cached { root, fallback, scripts } => {
                let below = target::shown(verdict.path.join(&mut Vec::new()));
                let guarded = look.guarded || !verdict.certain || !look.is_first;
                self.cached(*root, &below, (scripts.as_deref(), fallback.as_ref()), guarded);
                let asks_servers =
                    scripts.is_some() || matches!(fallback, Some(Fallback::Distributed { .. }));
                if asks_servers && let Some(site) = loaded.config.sites.get(set.site.0 as usize) {
                    self.limits(site.server_limits(set.path, set.content));
                    self.mirror(site.mirror_of(set.path, set.content));
                }
            }
            Action::Distributed { group, .. } => self.distributed(look, verdict, set, *group),
            Action::Redirect(_) => {
                let location = verdict.location(&look.question, look.spelled).unwrap_or_default();
                self.row("location", &String::from_utf8_lossy(&location));
            }
            Action::Again(_) => return self.again(look, verdict),
            Action::Fixed(_) => {}
        }
        let is_file = matches!(verdict.action, Action::Cached { .. });
        self.fields(set, look.question.path, is_file);
        self.compression(set);
        if let Some(site) = loaded.config.sites.get(set.site.0 as usize) {
            let place = site.paths.get(set.path);
            let content = place.and_then(|place| place.contents.get(set.content));
            self.errors(&error_pages(site, place, content));
        }
        let is_kept = is_file
            || matches!(verdict.action, Action::Distributed { .. })
                && look.question.method.is_get_or_head();
        if is_kept && !verdict.certain && look.is_first {
            let more = conditions(&routes.router, explanation);
            self.row("kernel", &format!("never answers: {more} may decide"));
        }
        if is_left_out(&routes.router, set) {
            let before = format!("{MOST_WAYS} sites or prefixes before it lead to these files");
            self.row("note", &format!("{before}: never answered in the kernel"));
        }
        Next::Found
    }

    /// Explains the target that is routed in the place of the request's.
    fn again(&mut self, look: &Look<'_>, verdict: &Verdict<'_, '_>) -> Next {
        let Some(target) = verdict.target(&look.question, look.spelled) else {
            self.row("answer", "400: the new path would have a segment of dots");
            return Next::Found;
        };
        let target = String::from_utf8_lossy(&target).into_owned();
        self.row("rewritten to", &target);
        if look.is_first && !look.guarded {
            self.row("kernel", "never answers: another target decides");
        }
        Next::Again(target)
    }
}
