//! The settings of the place that a request reaches, a row each.

use std::time::Duration;

use afpa_http::edits::{Change, FieldRule};
use afpa_module_http::readings;
use afpa_police::Quota;
use afpa_router::{Action, Fallback, Fields, Question, RequestSet, Unrouted, Verdict};

use super::told::Told;
use afpa_config::{Choice as _, ErrorPage, RateOrigin, ServerLimits, field_rules, human_size};

impl Told<'_> {
    /// The limits of a request to servers that the place has.
    pub(super) fn limits(&mut self, limits: ServerLimits) {
        let content = limits.largest_content.map(|most| format!("content {}", human_size(most)));
        let within = |what: &str, time: Option<Duration>| {
            time.map(|time| match time.is_zero() {
                true => format!("{what} without a limit"),
                false => format!("{what} within {time:?}"),
            })
        };
        let patience = [
            within("connection", limits.connect),
            within("first byte", limits.first_byte),
            within("next byte", limits.idle),
            within("whole answer", limits.total),
            within("next byte of a tunnel", limits.tunnel_idle),
        ];
        let all: Vec<String> = content.into_iter().chain(patience.into_iter().flatten()).collect();
        if !all.is_empty() {
            self.row("limits", &all.join(", "));
        }
    }

    /// How often clients may ask there, and where other readings of the path lead. Whether there is a rate.
    pub(super) fn rates<F: Fields + Copy>(
        &mut self,
        question: &Question<'_, F>,
        verdict: &Result<Verdict<'_, '_>, Unrouted>,
        apart: &[Vec<u8>],
    ) -> bool {
        let mut all = self.rates_of(verdict);
        for path in &readings(question.path, apart, &[], false) {
            let read_as = self.routes.router.route(&Question { path, ..*question });
            for rate in self.rates_of(&read_as) {
                if !all.contains(&rate) {
                    all.push(rate);
                }
            }
        }
        if !all.is_empty() {
            self.row("rate", &all.join("; "));
        }
        !all.is_empty()
    }

    fn rates_of(&self, verdict: &Result<Verdict<'_, '_>, Unrouted>) -> Vec<String> {
        let (site, place) = match verdict {
            Ok(verdict) => match self.routes.router.set(verdict.set) {
                Some(set) => (set.site, Some((set.path, set.content))),
                None => return Vec::new(),
            },
            Err(Unrouted::NotFound(site)) => (*site, None),
            Err(Unrouted::Misdirected) => return Vec::new(),
        };
        let Some(site) = self.loaded.config.sites.get(site.0 as usize) else { return Vec::new() };
        let [client, all] = site.rates_of(place.map(|(path, _)| path), place.map(|(_, own)| own));
        let told = |found: Option<(RateOrigin, Quota)>, who: &str| {
            let (origin, quota) = found?;
            let origin = match origin {
                RateOrigin::Site => "the site",
                RateOrigin::Path(_) => "the path",
                RateOrigin::Content(..) => "the content group",
            };
            Some(format!("{quota} for {who}, by {origin}"))
        };
        told(client, "a client").into_iter().chain(told(all, "all clients")).collect()
    }

    /// The group that gets the request as well.
    pub(super) fn mirror(&mut self, mirror: Option<(&str, u32)>) {
        match mirror {
            Some((to, 100)) => self.row("mirror", &format!("{to} gets what servers are asked")),
            Some((to, share)) => {
                self.row("mirror", &format!("{to} gets {share}% of what servers are asked"));
            }
            None => {}
        }
    }

    /// The changes of fields that a request for the path meets, a line each.
    pub(super) fn fields(&mut self, set: &RequestSet, path: &[u8], is_file: bool) {
        let Some(site) = self.loaded.config.sites.get(set.site.0 as usize) else { return };
        let place = site.paths.get(set.path);
        let content = place.and_then(|place| place.contents.get(set.content));
        let rules = field_rules(site, place, content);
        let mut name = "fields";
        for rule in rules.rules.iter().filter(|rule| path.starts_with(&rule.prefix)) {
            for (what, change) in [("answer", &rule.answer), ("request", &rule.request)] {
                if change.is_empty() {
                    continue;
                }
                let condition = if what == "answer" { condition(rule) } else { String::new() };
                self.row(name, &format!("{what}: {}{condition}", changed(change)));
                name = "";
            }
        }
        for (field, value) in site.headers.iter().filter(|_| is_file) {
            self.row(name, &format!("file: set {field}: {value}"));
            name = "";
        }
        if let Some(value) = &site.hsts {
            self.row(name, &format!("answer: set Strict-Transport-Security: {value}  (over TLS)"));
        }
        if let Some(cors) = &rules.cors {
            self.row("cors", &format!("{}, and preflights are answered", cors.origins.join(", ")));
        }
        if let Some(id) = &rules.id {
            let client = if id.in_answers { " and the client" } else { "" };
            self.row("request id", &format!("{} to servers{client}", id.field));
        }
        if let Some(trace) = &rules.trace {
            let of = if trace.of_anybody { "any client" } else { "routers in forwarded_from" };
            self.row("trace", &format!("of {of}, or a new one, {}% recorded", trace.share));
        }
        let kernel = match (is_file, rules.depends_on_origin(), rules.changes_answers()) {
            _ if rules.marks_answers() => "never answers: each answer has an id of its own",
            (true, true, _) => "never answers: the answer depends on the origin of the request",
            (false, _, true) => "never answers: fields of servers' answers are changed",
            _ => return,
        };
        self.row("kernel", kernel);
    }

    /// Whether answers of servers are compressed.
    pub(super) fn compression(&mut self, set: &RequestSet) {
        let config = &self.loaded.config;
        let site = config.sites.get(set.site.0 as usize);
        let compresses = site.is_some_and(|site| site.compresses(set.path, set.content));
        let is_file = match &set.behaviour.action {
            Action::Distributed { .. } => false,
            Action::Cached { fallback, scripts, .. } => {
                scripts.is_none() && !matches!(fallback, Some(Fallback::Distributed { .. }))
            }
            _ => true,
        };
        if !compresses || is_file {
            return;
        }
        let compression = &config.compression;
        let told = match compression.enabled && !compression.codings.is_empty() {
            false => "none: [compression] is off".to_owned(),
            true => {
                let words: Vec<_> = compression.codings.iter().map(|one| one.word()).collect();
                let (types, least) = (compression.types.join(", "), compression.min_size);
                format!("{} for servers' {types} of {least} bytes or more", words.join(", "))
            }
        };
        self.row("compression", &told);
    }

    /// The pages of errors, a line each. The first one that has a status is for it.
    pub(super) fn errors(&mut self, pages: &[(&ErrorPage, (u16, u16))]) {
        let mut name = "errors";
        for (page, (first, last)) in pages {
            let statuses = match (first, last) {
                (400, 599) => "all".to_owned(),
                _ if first == last => first.to_string(),
                _ => format!("{}xx", first / 100),
            };
            let from = match (&page.file, &page.to) {
                (Some(file), _) => file.display().to_string(),
                (None, Some(to)) => format!("{to}, asked for {}", page.path),
                (None, None) => "the built-in page".to_owned(),
            };
            let answer = page.answer.map(|answer| format!(", as {answer}")).unwrap_or_default();
            let servers = if page.intercept { ", also for servers' own errors" } else { "" };
            self.row(name, &format!("{statuses}: {from}{answer}{servers}"));
            name = "";
        }
    }
}

/// The fields that a rule changes.
fn changed(change: &Change) -> String {
    let verbs = [("set", &change.set), ("add", &change.add)];
    let pairs = verbs.into_iter().flat_map(|(verb, pairs)| {
        pairs.iter().map(move |(name, value)| format!("{verb} {name}: {value}"))
    });
    let removed = change.remove.iter().map(|name| format!("remove {name}"));
    removed.chain(pairs).collect::<Vec<_>>().join(", ")
}

/// The condition of a rule for answers, beside its path.
fn condition(rule: &FieldRule) -> String {
    let statuses = rule.statuses.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{}xx", first / 100),
    });
    let parts: Vec<String> = statuses.chain(rule.types.iter().cloned()).collect();
    if parts.is_empty() { String::new() } else { format!("  (if {})", parts.join(" ")) }
}
