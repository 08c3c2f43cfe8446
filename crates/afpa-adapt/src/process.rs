//! Settings of the whole process: logs, time-outs, compression, the user.

use crate::model::Output;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{bytes, duration, is_plain, quoted, size};

/// Adds what `main` and `http` say.
pub(crate) fn settings(
    context: &Context<'_>,
    main: &[Directive],
    http: &Scope<'_>,
    output: &mut Output,
) {
    for directive in main {
        match &*directive.name {
            "user" if is_plain(directive.word(0)) => {
                output.line("", format!("user = {}", quoted(directive.word(0))));
                if let Some(group) = directive.words.get(1) {
                    output.line("", format!("group = {}", quoted(group)));
                }
            }
            _ => {}
        }
    }
    times(context, http, output);
    compression(context, http, output);
    if let Some(streams) = http.last("http2_max_concurrent_streams") {
        match streams.word(0).parse::<u32>() {
            Ok(count @ 1..=1024) => output.line("http2", format!("streams = {count}")),
            _ => context.ledger.left(streams, "AFPA takes 1 to 1024"),
        }
    }
    resolver(context, http, output);
    access_log(context, main, output);
    error_log(context, main, output);
}

fn times(context: &Context<'_>, http: &Scope<'_>, output: &mut Output) {
    let pairs = [
        ("client_header_timeout", "head"),
        ("client_body_timeout", "body"),
        ("keepalive_timeout", "idle"),
        ("send_timeout", "write"),
    ];
    for (name, key) in pairs {
        let Some(directive) = http.last(name) else { continue };
        match duration(directive.word(0), 100, 3_600_000) {
            Some(time) => output.line("timeouts", format!("{key} = {}", quoted(&time))),
            None => context.ledger.left(directive, "AFPA takes 100ms to 1h"),
        }
    }
}

fn compression(context: &Context<'_>, http: &Scope<'_>, output: &mut Output) {
    if http.value("gzip") == "off" && !http.is_on("brotli") {
        output.line("compression", "enabled = false".to_owned());
        return;
    }
    let mut types: Vec<String> = Vec::new();
    for name in ["gzip_types", "brotli_types"] {
        for word in http.all(name).into_iter().flat_map(|directive| &directive.words) {
            let fits = word.contains('/') && is_plain(word) && !types.contains(word);
            types.extend(fits.then(|| word.clone()));
        }
    }
    let all = http.all("gzip_types").iter().any(|directive| directive.word(0) == "*");
    if all {
        for directive in http.all("gzip_types") {
            context.ledger.left(directive, "AFPA compresses its own list of types");
        }
    } else if !types.is_empty() {
        // It is always among nginx's.
        if !types.iter().any(|word| word == "text/html") {
            types.insert(0, "text/html".to_owned());
        }
        output.line("compression", texts("types", &types));
    }
    if let Some(least) = http.last("gzip_min_length").or_else(|| http.last("brotli_min_length")) {
        match bytes(least.word(0)).filter(|bytes| *bytes <= 1 << 20) {
            Some(bytes) => {
                output.line("compression", format!("min_size = {}", quoted(&size(bytes))))
            }
            None => context.ledger.left(least, "AFPA takes at most 1MiB"),
        }
    }
    for (name, key, most) in [("gzip_comp_level", "gzip", 9), ("brotli_comp_level", "br", 11)] {
        let Some(level) = http.last(name) else { continue };
        match level.word(0).parse::<u8>() {
            Ok(level) if level <= most => {
                output.line("compression.levels", format!("{key} = {level}"));
            }
            _ => context.ledger.left(level, "AFPA has no such level"),
        }
    }
}

fn resolver(context: &Context<'_>, http: &Scope<'_>, output: &mut Output) {
    let Some(resolver) = http.last("resolver") else { return };
    let mut servers = Vec::new();
    for word in resolver.words.iter().filter(|word| !word.contains('=')) {
        let with_port = || format!("{word}:53").parse::<std::net::SocketAddr>();
        match word.parse::<std::net::SocketAddr>().or_else(|_| with_port()) {
            Ok(address) => servers.push(address.to_string()),
            Err(_) => context.ledger.left(resolver, "AFPA takes addresses of name servers"),
        }
    }
    if !servers.is_empty() {
        output.line("resolver", texts("name_servers", &servers));
    }
}

/// Every directive of a name, anywhere.
fn every<'d>(block: &'d [Directive], name: &str, found: &mut Vec<&'d Directive>) {
    for directive in block {
        if directive.is(name) {
            found.push(directive);
        }
        every(directive.children(), name, found);
    }
}

/// One access log is for everything.
fn access_log(context: &Context<'_>, main: &[Directive], output: &mut Output) {
    let mut logs = Vec::new();
    every(main, "access_log", &mut logs);
    let is_file = |log: &&Directive| log.word(0).starts_with('/') && is_plain(log.word(0));
    let first = logs.iter().copied().find(is_file);
    for log in logs {
        let word = log.word(0);
        if Some(word) == first.map(|first| first.word(0)) {
            continue;
        }
        match word {
            "off" if first.is_none() => {}
            "off" => context.ledger.differs(log, "AFPA's access log has all requests"),
            _ => context.ledger.left(log, "AFPA has one access log"),
        }
    }
    let Some(first) = first else { return };
    output.line("log", format!("access = {}", quoted(first.word(0))));
    let mut formats = Vec::new();
    every(main, "log_format", &mut formats);
    let format = formats.into_iter().find(|format| format.word(0) == first.word(1));
    if let Some(format) = format {
        if format.words.iter().any(|word| word == "escape=json") {
            output.line("log", "access_format = \"json\"".to_owned());
            context.ledger.differs(format, "AFPA has names of its own for the parts of a line");
        } else {
            context.ledger.differs(format, "a line is as that of `combined`");
        }
    }
}

fn error_log(context: &Context<'_>, main: &[Directive], output: &mut Output) {
    let mut logs = Vec::new();
    every(main, "error_log", &mut logs);
    let level = main.iter().find(|one| one.is("error_log")).map_or("", |log| log.word(1));
    let level = match level {
        "debug" | "info" | "warn" | "error" => level,
        "notice" => "info",
        "crit" | "alert" | "emerg" => "error",
        _ => "",
    };
    if !level.is_empty() {
        output.line("log", format!("level = {}", quoted(level)));
    }
    for log in logs.iter().filter(|log| log.word(0) != "/dev/null" && log.word(0) != "stderr") {
        context.ledger.differs(log, "messages go to standard error");
    }
}

/// Settings that AFPA has for everything, but a server or location sets.
pub(crate) fn inner(context: &Context<'_>, block: &[Directive], http: &Scope<'_>) {
    let global = [
        "client_header_timeout",
        "client_body_timeout",
        "keepalive_timeout",
        "send_timeout",
        "gzip_types",
        "brotli_types",
        "gzip_min_length",
        "gzip_comp_level",
        "brotli_comp_level",
        "brotli_min_length",
        "http2_max_concurrent_streams",
        "resolver",
    ];
    for directive in block {
        if global.contains(&&*directive.name) {
            let same = http.last(&directive.name).is_some_and(|one| one.words == directive.words);
            if !same {
                context
                    .ledger
                    .left(directive, "AFPA has this once for everything: write it in `http`");
            }
        }
        if !directive.is("upstream") {
            inner(context, directive.children(), http);
        }
    }
}
