//! A `[[site]]` as the rest of the program sees it.

use std::path::PathBuf;
use std::sync::Arc;

use afpa_framework::Network;
use afpa_http::Status;
use afpa_http::edits::FieldRule;
use afpa_police::Prefix;
use afpa_proxy::limit::LimitSettings;
use afpa_proxy::select::Affinity;

use crate::access::{Access, BasicAuth};
use crate::choice::choice;
use crate::errors::ErrorPage;
use crate::fallback::Fallback;
use crate::filters::SiteFilter;
use crate::finding::Location;
use crate::forward_auth::ForwardAuth;
use crate::headers::FieldSettings;
use crate::hints::SiteHint;
use crate::marking::{OwnMarks, SiteMarks};
use crate::mirror::Mirror;
use crate::php::Php;
use crate::rates::Rates;
use crate::server_limits::ServerLimits;
use crate::settings::Instance;
use crate::shared_cache::{CacheMode, SiteCache};
use crate::tls::ClientCertificates;
use crate::units::Listen;

choice! {
    /// Which symbolic links are followed; none ever leads out of the root.
    Symlinks {
        /// None.
        Never = "never",
        /// Links whose owner owns the target too.
        Owner = "owner",
        /// All.
        Always = "always",
    }
}

/// A site: its addresses, the files that it serves itself, and the requests that it distributes.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSettings {
    /// Its name in logs and metrics; `None`: its first host, or its first address.
    pub name: Option<String>,
    /// Addresses and sockets to listen on, for plain HTTP.
    pub listen: Vec<Listen>,
    /// Addresses to listen on for HTTP over TLS.
    pub tls: Vec<Listen>,
    /// Whether requests without TLS are redirected to an address with it.
    pub https_only: bool,
    /// The value of Strict-Transport-Security in answers over TLS; `None`: no such field.
    pub hsts: Option<String>,
    /// The field that tells its clients of HTTP/3.
    pub alternative: Option<FieldRule>,
    /// Whether clients that come by TLS show a certificate; `None`: as `[tls]` says.
    pub client_certificates: Option<ClientCertificates>,
    /// A file of the authorities that issue these; `None`: as `[tls]` says.
    pub client_authorities: Option<PathBuf>,
    /// Host names, in lower case, some with a leading `*.`; empty: any.
    pub hosts: Vec<String>,
    /// The document root, absolute.
    pub root: Option<PathBuf>,
    /// The server group, or server, to which requests that are not cached are distributed.
    pub to: Option<String>,
    /// How a client stays with one server of the group; `None`: as the group says.
    pub affinity: Option<Affinity>,
    /// With `root` and `to`: extensions that are cached.
    pub cached: Arc<[String]>,
    /// The answer to requests for paths that are no files below `root`; `None`: 404.
    pub fallback: Option<Fallback>,
    /// The server group or server that runs the scripts below `root`, by FastCGI; `None`: there are none.
    pub php: Option<String>,
    /// `root`, as these servers see it; `None`: the same.
    pub php_root: Option<String>,
    /// Parameters that they get beside the usual ones.
    pub php_params: Vec<(String, String)>,
    /// Index files, in order of preference.
    pub index: Vec<String>,
    /// Whether answers of servers are compressed.
    pub compress: bool,
    /// Limits of requests to servers.
    pub server_limits: ServerLimits,
    /// Where these are mirrored; `None`: nowhere.
    pub mirror: Option<Mirror>,
    /// How often clients may ask.
    pub rates: Rates,
    /// The marks of its requests.
    pub marks: SiteMarks,
    /// Whether a directory without an index file is listed.
    pub listing: bool,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// Whether names that begin with a dot are served.
    pub dotfiles: bool,
    /// Whether `/~user/` leads to that user's pages.
    pub homes: bool,
    /// Their folder within a home directory.
    pub homes_directory: String,
    /// Response fields added to every answer from a file.
    pub headers: Vec<(String, String)>,
    /// Media types by extension, before the built-in ones.
    pub types: Vec<(String, String)>,
    /// Routers in front that begin connections with the PROXY protocol.
    pub proxy_from: Vec<Network>,
    /// Routers in front whose X-Forwarded-For is trusted.
    pub forwarded_from: Vec<Network>,
    /// The clients that may use it.
    pub access: Access,
    /// The users that may.
    pub basic_auth: Option<BasicAuth>,
    /// The server that says whether a request may be answered.
    pub forward_auth: Option<ForwardAuth>,
    /// `[site.limits]`.
    pub limits: LimitSettings,
    /// `[site.cache]`.
    pub cache: SiteCache,
    /// Every `[[site.hint]]`.
    pub hints: Vec<SiteHint>,
    /// Every `[[site.filter]]`.
    pub filters: Vec<SiteFilter>,
    /// Every `[[site.header]]`, and `[site.cors]`.
    pub fields: FieldSettings,
    /// Every `[[site.errors]]`.
    pub errors: Vec<ErrorPage>,
    /// Every `[[site.path]]`.
    pub paths: Vec<UrlPath>,
    /// Which `[[site]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// A `[[site.path]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlPath {
    /// The prefix of a path.
    pub prefix: String,
    /// Whether it applies to subdirectories.
    pub recursion: bool,
    /// Whether it applies to the prefix alone.
    pub exact: bool,
    /// The behaviour for requests that match no content group.
    pub behaviour: Behaviour,
    /// Every `[[site.path.header]]`, and `[site.path.cors]`.
    pub fields: FieldSettings,
    /// Every `[[site.path.errors]]`.
    pub errors: Vec<ErrorPage>,
    /// Every `[[site.path.content]]`.
    pub contents: Vec<ContentGroup>,
    /// Which `[[site.path]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// A `[[site.path.content]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentGroup {
    /// Extensions, `none` and `others`; empty: all.
    pub extensions: Vec<String>,
    /// The behaviour for requests for them.
    pub behaviour: Behaviour,
    /// Every `[[site.path.content.header]]`, and `[site.path.content.cors]`.
    pub fields: FieldSettings,
    /// Every `[[site.path.content.errors]]`.
    pub errors: Vec<ErrorPage>,
    /// Which `[[site.path.content]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// The behaviour of a request set, and its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Cached, from this directory.
    pub root: Option<PathBuf>,
    /// Its index files; empty: those of the site.
    pub index: Vec<String>,
    /// The answer to requests for paths that are no files; `None`: as the path says, or the site for its own root.
    pub fallback: Option<Fallback>,
    /// The servers that run the scripts there; `None`: as the path says, or the site.
    pub php: Option<Php>,
    /// `root`, as these servers see it; `None`: the same.
    pub php_root: Option<String>,
    /// Distributed, to this server group or server.
    pub to: Option<String>,
    /// How a client stays with one server of the group; `None`: as the group says.
    pub affinity: Option<Affinity>,
    /// Which answers of its servers are kept; `None`: as the site says.
    pub cache: Option<CacheMode>,
    /// Whether answers of its servers are compressed; `None`: as the path says, or the site.
    pub compress: Option<bool>,
    /// Limits of requests to its servers.
    pub server_limits: ServerLimits,
    /// Where these are mirrored; `None`: as the path says, or the site.
    pub mirror: Option<Mirror>,
    /// How often clients may ask.
    pub rates: Rates,
    /// The marks of its requests.
    pub marks: OwnMarks,
    /// Beside `to`: the text that replaces the prefix, or with variables all. Alone: the target that is routed again.
    pub rewrite: Option<String>,
    /// Redirected, to this URL.
    pub redirect: Option<String>,
    /// The status of the redirect.
    pub redirect_status: RedirectStatus,
    /// Answered with this status.
    pub status: Option<Status>,
    /// The content of that answer.
    pub body: String,
    /// The media type of that content.
    pub content_type: String,
    /// The clients that may use it; neither list: as the path or the site says.
    pub access: Access,
    /// The users that may; `None`: as the path or the site says.
    pub basic_auth: Option<BasicAuth>,
    /// The server that says whether a request may be answered; `None`: as the path or the site says.
    pub forward_auth: Option<ForwardAuth>,
    /// If the method is one of these.
    pub if_methods: Vec<String>,
    /// If the client's address has one of these prefixes.
    pub if_clients: Vec<Prefix>,
    /// If the path fits one of these patterns.
    pub if_path: Vec<String>,
    /// If these parameters of the query fit these patterns.
    pub if_query: Vec<(String, String)>,
    /// If these fields fit these patterns.
    pub if_headers: Vec<(String, String)>,
    /// If these cookies fit these patterns.
    pub if_cookies: Vec<(String, String)>,
    /// If the subject of the client's certificate fits this pattern.
    pub if_client_subject: Option<String>,
}

choice! {
    /// The status of a redirect (RFC 9110 section 15.4).
    RedirectStatus {
        /// The method may change to GET.
        MovedPermanently = "301",
        /// The method may change to GET.
        Found = "302",
        /// The method changes to GET.
        SeeOther = "303",
        /// The method stays.
        Temporary = "307",
        /// The method stays.
        Permanent = "308",
    }
}

impl RedirectStatus {
    /// The status that it names.
    pub const fn status(self) -> Status {
        match self {
            RedirectStatus::MovedPermanently => Status::MOVED_PERMANENTLY,
            RedirectStatus::Found => Status::FOUND,
            RedirectStatus::SeeOther => Status::SEE_OTHER,
            RedirectStatus::Temporary => Status::TEMPORARY_REDIRECT,
            RedirectStatus::Permanent => Status::PERMANENT_REDIRECT,
        }
    }
}

impl SiteSettings {
    /// Every address of the site, and whether connections to it begin with a handshake of TLS.
    pub fn addresses(&self) -> impl Iterator<Item = (&Listen, bool)> {
        let plain = self.listen.iter().map(|listen| (listen, false));
        plain.chain(self.tls.iter().map(|listen| (listen, true)))
    }
}
