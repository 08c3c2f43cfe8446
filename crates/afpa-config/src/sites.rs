//! Sites with their paths and content groups: every setting with its default and its range.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use afpa_http::Status;
use afpa_proxy::limit::LimitSettings;
use afpa_proxy::select::Affinity;

use crate::access::{Access, BasicAuth};
use crate::errors::{ERRORS, ErrorPage};
use crate::filters::SiteFilter;
use crate::forward_auth::ForwardAuth;
use crate::headers::{FieldSettings, NAMES};
use crate::hints::SiteHint;
use crate::items::Item;
use crate::marking::{OwnMarks, SiteMarks};
use crate::mirror::Mirror;
use crate::police::prefix;
use crate::rates::Rates;
use crate::reader::{Reader, Section};
use crate::rules;
use crate::server_limits::ServerLimits;
use crate::shared_cache::SiteCache;
use crate::site_settings::{
    Behaviour, ContentGroup, RedirectStatus, SiteSettings, Symlinks, UrlPath,
};
use crate::tls;
use crate::units::Listen;

/// The extensions that are served from the cache when all other requests go to servers: files whose content does not
/// depend on the client.
static CACHED: LazyLock<Arc<[String]>> = LazyLock::new(|| {
    let extensions = [
        "avif", "bmp", "css", "csv", "eot", "flac", "gif", "htm", "html", "ico", "jpeg", "jpg",
        "js", "map", "md", "mjs", "mp3", "mp4", "oga", "ogg", "ogv", "otf", "pdf", "png", "svg",
        "ttf", "txt", "wasm", "wav", "webm", "webp", "woff", "woff2",
    ];
    extensions.map(String::from).into()
});

/// The kind of value that `php` takes.
const PHP: &str = "server group or server";

/// The kind of value that `fallback` takes.
const FALLBACK: &str = "path of a file, server group or server, or status";

impl SiteSettings {
    /// Reads one `[[site]]`.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let local = Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 8080)));
        let index = vec!["index.html".to_owned()];
        let homes = "public_html".to_owned();
        let mut s = reader.at(item);
        let mut site = SiteSettings {
            name: s.text_or("name", "name", "auto", rules::site_name),
            listen: s.texts("listen", "addresses", vec![local], str::parse),
            tls: s.texts("tls", "addresses", Vec::new(), str::parse),
            https_only: s.flag("https_only", false),
            hsts: s.text_or("hsts", "field value", "none", tls::strict_transport),
            alternative: None,
            client_certificates: s.choice_or("client_certificates", "tls"),
            client_authorities: read_client_authorities(&mut s),
            hosts: s.texts("hosts", "host names", Vec::new(), rules::site_host),
            root: s.optional_path("root"),
            to: s.text_or("to", "server group or server", "none", rules::destination),
            affinity: read_affinity(&mut s),
            cached: s.common_texts("cached", "extensions", &CACHED, rules::listed_extension),
            index: s.texts("index", "file names", index, rules::file_name),
            fallback: s.text_or_count("fallback", FALLBACK, "none", rules::fallback),
            php: s.text_or("php", PHP, "none", rules::destination),
            php_root: s.text_or("php_root", "absolute path", "root", rules::directory),
            php_params: s.pairs("php_params", "names and values", rules::param),
            compress: s.flag("compress", false),
            server_limits: ServerLimits::read(&mut s, "group"),
            mirror: Mirror::read(&mut s, "none"),
            rates: Rates::read(&mut s, "none"),
            marks: SiteMarks::read(&mut s),
            listing: s.flag("listing", false),
            symlinks: s.choice("symlinks", Symlinks::Owner),
            dotfiles: s.flag("dotfiles", false),
            homes: s.flag("homes", false),
            homes_directory: s.text("homes_directory", "file name", homes, rules::file_name),
            headers: s.pairs("headers", "field names and values", rules::header),
            types: s.pairs("types", "extensions and media types", rules::extension),
            proxy_from: s.texts("proxy_from", "networks", Vec::new(), rules::network),
            forwarded_from: s.texts("forwarded_from", "networks", Vec::new(), rules::network),
            access: read_access(&mut s),
            basic_auth: BasicAuth::read(&mut s, "none"),
            forward_auth: ForwardAuth::read(&mut s, "none"),
            limits: LimitSettings::default(),
            cache: SiteCache::off(),
            hints: Vec::new(),
            filters: Vec::new(),
            fields: FieldSettings::default(),
            errors: Vec::new(),
            paths: Vec::new(),
            instance: item.instance,
            location: item.location.clone(),
        };
        // A site with `tls` has a listener without TLS only if the file asks for one.
        if !site.tls.is_empty() && reader.is_default("site", item.instance, "listen") {
            site.listen.clear();
        }
        let limits = reader.within("site.limits", item);
        site.limits = read_limits(reader.at(&limits));
        let cache = reader.within("site.cache", item);
        site.cache = SiteCache::read(reader.at(&cache));
        for hint in reader.items("site.hint", Some(item)) {
            site.hints.push(SiteHint::read(reader, &hint));
        }
        for filter in reader.items("site.filter", Some(item)) {
            site.filters.push(SiteFilter::read(reader, &filter));
        }
        let [names, ..] = NAMES;
        site.fields = FieldSettings::read(reader, names, item);
        let [errors, ..] = ERRORS;
        site.errors = ErrorPage::read(reader, errors, item);
        for path in reader.items("site.path", Some(item)) {
            site.paths.push(UrlPath::read(reader, &path));
        }
        site
    }
}

fn read_client_authorities(s: &mut Section<'_, '_>) -> Option<PathBuf> {
    let path = s.path_or("client_authorities", "path, or `tls`", &["tls"], "tls");
    (path != "tls").then(|| PathBuf::from(path))
}

