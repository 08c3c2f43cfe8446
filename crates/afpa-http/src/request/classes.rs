//! Classes of request fields, by their possible effect on a server in a plain GET.
//!
//! A request is *plain* when each of its fields is either understood by the part that answers it, or cannot matter.
//! Most fields may matter to some server, and only that server can tell: so they have classes, and asking with decoys
//! shows which classes matter to an answer. A field without a class may mean anything.

macro_rules! classes {
    ($($class:ident $number:literal $text:literal: $($name:literal)*;)*) => {
        /// Fields that a server uses for the same purpose.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum FieldClass {
            $(
                #[doc = concat!($text, ".")]
                $class = $number,
            )*
        }

        impl FieldClass {
            /// Every class.
            pub const ALL: &[FieldClass] = &[$(FieldClass::$class),*];

            /// A description of the fields of this class, for people.
            pub const fn text(self) -> &'static str {
                match self {
                    $(FieldClass::$class => $text,)*
                }
            }
        }

        /// The names of all fields that have a class, in lower case.
        pub const CLASSED: &[(&str, FieldClass)] = &[$($(($name, FieldClass::$class),)*)*];
    };
}

classes! {
    UserAgent 0 "the client's program":
        "user-agent" "from";
    Accept 1 "accepted media types":
        "accept" "accept-charset";
    Language 2 "languages":
        "accept-language";
    Referer 3 "the page that leads here":
        "referer" "alt-used";
    Origin 4 "the page whose script asks":
        "origin" "x-requested-with";
    Cookie 5 "cookies":
        "cookie";
    ForwardedFor 6 "whom a proxy asks for":
        "forwarded" "x-forwarded-for" "x-real-ip" "x-client-ip" "x-cluster-client-ip" "true-client-ip"
        "client-ip" "fastly-client-ip" "cf-connecting-ip" "cf-ipcountry";
    ForwardedAs 7 "how a proxy was asked":
        "x-forwarded-proto" "x-forwarded-host" "x-forwarded-port" "x-forwarded-server" "x-forwarded-scheme"
        "x-forwarded-protocol" "x-forwarded-ssl" "x-scheme" "x-url-scheme" "front-end-https" "cf-visitor";
    Fetch 8 "fetch metadata":
        "sec-fetch-site" "sec-fetch-mode" "sec-fetch-user" "sec-fetch-dest" "sec-fetch-storage-access"
        "service-worker" "service-worker-navigation-preload";
    Hints 9 "client hints":
        "sec-ch-ua" "sec-ch-ua-mobile" "sec-ch-ua-platform" "sec-ch-ua-platform-version" "sec-ch-ua-arch"
        "sec-ch-ua-bitness" "sec-ch-ua-model" "sec-ch-ua-full-version" "sec-ch-ua-full-version-list"
        "sec-ch-ua-wow64" "sec-ch-ua-form-factors" "sec-ch-prefers-color-scheme"
        "sec-ch-prefers-reduced-motion" "sec-ch-prefers-reduced-transparency" "sec-ch-viewport-width"
        "sec-ch-viewport-height" "sec-ch-width" "sec-ch-dpr" "sec-ch-device-memory" "save-data" "dpr"
        "viewport-width" "width" "device-memory" "downlink" "ect" "rtt";
    Privacy 10 "wishes for privacy":
        "dnt" "sec-gpc";
    Secure 11 "the wish for HTTPS":
        "upgrade-insecure-requests";
    Priority 12 "priority and prefetching":
        "priority" "purpose" "sec-purpose" "x-moz" "x-purpose";
    Via 13 "proxies on the way":
        "via" "cdn-loop";
    Trace 14 "numbers of requests":
        "traceparent" "tracestate" "baggage" "x-request-id" "x-correlation-id" "x-amzn-trace-id" "x-trace-id"
        "x-cloud-trace-context" "x-b3-traceid" "x-b3-spanid" "x-b3-parentspanid" "x-b3-sampled" "b3" "cf-ray"
        "x-request-start" "x-prometheus-scrape-timeout-seconds";
    Cache 15 "wishes to caches":
        "cache-control" "pragma";
    Connection 16 "the connection":
        "keep-alive" "te" "max-forwards";
    Content 17 "content that is not there":
        "content-type";
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldClasses(u32);

impl FieldClasses {
    /// The class of fields that have no other: they may mean anything.
    pub const UNKNOWN: FieldClasses = FieldClasses(1 << 31);
    /// No class.
    pub const NONE: FieldClasses = FieldClasses(0);

    /// Every class that has a name.
    pub fn classed() -> FieldClasses {
        FieldClass::ALL.iter().fold(FieldClasses::NONE, |all, class| all.with(*class))
    }

    /// The class of a field, by its name in any case.
    pub fn of(name: &str) -> FieldClasses {
        let found = CLASSED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or(FieldClasses::UNKNOWN, |(_, class)| FieldClasses::NONE.with(*class))
    }

    /// With this class.
    #[must_use]
    pub fn with(self, class: FieldClass) -> FieldClasses {
        FieldClasses(self.0 | 1 << class as u32)
    }

    /// Without this class.
    #[must_use]
    pub fn without(self, class: FieldClass) -> FieldClasses {
        FieldClasses(self.0 & !(1 << class as u32))
    }

    /// Whether the class is among them.
    pub fn contains(self, class: FieldClass) -> bool {
        self.0 & 1 << class as u32 != 0
    }

    /// The classes of both.
    #[must_use]
    pub fn union(self, other: FieldClasses) -> FieldClasses {
        FieldClasses(self.0 | other.0)
    }

    /// Whether all of these are among `others`.
    pub fn within(self, others: FieldClasses) -> bool {
        self.0 & !others.0 == 0
    }

    /// As one word.
    pub fn bits(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_as_the_kernel_reads_them() {
        let mut names: Vec<_> = CLASSED.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CLASSED.len());
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(names.iter().all(|name| name.len() < 40 && name.bytes().all(plain)));
    }

    #[test]
    fn sets_of_classes() {
        let cookie = FieldClasses::of("COOKIE");
        assert!(cookie.contains(FieldClass::Cookie) && cookie.within(FieldClasses::classed()));
        assert!(!cookie.within(FieldClasses::classed().without(FieldClass::Cookie)));
        assert_eq!(FieldClasses::of("X-HTTP-Method-Override"), FieldClasses::UNKNOWN);
        assert!(!FieldClasses::UNKNOWN.within(FieldClasses::classed()));
        assert!(cookie.union(FieldClasses::UNKNOWN).contains(FieldClass::Cookie));
    }
}
