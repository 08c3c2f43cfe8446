//! The servers and server groups that sections name.

use std::collections::HashSet;

use crate::consents;
use crate::error_checks;
use crate::fallback::Fallback;
use crate::forward_auth::ForwardAuth;
use crate::groups::ServerGroup;
use crate::mirror::Mirror;
use crate::mirror_checks;
use crate::model::Config;
use crate::php::Php;
use crate::places::Place;
use crate::rules::server_addresses;
use crate::settings::Section;
use crate::site_settings::Behaviour;

/// Adds a server group for each `to` that names servers by their addresses.
pub(crate) fn name_servers(config: &mut Config) {
    let named: Vec<String> = destinations(config).map(|(_, _, to)| to.to_owned()).collect();
    let groups = config.groups.iter().map(|group| group.settings.name.clone());
    let mut known: HashSet<String> = groups.collect();
    for to in named {
        if known.insert(to.clone())
            && let (true, Ok(addresses)) = (to.contains([':', '/']), server_addresses(&to))
        {
            config.groups.push(ServerGroup::of_servers(&to, addresses));
        }
    }
}

/// Every server group or server that is named, with the section and the setting in which it is.
pub(crate) fn destinations(config: &Config) -> impl Iterator<Item = (Section, Key, &str)> {
    let own = config.sites.iter().flat_map(|site| {
        let own = named(("site", site.instance), site.to.as_deref(), site.fallback.as_ref());
        let own = own.chain(site.php.as_deref().map(|to| (("site", site.instance), "php", to)));
        let pages = error_checks::all(site).filter_map(|page| {
            page.to.as_deref().map(|to| ((page.section, page.instance), "to", to))
        });
        let own = own.chain(pages);
        let places = site.places().flat_map(|Place { section, behaviour, .. }| {
            let Behaviour { to, fallback, php, .. } = behaviour;
            let php = match php {
                Some(Php::To(to)) => Some((section, "php", &**to)),
                _ => None,
            };
            named(section, to.as_deref(), fallback.as_ref()).chain(php)
        });
        own.chain(places)
    });
    let asked = consents::places(config).filter_map(|(section, auth)| {
        auth.and_then(ForwardAuth::to).map(|to| (section, "forward_auth", to))
    });
    let mirrored = mirror_checks::places(config).filter_map(|(section, mirror)| {
        mirror.and_then(Mirror::to).map(|to| (section, "mirror", to))
    });
    own.chain(asked).chain(mirrored)
}

/// The servers that a section names.
fn named<'c>(
    section: Section,
    to: Option<&'c str>,
    fallback: Option<&'c Fallback>,
) -> impl Iterator<Item = (Section, Key, &'c str)> + use<'c> {
    let fallback = match fallback {
        Some(Fallback::To(to)) => Some((section, "fallback", &**to)),
        _ => None,
    };
    to.map(|to| (section, "to", to)).into_iter().chain(fallback)
}

/// The name of a setting.
pub(crate) type Key = &'static str;
