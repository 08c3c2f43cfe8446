//! Translates a configuration of nginx into one of AFPA, and notes line by line all that it could not keep.
//!
//! It reads no file: included ones come from a closure. A directive whose meaning cannot be kept exactly is left out and
//! named. Where a directive that keeps somebody out cannot be kept, its place refuses everybody. A place whose answer cannot
//! be kept gives an error instead of another answer.
//!
//! ```
//! let text = "http { server { listen 80; root /srv/www; } }";
//! let done = afpa_adapt::adapt("nginx.conf", text, &mut |_| Ok(Vec::new())).unwrap();
//! assert!(done.toml.contains("root = \"/srv/www\""));
//! assert_eq!((done.directives, done.translated), (4, 4));
//! ```

mod cache;
mod conditions;
mod consent;
mod errors;
mod facts;
mod files;
mod guards;
mod headers;
mod hoist;
mod kind;
mod learnt;
mod lexer;
mod listen;
mod locations;
mod mirrors;
mod model;
mod names;
mod notes;
mod php;
mod place;
mod process;
mod proxy;
mod rates;
mod redirects;
mod rewrites;
mod rules;
mod scope;
mod server;
mod standard;
mod syntax;
mod target;
mod tls;
mod upstream;
mod values;
mod write;

use std::cell::RefCell;

pub use notes::{Kind, Note};
pub use syntax::{Files, SyntaxError};

use listen::Listen;
use model::Output;
use scope::Scope;
use syntax::Directive;
use upstream::Context;

/// A translated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The configuration of AFPA.
    pub toml: String,
    /// Notes on all that was not simply translated, in the order of the files' lines.
    pub notes: Vec<Note>,
    /// Names of directives about which AFPA decides itself, so that nothing is lost without them.
    pub decided: Vec<String>,
    /// How many directives there are.
    pub directives: usize,
    /// How many of them are translated, or decided by AFPA.
    pub translated: usize,
}

impl Translation {
    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.directives == self.translated
    }
}

/// Translates the file `name` with this text. Its folder is where relative names of included files begin.
///
/// # Errors
/// [`SyntaxError`], where nginx would not read it either, or a file cannot be included.
pub fn adapt(name: &str, text: &str, files: Files<'_>) -> Result<Translation, SyntaxError> {
    let main = syntax::parse(name, text, files)?;
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    // A file of `sites-available` has servers without `http` around them.
    let http = main.iter().find(|one| one.is("http"));
    let scope = Scope::of(http.map_or(&main[..], Directive::children));
    let context = context(scope.here(), folder);
    let mut output = Output::default();
    process::settings(&context, &main, &scope, &mut output);
    let servers = scope.here().iter().filter(|one| one.is("server"));
    let servers: Vec<(&Directive, Listen)> =
        servers.map(|server| (server, listen::read(&context, server))).collect();
    let names = listen::names(&context, &servers);
    for ((server, listen), names) in servers.iter().zip(&names) {
        process::inner(&context, server.children(), &scope);
        if !listen.is_empty() {
            server::sites(&context, &scope, server, (listen, names), &mut output);
        }
    }
    variables(&context, scope.here());
    output.groups = context.groups.take();
    let sum = context.ledger.conclude(&main);
    Ok(Translation {
        toml: write::write(&output),
        notes: sum.notes,
        decided: sum.decided.into_iter().collect(),
        directives: sum.directives,
        translated: sum.translated,
    })
}

/// The knowledge that all servers share.
fn context(http: &[Directive], folder: String) -> Context<'_> {
    let named = http.iter().filter(|one| one.is("upstream"));
    let upstreams = named.map(|one| (one.word(0), one)).collect();
    let maps = http.iter().filter(|one| one.is("map") && one.word(0) == "$http_upgrade");
    let zones =
        http.iter().filter(|one| matches!(&*one.name, "limit_req_zone" | "limit_conn_zone"));
    let by_client =
        zones.filter(|one| matches!(one.word(0), "$binary_remote_addr" | "$remote_addr"));
    let zones = by_client.filter_map(|one| {
        let find = |start| one.words.iter().find_map(|word| word.strip_prefix(start));
        let zone = find("zone=")?.split(':').next()?;
        Some((zone, find("rate=").unwrap_or_default()))
    });
    Context {
        ledger: notes::Ledger::default(),
        upstreams,
        upgrades: maps.map(|one| one.word(1)).collect(),
        zones: zones.collect(),
        groups: RefCell::default(),
        folder,
    }
}

/// Variables, which AFPA does not have; where one is used, that is noted as well.
fn variables(context: &Context<'_>, block: &[Directive]) {
    for directive in block {
        let word = directive.word(0);
        match &*directive.name {
            "valid_referers" => {
                context.ledger.left(directive, "an `if ($invalid_referer)` has no counterpart");
            }
            "set" if word == "$path_info" => {}
            "auth_request_set" if directive.word(1).starts_with("$upstream_http_") => {}
            "auth_request_set" => {
                context.ledger.left(directive, "AFPA copies fields of the server's answer");
            }
            "set" => context.ledger.left(directive, "AFPA has no variables of its own"),
            "map" if context.upgrades.contains(&directive.word(1)) => {}
            "map" => context.ledger.left(directive, "AFPA has no variables of its own"),
            _ => variables(context, directive.children()),
        }
    }
}
