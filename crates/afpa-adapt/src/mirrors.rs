//! `mirror`: a second server that gets the requests of a place as well.

use crate::headers;
use crate::kind::located;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::target;
use crate::upstream::Context;
use crate::values::quoted;

/// The line for a place whose servers' requests are mirrored.
pub(crate) fn line(context: &Context<'_>, scope: &Scope<'_>) -> Option<String> {
    let all: Vec<&Directive> =
        scope.all("mirror").into_iter().filter(|one| one.word(0) != "off").collect();
    let directive = *all.first()?;
    if let Some(second) = all.get(1) {
        context.ledger.left(second, "AFPA has one mirror for a place");
    }
    match group(context, scope, directive) {
        Ok(to) => {
            let why = "requests that files or kept answers answer are not mirrored";
            context.ledger.differs(directive, why);
            Some(format!("mirror = {}", quoted(&to)))
        }
        Err(why) => {
            context.ledger.left(directive, why);
            None
        }
    }
}

/// The servers that the location of a mirror asks for the path of the request.
fn group(
    context: &Context<'_>,
    scope: &Scope<'_>,
    directive: &Directive,
) -> Result<String, String> {
    let server = scope.server();
    let found = located(&server, directive.word(0));
    let (location, inner) = found.ok_or("there is no location for it")?;
    let acts = |one: &&Directive| {
        matches!(&*one.name, "rewrite" | "return" | "if" | "proxy_method" | "proxy_set_body")
    };
    if let Some(odd) = location.children().iter().find(acts) {
        return Err(format!("its location has {}, which AFPA's mirror does not do", odd.name));
    }
    let pass = location.children().iter().find(|one| one.is("proxy_pass"));
    let pass = pass.ok_or("its location asks no server")?;
    let url = pass.word(0).strip_suffix("$request_uri");
    let url = url.ok_or("AFPA's mirror gets the URL of the request (`$request_uri`), no other")?;
    let target = target::target(url)?;
    if target.path.is_some() {
        return Err(
            "AFPA's mirror gets the URL of the request, without a path before it".to_owned()
        );
    }
    let sent = headers::requests(context, &inner);
    if scope.value("mirror_request_body") == "off" {
        context.ledger.differs(directive, "the mirror gets the content as well");
    }
    target::mirrored(context, &inner, pass, &target, sent.host)
}
