//! TLS of a server.

use crate::listen::Listen;
use crate::model::{Output, Site};
use crate::scope::Scope;
use crate::upstream::Context;
use crate::values::{is_plain, quoted};

/// The lines of a site, and the certificates.
pub(crate) fn site(
    context: &Context<'_>,
    scope: &Scope<'_>,
    listen: &Listen,
    site: &mut Site,
    output: &mut Output,
) {
    if listen.tls.is_empty() {
        return;
    }
    certificates(context, scope, output);
    versions(context, scope, output);
    clients(context, scope, site);
}

fn certificates(context: &Context<'_>, scope: &Scope<'_>, output: &mut Output) {
    let keys = scope.all("ssl_certificate_key");
    for (index, chain) in scope.all("ssl_certificate").into_iter().enumerate() {
        let Some(key) = keys.get(index) else {
            context.ledger.left(chain, "it has no key");
            continue;
        };
        let files = [chain.word(0), key.word(0)];
        if files.iter().any(|file| !is_plain(file) || file.contains(':')) {
            context.ledger.left(chain, "AFPA takes files without variables");
            continue;
        }
        let pair = (context.file(files[0]), context.file(files[1]));
        if !output.certificates.contains(&pair) {
            output.certificates.push(pair);
        }
    }
}

fn versions(context: &Context<'_>, scope: &Scope<'_>, output: &mut Output) {
    let Some(versions) = scope.last("ssl_protocols") else { return };
    let has = |version: &str| versions.words.iter().any(|word| word == version);
    if has("TLSv1") || has("TLSv1.1") || has("SSLv3") {
        context.ledger.differs(versions, "AFPA speaks TLS 1.2 and 1.3");
    } else if !has("TLSv1.2") {
        output.line("tls", "profile = \"modern\"".to_owned());
        context.ledger.differs(versions, "it is for all sites");
    } else if !has("TLSv1.3") {
        context.ledger.differs(versions, "AFPA speaks TLS 1.3, too");
    }
}

/// Certificates of clients.
fn clients(context: &Context<'_>, scope: &Scope<'_>, site: &mut Site) {
    let Some(verify) = scope.last("ssl_verify_client") else { return };
    let authorities = scope.value("ssl_client_certificate");
    let mode = match verify.word(0) {
        "off" => return,
        "on" => "required",
        "optional" => "optional",
        _ => "",
    };
    if mode.is_empty()
        || !is_plain(authorities)
        || authorities.is_empty()
        || scope.last("ssl_crl").is_some()
    {
        let why = "AFPA does not check clients in that way: nobody is let in";
        context.ledger.refused(verify, why);
        site.lines.push("deny = [\"0.0.0.0/0\", \"::/0\"]".to_owned());
        return;
    }
    site.lines.push(format!("client_certificates = {}", quoted(mode)));
    site.lines.push(format!("client_authorities = {}", quoted(&context.file(authorities))));
}