fn read_access(s: &mut Section<'_, '_>) -> Access {
    Access {
        allow: s.texts("allow", "prefixes", Vec::new(), prefix),
        deny: s.texts("deny", "prefixes", Vec::new(), prefix),
    }
}

fn read_limits(mut s: Section<'_, '_>) -> LimitSettings {
    let default = LimitSettings::default();
    let mut count = |key, default: u32, least| {
        let count = s.count(key, default as usize, least..=1_000_000_000);
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    LimitSettings {
        requests_per_second: count("requests_per_second", default.requests_per_second, 0),
        burst: count("burst", default.burst, 1),
        in_flight: count("in_flight", default.in_flight, 0),
        connections: count("connections", default.connections, 0),
        client_requests_per_second: count(
            "client_requests_per_second",
            default.client_requests_per_second,
            0,
        ),
        client_burst: count("client_burst", default.client_burst, 1),
        client_in_flight: count("client_in_flight", default.client_in_flight, 0),
        client_connections: count("client_connections", default.client_connections, 0),
        ..default
    }
}

impl UrlPath {
    fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        let mut path = UrlPath {
            prefix: s.required("prefix", "URL path prefix", rules::prefix).unwrap_or_default(),
            recursion: s.flag("recursion", true),
            exact: s.flag("exact", false),
            behaviour: Behaviour::read(&mut s),
            fields: FieldSettings::default(),
            errors: Vec::new(),
            contents: Vec::new(),
            instance: item.instance,
            location: item.location.clone(),
        };
        let [_, names, _] = NAMES;
        path.fields = FieldSettings::read(reader, names, item);
        let [_, errors, _] = ERRORS;
        path.errors = ErrorPage::read(reader, errors, item);
        for content in reader.items("site.path.content", Some(item)) {
            path.contents.push(ContentGroup::read(reader, &content));
        }
        path
    }
}

impl ContentGroup {
    fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        let mut group = ContentGroup {
            extensions: s.texts("extensions", "extensions", Vec::new(), rules::listed_extension),
            behaviour: Behaviour::read(&mut s),
            fields: FieldSettings::default(),
            errors: Vec::new(),
            instance: item.instance,
            location: item.location.clone(),
        };
        let [.., names] = NAMES;
        group.fields = FieldSettings::read(reader, names, item);
        let [.., errors] = ERRORS;
        group.errors = ErrorPage::read(reader, errors, item);
        group
    }
}

impl Behaviour {
    fn read(s: &mut Section<'_, '_>) -> Self {
        let text = "text/plain; charset=utf-8".to_owned();
        let status = |code: usize| u16::try_from(code).ok().and_then(Status::new);
        Behaviour {
            root: s.optional_path("root"),
            index: s.texts("index", "file names", Vec::new(), rules::file_name),
            fallback: s.text_or_count("fallback", FALLBACK, "site", rules::fallback),
            php: s.text_or("php", "server group or server, or `none`", "site", rules::php),
            php_root: s.text_or("php_root", "absolute path", "root", rules::directory),
            to: s.text_or("to", "server group or server", "none", rules::destination),
            affinity: read_affinity(s),
            cache: s.choice_or("cache", "site"),
            compress: s.flag_or("compress", "site"),
            server_limits: ServerLimits::read(s, "site"),
            mirror: Mirror::read(s, "site"),
            rates: Rates::read(s, "site"),
            marks: OwnMarks::read(s),
            rewrite: s.text_or("rewrite", "URL path", "none", rules::rewrite),
            redirect: s.text_or("redirect", "URL", "none", rules::location),
            redirect_status: s.choice("redirect_status", RedirectStatus::Permanent),
            status: s.count_or("status", "none", 200..=599).and_then(status),
            body: s.text("body", "text", String::new(), rules::any),
            content_type: s.text("content_type", "media type", text, rules::media_type),
            access: read_access(s),
            basic_auth: BasicAuth::read(s, "site"),
            forward_auth: ForwardAuth::read(s, "site"),
            if_methods: s.texts("if_methods", "methods", Vec::new(), rules::method),
            if_clients: s.texts("if_clients", "prefixes", Vec::new(), prefix),
            if_path: s.texts("if_path", "patterns", Vec::new(), rules::path_pattern),
            if_query: s.pairs("if_query", "parameter names and patterns", rules::parameter),
            if_headers: s.pairs("if_headers", "field names and patterns", rules::condition),
            if_cookies: s.pairs("if_cookies", "cookie names and patterns", rules::condition),
            if_client_subject: s.text_or("if_client_subject", "pattern", "none", rules::pattern),
        }
    }
}

impl SiteSettings {
    /// The limits of requests to servers in a content group of a path, by their numbers in the router's table.
    pub fn server_limits(&self, path: usize, content: usize) -> ServerLimits {
        let path = self.paths.get(path);
        let content = path.and_then(|path| path.contents.get(content));
        let of_content = content.map(|content| content.behaviour.server_limits);
        let of_path = path.map(|path| path.behaviour.server_limits);
        let of_path = of_path.unwrap_or_default().within(self.server_limits);
        of_content.unwrap_or_default().within(of_path)
    }

    /// The shortest time-out of its places.
    pub fn shortest_timeout(&self) -> Option<Duration> {
        let own = self.places().map(|place| place.behaviour.server_limits);
        own.chain([self.server_limits]).filter_map(ServerLimits::shortest).min()
    }
}

/// `None`: that of the server group.
fn read_affinity(s: &mut Section<'_, '_>) -> Option<Affinity> {
    s.choice_or("affinity", "group")
}
