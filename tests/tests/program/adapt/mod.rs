//! `afpa adapt`: nginx by its configuration, and AFPA by the translation, give the same answers.

mod bed;
mod kinds;

use std::collections::BTreeSet;
use std::path::Path;

use afpa_testkit::{Response, figure, nginx, skip};

use self::bed::{Bed, NGINX, Peer, text};
use self::kinds::{KINDS, Kind};

/// At least so many requests a configuration.
const LEAST: usize = 50;

/// A request: host, whether by TLS, method, target, more field lines.
type Asked = (&'static str, bool, &'static str, String, &'static str);

/// One test for each kind, so that they run beside one another.
fn compare(name: &str) {
    let kind = KINDS.iter().find(|kind| kind.name == name).expect("a kind");
    if !Path::new(nginx::PROGRAM).exists() || !Path::new(NGINX).join("mime.types").exists() {
        skip!("nginx is not installed");
    }
    let bed = match Bed::new(kind) {
        Ok(bed) => bed,
        Err(why) => skip!("{why}"),
    };
    let theirs = bed.nginx();
    let ours = bed.afpa();
    let (mut faults, mut known) = (Vec::new(), 0);
    let all = asked(kind);
    for one in &all {
        let [by_nginx, by_afpa] = [&theirs, &ours].map(|peer| Answer::of(peer, one));
        let path = one.3.split('?').next().unwrap_or_default();
        let is_noted = kind.differs.iter().any(|(target, own, other)| {
            let is_it = match target.strip_suffix('*') {
                Some(start) => path.starts_with(start),
                None => path == *target,
            };
            is_it && [by_nginx.status, by_afpa.status] == [*own, *other]
        });
        match by_nginx == by_afpa {
            true => {}
            false if is_noted => known += 1,
            false => faults.push(format!("{one:?}:\n  nginx {by_nginx:?}\n  afpa  {by_afpa:?}")),
        }
    }
    assert!(faults.is_empty(), "{name}: {} of {}:\n{}", faults.len(), all.len(), faults.join("\n"));
    assert!(all.len() - known >= LEAST, "{name}: only {} requests", all.len() - known);
    let same = all.len() - known;
    let row = format!("| {name} | {} | {same} |", share(name));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/adapt-details.md");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains(&row), "docs/adapt-details.md does not say: {row}");
    figure!("{row} {known} others differ as noted");
}

macro_rules! kinds {
    ($($test:ident $name:literal)*) => {
        $(#[test]
        fn $test() {
            compare($name);
        })*
        const TESTED: &[&str] = &[$($name),*];
    };
}

kinds! {
    balancer "balancer"
    boilerplate "boilerplate"
    cache "cache"
    discourse "discourse"
    front_controller "front-controller"
    gitlab "gitlab"
    legacy "legacy"
    mastodon "mastodon"
    nextcloud "nextcloud"
    portal "portal"
    spa "spa"
    static_files "static"
    tls_sites "tls-sites"
    wordpress "wordpress"
}

#[test]
fn every_kind_is_compared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/afpa-adapt/tests/kinds");
    let files = std::fs::read_dir(folder).expect("the kinds").map(|file| file.expect("it").path());
    let is_conf = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "conf");
    let names =
        files.filter(is_conf).filter_map(|path| Some(path.file_stem()?.display().to_string()));
    let names: BTreeSet<String> = names.collect();
    assert_eq!(names, TESTED.iter().map(|name| (*name).to_owned()).collect());
}

/// The share of a kind that is translated, as it stands with the kinds.
fn share(name: &str) -> String {
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/afpa-adapt/tests/kinds");
    let notes = std::fs::read_to_string(kinds.join(format!("{name}.notes"))).expect("its notes");
    notes.lines().next().unwrap_or_default().trim_end_matches(" directives").to_owned()
}

