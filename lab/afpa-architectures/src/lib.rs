//! The papers' server architectures as small reference servers on our HTTP core and cache.
