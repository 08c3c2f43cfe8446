//! `afpa doctor`: properties of this host that the fast path cannot use, cannot be sure of, or bypasses.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use afpa_bpf::preflight::{Facts, Finding, Level, findings};
use afpa_config::{Machine, Overrides, load};
use clap::Args;
use serde_json::json;

use crate::fast_path;

/// `afpa doctor`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Address and port of a server that is or may be accelerated; may be repeated
    /// [default: those that the kernel answers on now, else port 80 of all addresses]
    #[arg(short, long, value_name = "ADDR:PORT")]
    pub listen: Vec<SocketAddr>,
    /// The addresses of this configuration file, on which `afpa serve` will listen
    #[arg(short, long, value_name = "FILE", conflicts_with = "listen")]
    pub config: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// `afpa doctor`. The exit status is 1 if there can be no fast path.
///
/// # Errors
/// With every error of the configuration file.
pub fn doctor(options: &Doctor) -> anyhow::Result<ExitCode> {
    let facts = match &options.config {
        Some(file) => {
            let loaded = load(Some(file), &Overrides::default(), &Machine::probe())?;
            let sites = fast_path::settings(&loaded.config, &loaded.routes.hierarchy).sites;
            let addresses: Vec<_> = sites.into_iter().flat_map(|site| site.addresses).collect();
            Facts::gather(&addresses, true)
        }
        None if options.listen.is_empty() => Facts::gather(&answered_on(), false),
        None => Facts::gather(&options.listen, false),
    };
    let all = findings(&facts);
    super::print(&if options.json { as_json(&facts, &all) } else { as_text(&facts, &all) })?;
    let refused = all.iter().any(|finding| finding.level == Level::Refused);
    Ok(ExitCode::from(u8::from(refused)))
}

/// All addresses with the ports that the kernel answers on, or with port 80.
fn answered_on() -> Vec<SocketAddr> {
    let found = Facts::gather(&[], true).fast_paths.unwrap_or_default();
    let mut ports: Vec<u16> = found.into_iter().filter_map(|found| found.ports).flatten().collect();
    if ports.is_empty() {
        ports.push(80);
    }
    ports.into_iter().map(|port| SocketAddr::from(([0, 0, 0, 0], port))).collect()
}

fn addresses(facts: &Facts) -> Vec<String> {
    facts.addresses.iter().map(SocketAddr::to_string).collect()
}

fn as_text(facts: &Facts, all: &[Finding]) -> String {
    let mut text = format!("Linux {}, for {}\n", facts.kernel.release, addresses(facts).join(", "));
    for finding in all {
        let Finding { level, subject, text: found, remedy } = finding;
        let _ = writeln!(text, "  {:<8}  {subject}: {found}", level.word());
        if !remedy.is_empty() {
            let _ = writeln!(text, "  {:<8}  -> {remedy}", "");
        }
    }
    if !all.iter().any(|finding| finding.level <= Level::Limited) {
        text.push_str("  Nothing keeps the kernel from answering.\n");
    }
    text
}

fn as_json(facts: &Facts, all: &[Finding]) -> String {
    let findings = all.iter().map(|finding| {
        json!({
            "level": finding.level.word(),
            "subject": finding.subject,
            "finding": finding.text,
            "remedy": finding.remedy,
        })
    });
    let findings: Vec<_> = findings.collect();
    let document = json!({ "kernel": facts.kernel.release, "addresses": addresses(facts), "findings": findings });
    format!("{document:#}\n")
}

const EXAMPLES: &str = "\
Examples:
  afpa doctor
  afpa doctor --listen 0.0.0.0:80 --listen '[::]:80'
  afpa doctor --config /etc/afpa/afpa.toml --json

Each line is one of: refused, there can be no fast path; limited, some connections are served without it; bypassed,
the kernel's answers go past something; in use. Run it as root, in the network namespace of the server: others may
not look at everything.";

#[cfg(test)]
mod tests {
    use afpa_bpf::preflight::Kernel;

    use super::*;

    fn facts() -> Facts {
        let addresses = vec!["0.0.0.0:80".parse().unwrap()];
        let kernel = Kernel { release: "6.18.1".into(), ..Kernel::default() };
        Facts { kernel, addresses, ..Facts::default() }
    }

    fn finding(level: Level, remedy: &str) -> Finding {
        let (subject, text) = ("eth0".to_owned(), "it is odd".to_owned());
        Finding { level, subject, text, remedy: remedy.to_owned() }
    }

    #[test]
    fn findings_are_told_to_people_and_programs() {
        let all = [finding(Level::Limited, "mend it"), finding(Level::InUse, "")];
        let expected = "Linux 6.18.1, for 0.0.0.0:80
  limited   eth0: it is odd
            -> mend it
  in use    eth0: it is odd
";
        assert_eq!(as_text(&facts(), &all), expected);
        let document: serde_json::Value = serde_json::from_str(&as_json(&facts(), &all)).unwrap();
        assert_eq!(document["findings"][0]["level"], "limited");
        assert_eq!(document["findings"][1]["remedy"], "");
        let good = as_text(&facts(), &all[1..]);
        assert!(good.ends_with("  Nothing keeps the kernel from answering.\n"), "{good}");
    }
}
