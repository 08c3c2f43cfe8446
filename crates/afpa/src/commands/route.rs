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
use afpa_router::{Action, ListenerId, MOST_REWRITES, Question, SiteId, Unrouted};
use anyhow::Context as _;

use super::print;
use crate::cli::Route;
use afpa_config::{CacheMode, Loaded, Machine, Overrides, error_pages, load};
use cache::{asks_others, kept};
use files::{is_directory, is_file};
use rights::other_readings;
use told::Told;
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
        let (loaded, routes) = (self.loaded, self.routes);
        let told = self;
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
            told.site(&explanation);
        }
        told.path(url, path, &explanation);
        told.tried(&explanation);
        let apart = separated(path);
        let shut = shut(&routes.router, &question, &apart);
        let verdict = shut.map_or_else(|| routes.router.route(&question), Ok);
        let others = other_readings(routes, &verdict, path, &apart);
        let is_counted = told.rates(&question, &verdict, &apart);
        let guarded = told.access(&question, &verdict, &others);
        if is_counted && !guarded && is_first {
            told.row("kernel", "never answers: it counts no request by its place");
        }
        let guarded = guarded || is_counted;
        match verdict {
            Err(Unrouted::Misdirected) => {
                told.row("answer", "421: no site of this address has this host")
            }
            Err(Unrouted::NotFound(SiteId(index))) => {
                told.row("answer", "404: no request set of the site has it");
                if let Some(site) = loaded.config.sites.get(index as usize) {
                    told.errors(&error_pages(site, None, None));
                }
            }
            Ok(verdict) => {
                let guarded_by_somebody = guarded;
                let guarded = guarded || !verdict.certain || !is_first;
                if let Some(set) = routes.router.set(verdict.set) {
                    told.row("request set", &set.name);
                    told.row("behaviour", &loaded.shown(&routes.hierarchy, &set.behaviour));
                }
                let below = verdict.path.join(&mut Vec::new()).to_vec();
                let below = target::shown(&below);
                match verdict.action {
                    Action::Cached { root, fallback, scripts } => {
                        let root = routes.hierarchy.root(*root);
                        if let Some(root) = root {
                            let index = match below.ends_with('/') {
                                true => root.index.join(" or "),
                                false => String::new(),
                            };
                            told.row(
                                "file",
                                &format!("{}{below}{index}", root.directory.display()),
                            );
                        }
                        let script = root.filter(|root| root.scripts).and_then(|root| {
                            told.script(
                                root,
                                &below,
                                (scripts.as_deref(), fallback.as_ref()),
                                guarded,
                            )
                        });
                        if root.is_some_and(|root| is_directory(root, &below)) {
                            told.row("answer", "301: a directory, which has a slash at its end");
                        } else if let Some(fallback) =
                            fallback.as_ref().filter(|_| script.is_none())
                        {
                            let there = root.is_some_and(|root| is_file(root, &below));
                            told.fallback(&loaded.fallback(fallback), there, guarded);
                        }
                    }
                    Action::Distributed { group, .. } => {
                        let mut room = Vec::new();
                        let at_server = match verdict.content.target() {
                            None => verdict.path.spelled(spelled, path.len(), &mut room),
                            Some(_) => {
                                room = verdict.target(&question, spelled).unwrap_or_default();
                                &room
                            }
                        };
                        told.row("asks for", &String::from_utf8_lossy(at_server));
                        if let Some(set) = routes.router.set(verdict.set)
                            && let Some(site) = loaded.config.sites.get(set.site.0 as usize)
                        {
                            let mode = site.cache_mode(set.path, set.content);
                            let told_of = kept(&site.cache, mode, &options.method, fields);
                            told.row("cache", &told_of);
                            let group = loaded.config.groups.get(group.0 as usize);
                            let is_http = group.is_some_and(|group| !group.settings.fastcgi);
                            let is_same = verdict.content.target().is_none()
                                && !site.compresses(set.path, set.content);
                            if loaded.config.peers_listen().is_some()
                                && (is_http && is_same && mode != CacheMode::Off)
                                && asks_others(&options.method, fields)
                            {
                                told.row("fleet", "a miss asks the machine that keeps the answer, then the server");
                            }
                            told.limits(site.server_limits(set.path, set.content));
                            told.mirror(site.mirror_of(set.path, set.content));
                        }
                    }
                    Action::Redirect(_) => {
                        let location = verdict.location(&question, spelled).unwrap_or_default();
                        told.row("location", &String::from_utf8_lossy(&location));
                    }
                    Action::Again(_) => {
                        let Some(target) = verdict.target(&question, spelled) else {
                            told.row("answer", "400: the new path would have a segment of dots");
                            return Ok(Next::Found);
                        };
                        let target = String::from_utf8_lossy(&target).into_owned();
                        told.row("rewritten to", &target);
                        if is_first && !guarded_by_somebody {
                            told.row("kernel", "never answers: another target decides");
                        }
                        return Ok(Next::Again(target));
                    }
                    Action::Fixed(_) => {}
                }
                if let Some(set) = routes.router.set(verdict.set) {
                    let is_file = matches!(verdict.action, Action::Cached { .. });
                    told.fields(set, path, is_file);
                }
                if let Some(set) = routes.router.set(verdict.set) {
                    told.compression(set);
                }
                if let Some(set) = routes.router.set(verdict.set)
                    && let Some(site) = loaded.config.sites.get(set.site.0 as usize)
                {
                    let place = site.paths.get(set.path);
                    let content = place.and_then(|place| place.contents.get(set.content));
                    told.errors(&error_pages(site, place, content));
                }
                let is_kept = matches!(verdict.action, Action::Cached { .. })
                    || matches!(verdict.action, Action::Distributed { .. })
                        && question.method.is_get_or_head();
                if is_kept && !verdict.certain && is_first {
                    let more = conditions(&routes.router, &explanation);
                    told.row("kernel", &format!("never answers: {more} may decide"));
                }
                if let Some(set) = routes.router.set(verdict.set)
                    && is_left_out(&routes.router, set)
                {
                    told.row(
                    "note",
                    &format!(
                        "{MOST_WAYS} sites or prefixes before it lead to these files: never answered in the kernel"
                    ),
                );
                }
            }
        }
        Ok(if verdict.is_ok() { Next::Found } else { Next::Nowhere })
    }
}
