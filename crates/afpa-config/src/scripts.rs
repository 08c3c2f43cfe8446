//! Checks each `php`, `php_root` and `php_params`, and has the groups that are named speak FastCGI.

use std::collections::HashSet;

use afpa_proxy::request::Mark;

use crate::finding::{Finding, Location};
use crate::hierarchy::{Key, destinations};
use crate::model::Config;
use crate::php::Php;
use crate::places::Place;
use crate::settings::{Section, Settings};
use crate::site_settings::{Behaviour, SiteSettings, UrlPath};

impl SiteSettings {
    /// Whether scripts are run in some place of the site. In none of its places they are sent then.
    pub(crate) fn has_scripts(&self) -> bool {
        let runs = |behaviour: &Behaviour| matches!(behaviour.php, Some(Php::To(_)));
        self.php.is_some() || self.places().any(|place| runs(place.behaviour))
    }
}

/// Has the groups that `php` names speak FastCGI. Their defaults are those that PHP-FPM needs: a connection that it keeps
/// takes one of its processes, also while no request comes.
pub(crate) fn speak_fastcgi(config: &mut Config, settings: &Settings) {
    let named: HashSet<String> = destinations(config)
        .filter(|(_, key, _)| *key == "php")
        .map(|(_, _, to)| to.to_owned())
        .collect();
    for group in config.groups.iter_mut().filter(|group| named.contains(&group.settings.name)) {
        let instance = group.instance;
        let is_said =
            |section, key| settings.location_in(section, instance, key) != Location::Nowhere;
        group.settings.fastcgi = true;
        let exchange = &mut group.exchange;
        if !is_said("server_group.connections", "idle") {
            exchange.idle_connections = 0;
        }
        // The client and the scheme are parameters. A client's own X-Forwarded-Proto must not reach a program.
        if !is_said("server_group.request", "x_forwarded") {
            exchange.request.x_forwarded = Mark::Remove;
        }
        if !is_said("server_group.request", "via") {
            exchange.request.via = false;
        }
        exchange.request.upgrades.clear();
    }
}

/// Settings without effect, and groups that would have to speak two protocols; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let at = |(section, instance): Section, key: Key| settings.location_in(section, instance, key);
    for site in &config.sites {
        let own = ("site", site.instance);
        let has_root = site.root.is_some() || site.paths.iter().any(UrlPath::has_root);
        if site.php.is_some() && !has_root {
            let cause = "`php` has no effect without `root`";
            findings.push(Finding::error(
                at(own, "php"),
                cause,
                "write the directory of the scripts as `root`",
            ));
        }
        for key in ["php_root", "php_params"] {
            if !site.has_scripts() && settings.differs("site", site.instance, key) {
                let cause = format!("`{key}` has no effect without `php`");
                findings.push(Finding::error(
                    at(own, key),
                    cause,
                    "write php = \"unix:/run/php/php-fpm.sock\"",
                ));
            }
        }
        for Place { section, behaviour, .. } in site.places() {
            let other = behaviour.to.is_some()
                || behaviour.redirect.is_some()
                || behaviour.status.is_some();
            let key = match behaviour {
                Behaviour { php: Some(_), .. } => "php",
                Behaviour { php_root: Some(_), .. } => "php_root",
                _ => continue,
            };
            if other {
                let cause = format!("`{key}` has no effect: no file is looked for");
                findings.push(Finding::error(
                    at(section, key),
                    cause,
                    "remove it, or write `root` instead",
                ));
            }
        }
    }
    let by_http: HashSet<&str> =
        destinations(config).filter(|(_, key, _)| *key != "php").map(|(_, _, to)| to).collect();
    for (section, key, to) in destinations(config).filter(|(_, key, _)| *key == "php") {
        let group = config.groups.iter().find(|group| group.settings.name == to);
        let cause = match group {
            _ if by_http.contains(to) => format!("\"{to}\" is asked by HTTP in another place"),
            Some(group) if group.tls.is_some() => {
                format!("\"{to}\" has `tls`, which FastCGI has not")
            }
            Some(group) if group.settings.http2.is_some() => {
                format!("\"{to}\" has `http2`, and is asked by FastCGI")
            }
            Some(group) if group.settings.preface.is_some() => {
                format!("\"{to}\" has `proxy_protocol`, which FastCGI has not")
            }
            _ => continue,
        };
        let remedy = "name the socket of PHP-FPM (`listen` in its pool)";
        findings.push(Finding::error(at(section, key), cause, remedy));
    }
    findings
}