/// The requests of a kind: its files, its locations, names that are not there, other methods, and those of its own.
fn asked(kind: &'static Kind) -> Vec<Asked> {
    let mut all = Vec::new();
    let mut add = |(host, tls): (&'static str, bool), method: &'static str, target: String| {
        let one = (host, tls, method, target, kind.lines);
        if !all.contains(&one) {
            all.push(one);
        }
    };
    let main = kind.hosts[0];
    for target in kind.files.iter().filter_map(|file| file.strip_prefix(kind.root)) {
        add(main, "GET", target.to_owned());
        add(main, "GET", format!("{target}?q=1&r=%20"));
        add(main, "HEAD", target.to_owned());
        let folder = target.rsplit_once('/').map_or("", |(folder, _)| folder);
        add(main, "GET", format!("{folder}/"));
        add(main, "GET", format!("{folder}/none.html"));
        if !folder.is_empty() {
            add(main, "GET", folder.to_owned());
        }
    }
    let text = text(kind);
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("location ")) {
        let words = line.trim_start_matches(['=', '^', '~', ' ']);
        let path = words.split_whitespace().next().unwrap_or_default();
        if !path.starts_with('/') || line.starts_with("~") || path.contains('\\') {
            continue;
        }
        let bare = path.trim_end_matches('/');
        for target in [path.to_owned(), format!("{bare}/none/x.txt"), format!("{bare}x")] {
            add(main, "GET", target.clone());
            add(main, "GET", format!("{target}?a=b"));
            add(main, "HEAD", target);
        }
    }
    for target in ["/", "/none", "/none/", "/a//b", "/%6eone", "/./none", "/x/../none"] {
        add(main, "GET", target.to_owned());
    }
    for (host, tls) in kind.hosts {
        for target in ["/", "/a/b?c=d"] {
            add((host, *tls), "GET", target.to_owned());
        }
    }
    for (method, target) in kind.more {
        add(main, method, (*target).to_owned());
    }
    let own = kind
        .own
        .iter()
        .map(|(host, tls, target, lines)| (*host, *tls, "GET", (*target).to_owned(), *lines));
    all.into_iter().chain(own).collect()
}

fn ask(peer: &Peer, (host, tls, method, target, lines): &Asked) -> Response {
    let mut client = peer.connect(host, *tls);
    let length = if matches!(*method, "GET" | "HEAD") { "" } else { "Content-Length: 0\r\n" };
    client.exchange(format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}{length}\r\n"
    ))
}

/// All that has to be the same.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    location: Option<String>,
    media_type: Option<String>,
    fields: Vec<(String, String)>,
    content: String,
}

/// The fields that the configurations set.
const FIELDS: &[&str] = &[
    "access-control-allow-origin",
    "cache-control",
    "content-security-policy",
    "referrer-policy",
    "strict-transport-security",
    "www-authenticate",
    "x-content-type-options",
    "x-frame-options",
    "x-robots-tag",
];

impl Answer {
    fn of(peer: &Peer, asked: &Asked) -> Self {
        let response = ask(peer, asked);
        // Built-in error pages differ.
        let text = String::from_utf8_lossy(&response.body);
        let is_own = !text.contains("<hr><center>nginx") && text.starts_with("the file ");
        let is_page = response.status == 200 || response.status >= 400 && is_own;
        let names =
            response.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        let mut fields: Vec<_> = names.filter(|(name, _)| FIELDS.contains(&&**name)).collect();
        fields.sort();
        Self {
            status: response.status,
            location: response.field("Location").map(path_of),
            media_type: response.field("Content-Type").filter(|_| is_page).map(essence),
            fields: if response.status < 400 { fields } else { Vec::new() },
            content: if is_page { text.into_owned() } else { String::new() },
        }
    }
}

/// nginx writes the whole URL where AFPA leaves the host to the client.
fn path_of(location: &str) -> String {
    let rest = location.split_once("://").map(|(_, rest)| rest);
    let path = rest.map(|rest| rest.find('/').map_or("/", |at| &rest[at..]));
    path.unwrap_or(location).to_owned()
}

/// The media type without its parameters; the two names of JavaScript are one (RFC 9239).
fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.replace("application/javascript", "text/javascript")
}
