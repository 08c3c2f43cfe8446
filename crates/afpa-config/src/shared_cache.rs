//! The shared cache: which answers of servers are kept, and how.

use std::path::PathBuf;
use std::time::Duration;

use afpa_framework::Network;
use afpa_http::Status;

use crate::choice::choice;
use crate::reader::Section;
use crate::rules;
use crate::units::{Amount, GIB, KIB, MIB, Unfit};

/// `[shared_cache]`: for all sites together.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedCache {
    /// Bytes of its locked arena.
    pub limit: usize,
    /// The file with which one process ends and the next one begins.
    pub snapshot: Option<PathBuf>,
    /// Bytes of it.
    pub snapshot_limit: usize,
}

choice! {
    /// Which answers of servers are kept.
    CacheMode {
        /// Answers that say so.
        Auto = "auto",
        /// Also answers whose freshness can be guessed.
        Heuristic = "heuristic",
        /// No answers.
        Off = "off",
    }
}

choice! {
    /// How answers that set cookies are treated.
    SetCookie {
        /// They are not kept.
        Pass = "pass",
        /// They are kept without their cookies.
        Strip = "strip",
        /// They are kept with their cookies.
        Store = "store",
    }
}

choice! {
    /// Which parameters of a query belong to the key.
    QueryMode {
        /// All names.
        All = "all",
        /// No parameters.
        None = "none",
        /// Only the listed parameters.
        Only = "only",
        /// All but the listed parameters.
        Without = "without",
    }
}

/// `[site.cache]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteCache {
    /// Which answers are kept.
    pub mode: CacheMode,
    /// Bytes of the longest of them.
    pub max_object: usize,
    /// Lifetimes by status code; 0: any that is no error.
    pub times: Vec<(u16, Duration)>,
    /// For how long a stale answer may be used when its server fails.
    pub grace: Duration,
    /// For how long a request waits for the answer to another one.
    pub wait: Duration,
    /// How answers that set cookies are treated.
    pub set_cookie: SetCookie,
    /// Targeted fields.
    pub targets: Vec<String>,
    /// Which parameters of the query belong to the key.
    pub query: QueryMode,
    /// The names for that.
    pub query_names: Vec<String>,
    /// Whether the order of parameters does not matter.
    pub query_sort: bool,
    /// Cookies in the key.
    pub cookies: Vec<String>,
    /// Requests with these cookies do not use the cache.
    pub bypass_cookies: Vec<String>,
    /// Requests with these fields do not use the cache.
    pub bypass_headers: Vec<String>,
    /// The networks whose PURGE requests are obeyed.
    pub purge_from: Vec<Network>,
    /// Pieces of an answer of which only parts came.
    pub parts: usize,
    /// Whether Cache-Control of requests is obeyed.
    pub obey_clients: bool,
    /// Whether answers have Cache-Status.
    pub status_field: bool,
    /// Whether the kernel may give them.
    pub in_kernel: bool,
}

impl SharedCache {
    pub(crate) fn read(mut s: Section<'_, '_>, memory: usize) -> Self {
        SharedCache {
            limit: s.amount("limit", Amount::Percent(10), "memory", memory),
            snapshot: s.optional_path("snapshot"),
            snapshot_limit: s.size("snapshot_limit", 128 * MIB, MIB..=64 * GIB),
        }
    }
}

impl SiteCache {
    /// Before it has been read.
    pub(crate) fn off() -> Self {
        SiteCache {
            mode: CacheMode::Off,
            max_object: 0,
            times: Vec::new(),
            grace: Duration::ZERO,
            wait: Duration::ZERO,
            set_cookie: SetCookie::Pass,
            targets: Vec::new(),
            query: QueryMode::All,
            query_names: Vec::new(),
            query_sort: false,
            cookies: Vec::new(),
            bypass_cookies: Vec::new(),
            bypass_headers: Vec::new(),
            purge_from: Vec::new(),
            parts: 0,
            obey_clients: false,
            status_field: false,
            in_kernel: true,
        }
    }

    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));
        let none = Vec::new;
        let targets = vec!["CDN-Cache-Control".to_owned()];
        SiteCache {
            mode: s.choice("mode", CacheMode::Auto),
            max_object: s.size("max_object", 4 * MIB, KIB..=64 * MIB),
            times: read_times(&s.pairs("times", "status codes and durations", time)),
            grace: s.duration("grace", Duration::ZERO, Duration::ZERO..=day * 365),
            wait: s.duration("wait", second * 5, Duration::ZERO..=second * 3600),
            set_cookie: s.choice("set_cookie", SetCookie::Pass),
            targets: s.texts("targets", "field names", targets, field_name),
            query: s.choice("query", QueryMode::All),
            query_names: s.texts("query_names", "parameter names", none(), rules::any),
            query_sort: s.flag("query_sort", false),
            cookies: s.texts("cookies", "cookie names", none(), rules::any),
            bypass_cookies: s.texts("bypass_cookies", "cookie names", none(), rules::any),
            bypass_headers: s.texts("bypass_headers", "field names", none(), field_name),
            purge_from: s.texts("purge_from", "networks", Vec::new(), rules::network),
            parts: s.count("parts", 8, 0..=64),
            obey_clients: s.flag("obey_clients", false),
            status_field: s.flag("status_field", false),
            in_kernel: s.flag("in_kernel", true),
        }
    }
}

fn field_name(text: &str) -> Result<String, Unfit> {
    match afpa_http::syntax::is_token(text.as_bytes()) {
        true => Ok(text.to_owned()),
        false => Err(Unfit::new("is no field name", "use letters, digits and `-`")),
    }
}

/// `200 = "1m"`, or `any = "1m"`.
fn time(status: &str, duration: &str) -> Result<(String, String), Unfit> {
    let known = status == "any" || Status::parse(status).is_some_and(|status| status.code() >= 200);
    if !known {
        return Err(Unfit::new("has no status code for a name", "use 200 to 599, or `any`"));
    }
    crate::units::parse_duration(duration)?;
    Ok((status.to_owned(), duration.to_owned()))
}

fn read_times(pairs: &[(String, String)]) -> Vec<(u16, Duration)> {
    let read = |(status, duration): &(String, String)| {
        let status = if status == "any" { 0 } else { status.parse().ok()? };
        Some((status, crate::units::parse_duration(duration).ok()?))
    };
    pairs.iter().filter_map(read).collect()
}
